package counts;

import held.Statics;

/** Loads and stores of plain static fields, shared by all workers. */
final class StaticFields {

    private StaticFields() {}

    /** One round of a worker; `p` is only a reference to store. */
    static int round(Object p, int worker, String thread) {
        int sum = 0;
        storeBoolean(Plan.stores(0, worker));
        sum += loadBoolean(Plan.loads(0, worker));
        storeByte(Plan.stores(1, worker));
        sum += loadByte(Plan.loads(1, worker));
        storeChar(Plan.stores(2, worker));
        sum += loadChar(Plan.loads(2, worker));
        storeShort(Plan.stores(3, worker));
        sum += loadShort(Plan.loads(3, worker));
        storeInt(Plan.stores(4, worker));
        sum += loadInt(Plan.loads(4, worker));
        storeLong(Plan.stores(5, worker));
        sum += loadLong(Plan.loads(5, worker));
        storeFloat(Plan.stores(6, worker));
        sum += loadFloat(Plan.loads(6, worker));
        storeDouble(Plan.stores(7, worker));
        sum += loadDouble(Plan.loads(7, worker));
        storeObject(p, Plan.stores(8, worker));
        sum += loadObject(Plan.loads(8, worker));
        for (int k = 0; k < Plan.TYPES; k++) {
            Expect.field("held.Statics", Plan.FIELD[k], "static", "plain", "store", thread, Plan.stores(k, worker));
            Expect.field("held.Statics", Plan.FIELD[k], "static", "plain", "load", thread, Plan.loads(k, worker));
        }
        return sum;
    }

    static void storeBoolean(int n) {
        for (int i = 0; i < n; i++) {
            Statics.z = (i & 1) == 0;
        }
    }

    static int loadBoolean(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            boolean v = Statics.z;
            sum += v ? 1 : 0;
        }
        return sum;
    }

    static void storeByte(int n) {
        for (int i = 0; i < n; i++) {
            Statics.b = (byte) i;
        }
    }

    static int loadByte(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            byte v = Statics.b;
            sum += v;
        }
        return sum;
    }

    static void storeChar(int n) {
        for (int i = 0; i < n; i++) {
            Statics.c = (char) i;
        }
    }

    static int loadChar(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            char v = Statics.c;
            sum += v;
        }
        return sum;
    }

    static void storeShort(int n) {
        for (int i = 0; i < n; i++) {
            Statics.s = (short) i;
        }
    }

    static int loadShort(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            short v = Statics.s;
            sum += v;
        }
        return sum;
    }

    static void storeInt(int n) {
        for (int i = 0; i < n; i++) {
            Statics.i = i;
        }
    }

    static int loadInt(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            int v = Statics.i;
            sum += v;
        }
        return sum;
    }

    static void storeLong(int n) {
        for (int i = 0; i < n; i++) {
            Statics.j = i;
        }
    }

    static int loadLong(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            long v = Statics.j;
            sum += (int) v;
        }
        return sum;
    }

    static void storeFloat(int n) {
        for (int i = 0; i < n; i++) {
            Statics.f = i;
        }
    }

    static int loadFloat(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            float v = Statics.f;
            sum += (int) v;
        }
        return sum;
    }

    static void storeDouble(int n) {
        for (int i = 0; i < n; i++) {
            Statics.d = i;
        }
    }

    static int loadDouble(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            double v = Statics.d;
            sum += (int) v;
        }
        return sum;
    }

    static void storeObject(Object p, int n) {
        for (int i = 0; i < n; i++) {
            Statics.o = (i & 1) == 0 ? p : null;
        }
    }

    static int loadObject(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            Object v = Statics.o;
            sum += v == null ? 1 : 0;
        }
        return sum;
    }
}
