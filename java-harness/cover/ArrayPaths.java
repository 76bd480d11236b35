package cover;

import covered.Held;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** What copies, fills, compares and sorts arrays, and views of byte arrays as wider elements. */
final class ArrayPaths {
    private static final int FROM = 4500;
    private static final int TO = 5500;
    private static final int ROUNDS = 2;

    private static final VarHandle INTS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle SHORTS =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);

    private ArrayPaths() {}

    static void run() throws Throwable {
        copies();
        intrinsics();
        sorts();
        views();
    }

    private static Loop repeated(Loop once) {
        return (target, times) -> {
            int sum = 0;
            for (int i = 0; i < times; i++) {
                sum += once.run(target, i);
            }
            return sum;
        };
    }

    private static void copies() throws Throwable {
        Path copy = new Path("System.arraycopy/");
        Path overlap = new Path("System.arraycopy/overlapping");
        Path clone = new Path("clone/array");
        Path copyOf = new Path("Arrays.copyOf/");
        for (int type = 0; type < 9; type++) {
            Class<?> element = type == 8 ? Held.O.class : Place.TYPES[type];
            String name = element.getName() + "[]";
            Object from = Array.newInstance(element, Place.LENGTH);
            Object to = Array.newInstance(element, Place.LENGTH);
            copy.add(repeated((a, i) -> arraycopy(a, FROM, to, FROM)), from, ROUNDS);
            overlap.add(repeated((a, i) -> arraycopy(a, FROM, a, FROM + 1)), from, ROUNDS);
            clone.add(repeated((a, i) -> Array.getLength(cloned(a))), from, ROUNDS);
            copyOf.add(repeated((a, i) -> Array.getLength(copyOf(a))), from, ROUNDS);
            Expect.copied(copy.name(), name, FROM, TO, "load", ROUNDS);
            Expect.copied(copy.name(), name, FROM, TO, "store", ROUNDS);
            Expect.copied(overlap.name(), name, FROM, TO, "load", ROUNDS);
            Expect.copied(overlap.name(), name, FROM + 1, TO + 1, "store", ROUNDS);
            Expect.copied(clone.name(), name, Expect.FIRST, Place.LENGTH, "load", ROUNDS);
            Expect.copied(clone.name(), name, Expect.FIRST, Place.LENGTH, "store", ROUNDS);
            Expect.copied(copyOf.name(), name, Expect.FIRST, TO, "load", ROUNDS);
            Expect.copied(copyOf.name(), name, Expect.FIRST, TO, "store", ROUNDS);
            // Copied in words of 8 bytes, up to the end of the object.
            Expect.elements(copyOf.name(), name, TO, TO + 8, "load", 0, 2 * ROUNDS, "rounded-up");
            Expect.elements(copyOf.name(), name, TO, TO + 8, "store", 0, 2 * ROUNDS, "rounded-up");
        }
        copy.run();
        overlap.run();
        clone.run();
        copyOf.run();

        // Elements are checked one by one.
        Path checked = new Path("System.arraycopy/checked");
        Object[] any = new Object[Place.LENGTH];
        Arrays.fill(any, new Held.O());
        Held.O[] to = new Held.O[Place.LENGTH];
        checked.add(repeated((a, i) -> arraycopy(a, FROM, to, FROM)), any, ROUNDS);
        Expect.copied(checked.name(), "java.lang.Object[]", FROM, TO, "load", ROUNDS);
        Expect.copied(checked.name(), "covered.Held$O[]", FROM, TO, "store", ROUNDS);
        checked.run();
    }

    private static int arraycopy(Object from, int at, Object to, int then) {
        System.arraycopy(from, at, to, then, TO - FROM);
        return 0;
    }

    private static Object cloned(Object a) {
        if (a instanceof boolean[]) {
            return ((boolean[]) a).clone();
        } else if (a instanceof byte[]) {
            return ((byte[]) a).clone();
        } else if (a instanceof char[]) {
            return ((char[]) a).clone();
        } else if (a instanceof short[]) {
            return ((short[]) a).clone();
        } else if (a instanceof int[]) {
            return ((int[]) a).clone();
        } else if (a instanceof long[]) {
            return ((long[]) a).clone();
        } else if (a instanceof float[]) {
            return ((float[]) a).clone();
        } else if (a instanceof double[]) {
            return ((double[]) a).clone();
        }
        return ((Object[]) a).clone();
    }

    private static Object copyOf(Object a) {
        if (a instanceof boolean[]) {
            return Arrays.copyOf((boolean[]) a, TO);
        } else if (a instanceof byte[]) {
            return Arrays.copyOf((byte[]) a, TO);
        } else if (a instanceof char[]) {
            return Arrays.copyOf((char[]) a, TO);
        } else if (a instanceof short[]) {
            return Arrays.copyOf((short[]) a, TO);
        } else if (a instanceof int[]) {
            return Arrays.copyOf((int[]) a, TO);
        } else if (a instanceof long[]) {
            return Arrays.copyOf((long[]) a, TO);
        } else if (a instanceof float[]) {
            return Arrays.copyOf((float[]) a, TO);
        } else if (a instanceof double[]) {
            return Arrays.copyOf((double[]) a, TO);
        }
        return Arrays.copyOf((Object[]) a, TO);
    }

    private static void both(String name, String type, Loop loop, Object target, int loads, int stores)
            throws Throwable {
        Path path = new Path(name);
        path.add(repeated(loop), target, ROUNDS);
        if (loads > 0) {
            Expect.copied(name, type, Expect.FIRST, Place.LENGTH, "load", (long) loads * ROUNDS);
        }
        if (stores > 0) {
            Expect.copied(name, type, Expect.FIRST, Place.LENGTH, "store", (long) stores * ROUNDS);
        }
        path.run();
    }

    private static void intrinsics() throws Throwable {
        byte[] b = new byte[Place.LENGTH];
        byte[] b2 = new byte[Place.LENGTH];
        char[] c = new char[Place.LENGTH];
        int[] i = new int[Place.LENGTH];
        int[] i2 = new int[Place.LENGTH];
        long[] j = new long[Place.LENGTH];
        double[] d = new double[Place.LENGTH];
        both("Arrays.fill/byte", "byte[]", (a, n) -> fill((byte[]) a, n), b, 0, 1);
        both("Arrays.fill/int", "int[]", (a, n) -> fill((int[]) a, n), i, 0, 1);
        both("Arrays.fill/double", "double[]", (a, n) -> fill((double[]) a, n), d, 0, 1);
        Arrays.fill(b, (byte) 0);
        Arrays.fill(i, 0);
        both("Arrays.equals/byte", "byte[]", (a, n) -> Arrays.equals((byte[]) a, b2) ? 1 : 0, b, 2, 0);
        both("Arrays.equals/int", "int[]", (a, n) -> Arrays.equals((int[]) a, i2) ? 1 : 0, i, 2, 0);
        both("Arrays.mismatch/int", "int[]", (a, n) -> Arrays.mismatch((int[]) a, i2), i, 2, 0);
        both("Arrays.compare/byte", "byte[]", (a, n) -> Arrays.compare((byte[]) a, b2), b, 2, 0);
        both("Arrays.hashCode/byte", "byte[]", (a, n) -> Arrays.hashCode((byte[]) a), b, 1, 0);
        both("Arrays.hashCode/char", "char[]", (a, n) -> Arrays.hashCode((char[]) a), c, 1, 0);
        both("Arrays.hashCode/int", "int[]", (a, n) -> Arrays.hashCode((int[]) a), i, 1, 0);
        both("Arrays.hashCode/long", "long[]", (a, n) -> Arrays.hashCode((long[]) a), j, 1, 0);
    }

    private static int fill(byte[] a, int i) {
        Arrays.fill(a, (byte) i);
        return 0;
    }

    private static int fill(int[] a, int i) {
        Arrays.fill(a, i);
        return 0;
    }

    private static int fill(double[] a, int i) {
        Arrays.fill(a, i);
        return 0;
    }

    /** Falling values: every element has to move. */
    private static void sorts() throws Throwable {
        int most = 1000;
        Path path = new Path("Arrays.sort/");
        int[] i = new int[Place.LENGTH];
        long[] j = new long[Place.LENGTH];
        double[] d = new double[Place.LENGTH];
        for (int k = 0; k < Place.LENGTH; k++) {
            i[k] = j.length - k;
            j[k] = j.length - k;
            d[k] = j.length - k;
        }
        path.add((a, n) -> sorted(i.clone()), i, 1);
        path.add((a, n) -> sorted(j.clone()), j, 1);
        path.add((a, n) -> sorted(d.clone()), d, 1);
        for (String name : new String[] {"int[]", "long[]", "double[]"}) {
            // One for the copy that is sorted, one for the sorting.
            Expect.elements(path.name(), name, Expect.FIRST, Place.LENGTH, "load", 2, most, "sort");
            Expect.elements(path.name(), name, Expect.FIRST, Place.LENGTH, "store", 2, most, "sort");
        }
        path.run();
    }

    private static int sorted(int[] a) {
        Arrays.sort(a);
        return a[17];
    }

    private static int sorted(long[] a) {
        Arrays.sort(a);
        return (int) a[17];
    }

    private static int sorted(double[] a) {
        Arrays.sort(a);
        return (int) a[17];
    }

    /** At every alignment, across cache lines and pages. */
    private static void views() throws Throwable {
        byte[] b = new byte[Place.LENGTH];
        ByteBuffer buffer = ByteBuffer.wrap(b);
        view("view.int/load", b, 4, "load", (a, i) -> (int) INTS.get((byte[]) a, FROM + i));
        view("view.int/store", b, 4, "store", (a, i) -> put((byte[]) a, i, 4));
        view("view.long/load", b, 8, "load", (a, i) -> (int) (long) LONGS.get((byte[]) a, FROM + i));
        view("view.long/store", b, 8, "store", (a, i) -> put((byte[]) a, i, 8));
        view("view.short/load", b, 2, "load", (a, i) -> (short) SHORTS.get((byte[]) a, FROM + i));
        view("view.short/store", b, 2, "store", (a, i) -> put((byte[]) a, i, 2));
        view("ByteBuffer/load", b, 4, "load", (a, i) -> buffer.getInt(FROM + i));
        view("ByteBuffer/store", b, 8, "store", (a, i) -> buffer.putDouble(FROM + i, i).position());

        // Misaligned and atomic: refused, so there is no access.
        Path refused = new Path("view.volatile/misaligned");
        refused.add(repeated((a, i) -> misaligned((byte[]) a)), b, Expect.TIMES);
        Expect.elements(refused.name(), "byte[]", FROM, TO, "load", 0, 0, "");
        Expect.elements(refused.name(), "byte[]", FROM, TO, "rmw", 0, 0, "");
        refused.run();
    }

    private static int put(byte[] a, int i, int size) {
        if (size == 4) {
            INTS.set(a, FROM + i, i);
        } else if (size == 8) {
            LONGS.set(a, FROM + i, (long) i);
        } else {
            SHORTS.set(a, FROM + i, (short) i);
        }
        return 0;
    }

    private static int misaligned(byte[] a) {
        int refused = 0;
        try {
            refused += (int) INTS.getVolatile(a, FROM + 1);
        } catch (IllegalStateException | UnsupportedOperationException e) {
            refused++;
        }
        try {
            refused += INTS.compareAndSet(a, FROM + 1, 0, 0) ? 1 : 0;
        } catch (IllegalStateException | UnsupportedOperationException e) {
            refused++;
        }
        return refused;
    }

    /** Index FROM + i for each i: inside, every byte is touched once by each of `size` accesses. */
    private static void view(String name, byte[] array, int size, String op, Loop access) throws Throwable {
        Path path = new Path(name);
        path.add(repeated(access), array, Expect.TIMES);
        int last = FROM + Expect.TIMES;
        for (int edge = 1; edge < size; edge++) {
            Expect.elements(name, "byte[]", FROM + edge - 1, FROM + edge, op, edge, edge, "");
            Expect.elements(name, "byte[]", last + size - 1 - edge, last + size - edge, op, edge, edge, "");
        }
        Expect.elements(name, "byte[]", FROM + size - 1, last, op, size, size, "");
        path.run();
    }
}
