package counts;

import held.VolatileStatics;

/** Loads and stores of volatile static fields, shared by all workers. */
final class VolatileStaticFields {

    private VolatileStaticFields() {}

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
            Expect.field(
                    "held.VolatileStatics", Plan.FIELD[k], "static", "volatile", "store", thread, Plan.stores(k, worker));
            Expect.field(
                    "held.VolatileStatics", Plan.FIELD[k], "static", "volatile", "load", thread, Plan.loads(k, worker));
        }
        return sum;
    }

    static void storeBoolean(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.z = (i & 1) == 0;
        }
    }

    static int loadBoolean(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            boolean v = VolatileStatics.z;
            sum += v ? 1 : 0;
        }
        return sum;
    }

    static void storeByte(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.b = (byte) i;
        }
    }

    static int loadByte(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            byte v = VolatileStatics.b;
            sum += v;
        }
        return sum;
    }

    static void storeChar(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.c = (char) i;
        }
    }

    static int loadChar(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            char v = VolatileStatics.c;
            sum += v;
        }
        return sum;
    }

    static void storeShort(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.s = (short) i;
        }
    }

    static int loadShort(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            short v = VolatileStatics.s;
            sum += v;
        }
        return sum;
    }

    static void storeInt(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.i = i;
        }
    }

    static int loadInt(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            int v = VolatileStatics.i;
            sum += v;
        }
        return sum;
    }

    static void storeLong(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.j = i;
        }
    }

    static int loadLong(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            long v = VolatileStatics.j;
            sum += (int) v;
        }
        return sum;
    }

    static void storeFloat(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.f = i;
        }
    }

    static int loadFloat(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            float v = VolatileStatics.f;
            sum += (int) v;
        }
        return sum;
    }

    static void storeDouble(int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.d = i;
        }
    }

    static int loadDouble(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            double v = VolatileStatics.d;
            sum += (int) v;
        }
        return sum;
    }

    static void storeObject(Object p, int n) {
        for (int i = 0; i < n; i++) {
            VolatileStatics.o = (i & 1) == 0 ? p : null;
        }
    }

    static int loadObject(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            Object v = VolatileStatics.o;
            sum += v == null ? 1 : 0;
        }
        return sum;
    }
}
