package shapes;

import java.lang.invoke.MethodHandles;
import java.util.function.IntSupplier;

/**
 * Classes of every kind and name, touched a known number of times. Argument: which. What is to be counted
 * stands in the test.
 */
public final class Classes {
    private static Point[] points;
    private static Point[][][] nested;
    private static int[][][] numbers;
    private static IntSupplier[] lambdas;
    private static int sum;

    private Classes() {}

    private static byte[] subject(String name, String first, String second) throws Exception {
        return Rename.rename(Rename.read(Subject.class), "shapes/Subject", name, "first", first, "second", second);
    }

    /** Non-ASCII names (two-, three- and four-byte UTF-8, and a NUL's substitute), long ones, no package. */
    static void names() throws Exception {
        Definer definer = new Definer();
        sum += definer.make(subject("made/Gr\u00f6\u00dfe", "gr\u00f6\u00dfe", "\u65e5\u672c")).touch(3, 4);
        sum += definer.make(subject("made/\ud835\udc9c\u65e5", "\ud83d\ude00", "second")).touch(5, 6);
        sum += definer.make(subject("Bare", "first", "second")).touch(7, 8);
        sum += definer.make(subject("made/".concat("n".repeat(30000)), "f".repeat(65535), "second")).touch(9, 10);
        String deep = "made/deep/".concat("p/".repeat(200)).concat("Leaf");
        sum += definer.make(subject(deep, "first", "second")).touch(11, 12);
        Thread thread = new Thread(new Work(definer.make(subject("made/ByThread", "first", "second"))),
                "w\u00f6rker \u65e5\u672c \ud83d\ude00");
        thread.start();
        thread.join();
        thread = new Thread(new Work(definer.make(subject("made/ByLong", "first", "second"))), "\u00e4".repeat(5000));
        thread.start();
        thread.join();
    }

    private static final class Work implements Runnable {
        private final Touch touch;

        Work(Touch touch) {
            this.touch = touch;
        }

        @Override
        public void run() {
            touch.touch(13, 14);
        }
    }

    /** One name, defined by three loaders of two classes. */
    static void loaders() throws Exception {
        byte[] file = subject("made/Same", "first", "second");
        Touch[] same = {new Definer().make(file), new Definer().make(file), new Definer.Second().make(file)};
        for (int i = 0; i < same.length; i++) {
            sum += same[i].touch(10 * (i + 1), 100 * (i + 1));
        }
    }

    /** Classes that come and go: A is unloaded before B is defined, where A's Klass was. */
    static void unload(int rounds) throws Exception {
        for (int i = 0; i < rounds; i++) {
            String name = "made/Gone".concat(Character.toString((char) ('A' + i % 26)));
            sum += new Definer().make(subject(name, "first", "second")).touch(i + 1, 2 * i + 1);
            System.gc();
        }
    }

    /** One name each time, its two fields' names exchanged: everything but the fields may be as before. */
    static void again(int rounds) throws Exception {
        for (int i = 0; i < rounds; i++) {
            byte[] file = subject("made/Again", i % 2 == 0 ? "even" : "odd", i % 2 == 0 ? "odd" : "even");
            sum += new Definer().make(file).touch(3, 5);
            System.gc();
        }
    }

    /** A hidden class, and lambdas that capture. */
    static void hidden() throws Exception {
        byte[] file = Rename.rename(Rename.read(Subject.class), "shapes/Subject", "shapes/Veiled");
        Class<?> type = MethodHandles.lookup().defineHiddenClass(file, true).lookupClass();
        System.out.println("NAME ".concat(type.getName()));
        sum += ((Touch) type.getConstructor().newInstance()).touch(21, 22);
        lambdas = new IntSupplier[4];
        for (int i = 0; i < lambdas.length; i++) {
            int captured = i;
            lambdas[i] = () -> captured;
        }
        System.out.println("LAMBDA ".concat(lambdas[0].getClass().getName()));
        for (int i = 0; i < 40; i++) {
            sum += lambdas[i % 4].getAsInt();
        }
    }

    static void kinds() {
        points = new Point[5];
        for (int i = 0; i < points.length; i++) {
            points[i] = new Point(i, 2L * i);
        }
        for (int i = 0; i < 30; i++) {
            sum += points[i % 5].x() + (int) points[i % 5].y();
        }
        for (int i = 0; i < 11; i++) {
            sum += Color.RED.weight + Color.GREEN.weight;
        }
        nested = new Point[2][3][4];
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < 3; k++) {
                nested[i][k][1] = points[0];
            }
        }
        numbers = new int[2][3][4];
        deep();
    }

    /** 24 elements of int[], 24 of int[][] and 24 of int[][][]. */
    static void deep() {
        int[][][] n = numbers;
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < 3; k++) {
                for (int m = 0; m < 4; m++) {
                    n[i][k][m] = m;
                }
            }
        }
    }

    /** A class whose code is replaced while an object of it lives, and while its old code runs. */
    static void redefine() throws Exception {
        Touch touch = new Definer().make(subject("made/Redefined", "first", "second"));
        sum += touch.touch(31, 32);
        byte[] changed = Rename.rename(Rename.read(Changed.class), "shapes/Changed", "made/Redefined");
        if (Native.redefine(touch.getClass(), changed) != 0) {
            throw new IllegalStateException("not redefined");
        }
        sum += touch.touch(33, 34);
        sum += touch.getClass().getDeclaredField("first").getInt(touch);
    }

    /** Objects whose mark word changes all the time: hashed, locked, waited on, moved. */
    private static final class Locker extends Thread {
        private final Subject[] all;

        Locker(Subject[] all, int number) {
            super("locker-".concat(Integer.toString(number)));
            this.all = all;
        }

        @Override
        public void run() {
            for (int k = 0; k < 40; k++) {
                Subject subject = all[k % all.length];
                if (k % 3 == 1) {
                    System.identityHashCode(subject);
                }
                synchronized (subject) {
                    subject.touch(2, 3);
                    if (k % 5 == 0) {
                        try {
                            subject.wait(1);
                        } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                        }
                    }
                    if (k % 13 == 0) {
                        System.gc();
                    }
                }
            }
        }
    }

    static void locks() throws InterruptedException {
        Subject[] all = new Subject[8];
        int[] hashes = new int[all.length];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Subject();
            hashes[i] = System.identityHashCode(all[i]);
        }
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Locker(all, i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (int i = 0; i < all.length; i++) {
            sum += all[i].touch(1, 1);
            sum += System.identityHashCode(all[i]) == hashes[i] ? 1 : 1000;
        }
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "names": names(); break;
            case "loaders": loaders(); break;
            case "unload": unload(Integer.parseInt(args[1])); break;
            case "again": again(Integer.parseInt(args[1])); break;
            case "hidden": hidden(); break;
            case "locks": locks(); break;
            case "kinds": kinds(); break;
            case "redefine": redefine(); break;
            default: throw new IllegalArgumentException(args[0]);
        }
        System.out.println("CHECK sum=".concat(Integer.toString(sum)));
        System.out.println("DONE");
    }
}
