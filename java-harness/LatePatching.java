import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.concurrent.CountDownLatch;

/**
 * Two threads come to a field access in C1's code whose class is not resolved yet. One waits in the class loader until
 * the other has made the access so often that it is probed; only then HotSpot comes to patch it for the first. Each form
 * of access has a class of its own. Run with -Xcomp, C1 only, and User's methods `store*` and `load*` compiled alone.
 */
public final class LatePatching {
    private static final int FORMS = 14;
    private static final int TIMES = 1000;

    public static class Target {
        public long j;
        public double d;
        // Twice the offset of a field before them is in here.
        public long c0, c1, c2, c3, c4, c5, c6, c7, c8, c9;
        public int i;
        public float f;
        public short s;
        public byte b;
        public Object o;

        public long canaries() {
            return c0 | c1 | c2 | c3 | c4 | c5 | c6 | c7 | c8 | c9;
        }
    }

    /** Known to both loaders: User reads `target` and needs no Target for it. */
    public abstract static class Base {
        public static Target target;
    }

    public static final class User extends Base {
        /** The method is compiled while Target is unknown, and does not come to the access. */
        public static void compile(int form) {
            access(form, null, false);
        }

        public static double use(int form, int times) {
            double sum = 0;
            for (int n = 0; n < times; n++) {
                sum += access(form, target, true);
            }
            return sum;
        }

        private static double access(int form, Target t, boolean now) {
            switch (form) {
                case 0: storeLong(t, 7, now); return 7;
                case 1: storeDouble(t, 7, now); return 7;
                case 2: storeInt(t, 7, now); return 7;
                case 3: storeFloat(t, 7, now); return 7;
                case 4: storeShort(t, (short) 7, now); return 7;
                case 5: storeByte(t, (byte) 7, now); return 7;
                case 6: storeObject(t, "7", now); return 7;
                case 7: return loadLong(t, now);
                case 8: return loadDouble(t, now);
                case 9: return loadInt(t, now);
                case 10: return loadFloat(t, now);
                case 11: return loadShort(t, now);
                case 12: return loadByte(t, now);
                default: return loadObject(t, now) == "7" ? 7 : 1e9;
            }
        }

        private static void storeLong(Target t, long v, boolean now) {
            if (now) {
                t.j = v;
            }
        }

        private static void storeDouble(Target t, double v, boolean now) {
            if (now) {
                t.d = v;
            }
        }

        private static void storeInt(Target t, int v, boolean now) {
            if (now) {
                t.i = v;
            }
        }

        private static void storeFloat(Target t, float v, boolean now) {
            if (now) {
                t.f = v;
            }
        }

        private static void storeShort(Target t, short v, boolean now) {
            if (now) {
                t.s = v;
            }
        }

        private static void storeByte(Target t, byte v, boolean now) {
            if (now) {
                t.b = v;
            }
        }

        private static void storeObject(Target t, Object v, boolean now) {
            if (now) {
                t.o = v;
            }
        }

        private static long loadLong(Target t, boolean now) {
            return now ? t.j : 0;
        }

        private static double loadDouble(Target t, boolean now) {
            return now ? t.d : 0;
        }

        private static int loadInt(Target t, boolean now) {
            return now ? t.i : 0;
        }

        private static float loadFloat(Target t, boolean now) {
            return now ? t.f : 0;
        }

        private static short loadShort(Target t, boolean now) {
            return now ? t.s : (short) 0;
        }

        private static byte loadByte(Target t, boolean now) {
            return now ? t.b : (byte) 0;
        }

        private static Object loadObject(Target t, boolean now) {
            return now ? t.o : null;
        }
    }

    /** Defines User itself; lets thread `late` wait for Target. */
    static final class Loader extends ClassLoader {
        static {
            registerAsParallelCapable();
        }

        final CountDownLatch asked = new CountDownLatch(1);
        final CountDownLatch answer = new CountDownLatch(1);

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.equals("LatePatching$Target") && Thread.currentThread().getName().equals("late")) {
                asked.countDown();
                try {
                    answer.await();
                } catch (InterruptedException e) {
                    throw new ClassNotFoundException(name, e);
                }
            }
            if (!name.equals("LatePatching$User")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                try (InputStream in = LatePatching.class.getResourceAsStream("LatePatching$User.class")) {
                    byte[] bytes = in.readAllBytes();
                    return defineClass(name, bytes, 0, bytes.length);
                } catch (IOException e) {
                    throw new ClassNotFoundException(name, e);
                }
            }
        }
    }

    private static double use(Method method, int form, int times) {
        try {
            return (Double) method.invoke(null, form, times);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Target fresh() {
        Target t = new Target();
        t.j = 7;
        t.d = 7;
        t.i = 7;
        t.f = 7;
        t.s = 7;
        t.b = 7;
        t.o = "7";
        return t;
    }

    public static void main(String[] args) throws Exception {
        double sum = 0;
        long canaries = 0;
        for (int form = 0; form < FORMS; form++) {
            final int which = form;
            Loader loader = new Loader();
            Class<?> user = loader.loadClass("LatePatching$User");
            user.getMethod("compile", int.class).invoke(null, form);
            Method method = user.getMethod("use", int.class, int.class);
            Target target = fresh();
            Base.target = target;
            final double[] late = new double[1];
            Thread thread = new Thread(() -> late[0] = use(method, which, 1), "late");
            thread.start();
            loader.asked.await();
            sum += use(method, form, TIMES);
            loader.answer.countDown();
            thread.join();
            sum += late[0] + use(method, form, TIMES);
            canaries |= target.canaries();
            if (target.j != 7 || target.d != 7 || target.i != 7 || target.f != 7 || target.s != 7 || target.b != 7
                    || target.o != "7") {
                System.out.println("WRONG form " + form);
            }
        }
        System.out.println("CHECK sum=" + (long) sum);
        System.out.println("CHECK canaries=" + canaries);
        System.out.println("DONE");
    }
}
