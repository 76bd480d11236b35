package start;

import java.io.InputStream;

/** LOADERS times, one thread links a class and, while it is still in the events of that, another links its sub class. */
public final class Linked {
    private static final class Loader extends ClassLoader {
        private final byte[] base;

        Loader(byte[] base) {
            super(Linked.class.getClassLoader());
            this.base = base;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("start.MadeBase")) return super.loadClass(name, resolve);
            Class<?> known = findLoadedClass(name);
            return known != null ? known : defineClass(name, base, 0, base.length);
        }

        Class<?> define(byte[] made) {
            return defineClass("start.Made", made, 0, made.length);
        }
    }

    private Linked() {}

    private static byte[] bytes(String name) throws Exception {
        try (InputStream in = Linked.class.getResourceAsStream(name)) {
            return in.readAllBytes();
        }
    }

    public static void main(String[] args) throws Exception {
        int loaders = Integer.parseInt(args[0]);
        byte[] base = bytes("MadeBase.class");
        byte[] made = bytes("Made.class");
        System.gc(); // rows are judged by the number of collections too
        for (int i = 0; i < loaders; i++) {
            Class<?> sub = new Loader(base).define(made);
            Class<?> superClass = sub.getSuperclass();
            Thread other = new Thread(() -> link(superClass));
            other.start();
            Thread.sleep(20); // its event takes 60 ms
            link(sub);
            other.join();
            ((Runnable) sub.getDeclaredConstructor().newInstance()).run();
            superClass.getField("inherited").setLong(superClass.getDeclaredConstructor().newInstance(), 3);
        }
        System.out.println("CHECK classes=" + 2 * loaders);
        System.out.println("DONE");
    }

    private static void link(Class<?> one) {
        try {
            Class.forName(one.getName(), true, one.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }
}
