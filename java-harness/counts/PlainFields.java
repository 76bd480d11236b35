package counts;

import held.Plain;

/** Loads and stores of plain instance fields. */
final class PlainFields {
    /** Where every holder escapes to: no compiler may keep one in registers. */
    static Plain[] all;

    private PlainFields() {}

    /** One round of a worker on its own holder. */
    static int round(Plain p, int worker, String thread) {
        int sum = 0;
        storeBoolean(p, Plan.stores(0, worker));
        sum += loadBoolean(p, Plan.loads(0, worker));
        storeByte(p, Plan.stores(1, worker));
        sum += loadByte(p, Plan.loads(1, worker));
        storeChar(p, Plan.stores(2, worker));
        sum += loadChar(p, Plan.loads(2, worker));
        storeShort(p, Plan.stores(3, worker));
        sum += loadShort(p, Plan.loads(3, worker));
        storeInt(p, Plan.stores(4, worker));
        sum += loadInt(p, Plan.loads(4, worker));
        storeLong(p, Plan.stores(5, worker));
        sum += loadLong(p, Plan.loads(5, worker));
        storeFloat(p, Plan.stores(6, worker));
        sum += loadFloat(p, Plan.loads(6, worker));
        storeDouble(p, Plan.stores(7, worker));
        sum += loadDouble(p, Plan.loads(7, worker));
        storeObject(p, Plan.stores(8, worker));
        sum += loadObject(p, Plan.loads(8, worker));
        for (int k = 0; k < Plan.TYPES; k++) {
            Expect.field("held.Plain", Plan.FIELD[k], "field", "plain", "store", thread, Plan.stores(k, worker));
            Expect.field("held.Plain", Plan.FIELD[k], "field", "plain", "load", thread, Plan.loads(k, worker));
        }
        return sum;
    }

    static void storeBoolean(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.z = (i & 1) == 0;
        }
    }

    static int loadBoolean(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            boolean v = p.z;
            sum += v ? 1 : 0;
        }
        return sum;
    }

    static void storeByte(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.b = (byte) i;
        }
    }

    static int loadByte(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            byte v = p.b;
            sum += v;
        }
        return sum;
    }

    static void storeChar(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.c = (char) i;
        }
    }

    static int loadChar(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            char v = p.c;
            sum += v;
        }
        return sum;
    }

    static void storeShort(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.s = (short) i;
        }
    }

    static int loadShort(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            short v = p.s;
            sum += v;
        }
        return sum;
    }

    static void storeInt(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.i = i;
        }
    }

    static int loadInt(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            int v = p.i;
            sum += v;
        }
        return sum;
    }

    static void storeLong(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.j = i;
        }
    }

    static int loadLong(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            long v = p.j;
            sum += (int) v;
        }
        return sum;
    }

    static void storeFloat(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.f = i;
        }
    }

    static int loadFloat(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            float v = p.f;
            sum += (int) v;
        }
        return sum;
    }

    static void storeDouble(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.d = i;
        }
    }

    static int loadDouble(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            double v = p.d;
            sum += (int) v;
        }
        return sum;
    }

    static void storeObject(Plain p, int n) {
        for (int i = 0; i < n; i++) {
            p.o = (i & 1) == 0 ? p : null;
        }
    }

    static int loadObject(Plain p, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            Object v = p.o;
            sum += v == null ? 1 : 0;
        }
        return sum;
    }
}
