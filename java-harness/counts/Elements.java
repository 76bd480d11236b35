package counts;

import held.Cell;

/**
 * Loads and stores of elements: arrays of every element type, of references and of arrays. Each
 * operation walks its array whole, `passes` times, so every index is touched equally often. Array
 * classes are shared with the whole JVM: counts are told apart by method.
 */
final class Elements {
    private Elements() {}

    /** One round of a worker on its own arrays. */
    static int round(Arrays a, int worker, String thread) {
        int sum = 0;
        int stores = Plan.storePasses(worker);
        int loads = Plan.loadPasses(worker);
        storeBoolean(a.booleans, stores);
        sum += loadBoolean(a.booleans, loads);
        storeByte(a.bytes, stores);
        sum += loadByte(a.bytes, loads);
        storeChar(a.chars, stores);
        sum += loadChar(a.chars, loads);
        storeShort(a.shorts, stores);
        sum += loadShort(a.shorts, loads);
        storeInt(a.ints, stores);
        sum += loadInt(a.ints, loads);
        storeLong(a.longs, stores);
        sum += loadLong(a.longs, loads);
        storeFloat(a.floats, stores);
        sum += loadFloat(a.floats, loads);
        storeDouble(a.doubles, stores);
        sum += loadDouble(a.doubles, loads);
        storeCell(a.cells, a.cell, stores);
        sum += loadCell(a.cells, loads);
        sum += loadRow(a.rows, loads);
        expect("boolean[]", "Boolean", a.booleans.length, stores, loads, thread);
        expect("byte[]", "Byte", a.bytes.length, stores, loads, thread);
        expect("char[]", "Char", a.chars.length, stores, loads, thread);
        expect("short[]", "Short", a.shorts.length, stores, loads, thread);
        expect("int[]", "Int", a.ints.length, stores, loads, thread);
        expect("long[]", "Long", a.longs.length, stores, loads, thread);
        expect("float[]", "Float", a.floats.length, stores, loads, thread);
        expect("double[]", "Double", a.doubles.length, stores, loads, thread);
        expect("held.Cell[]", "Cell", a.cells.length, stores, loads, thread);
        Expect.elements("int[][]", "counts.Elements.loadRow", "load", thread, a.rows.length, loads);
        return sum;
    }

    private static void expect(String type, String name, int length, int stores, int loads, String thread) {
        if (Expect.silent) {
            return;
        }
        Expect.elements(type, "counts.Elements.store".concat(name), "store", thread, length, stores);
        Expect.elements(type, "counts.Elements.load".concat(name), "load", thread, length, loads);
    }

    static void storeBoolean(boolean[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = (i & 1) == 0;
            }
        }
    }

    static int loadBoolean(boolean[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                boolean v = a[i];
                sum += v ? 1 : 0;
            }
        }
        return sum;
    }

    static void storeByte(byte[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = (byte) i;
            }
        }
    }

    static int loadByte(byte[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                byte v = a[i];
                sum += v;
            }
        }
        return sum;
    }

    static void storeChar(char[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = (char) i;
            }
        }
    }

    static int loadChar(char[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                char v = a[i];
                sum += v;
            }
        }
        return sum;
    }

    static void storeShort(short[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = (short) i;
            }
        }
    }

    static int loadShort(short[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                short v = a[i];
                sum += v;
            }
        }
        return sum;
    }

    static void storeInt(int[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = i;
            }
        }
    }

    static int loadInt(int[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                int v = a[i];
                sum += v;
            }
        }
        return sum;
    }

    static void storeLong(long[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = i;
            }
        }
    }

    static int loadLong(long[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                long v = a[i];
                sum += (int) v;
            }
        }
        return sum;
    }

    static void storeFloat(float[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = i;
            }
        }
    }

    static int loadFloat(float[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                float v = a[i];
                sum += (int) v;
            }
        }
        return sum;
    }

    static void storeDouble(double[] a, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = i;
            }
        }
    }

    static int loadDouble(double[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                double v = a[i];
                sum += (int) v;
            }
        }
        return sum;
    }

    static void storeCell(Cell[] a, Cell cell, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                a[i] = (i & 1) == 0 ? cell : null;
            }
        }
    }

    static int loadCell(Cell[] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                Cell v = a[i];
                sum += v == null ? 1 : 0;
            }
        }
        return sum;
    }

    static int loadRow(int[][] a, int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < a.length; i++) {
                int[] v = a[i];
                sum += v == null ? 1 : 0;
            }
        }
        return sum;
    }
}
