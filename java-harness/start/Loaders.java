package start;

import java.io.InputStream;

/** Defines {@link Made} and its super class by LOADERS loaders while another thread collects all the time. */
public final class Loaders {
    private static final class Loader extends ClassLoader {
        private final byte[] base;
        private final byte[] made;

        Loader(byte[] base, byte[] made) {
            super(Loaders.class.getClassLoader());
            this.base = base;
            this.made = made;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.equals("start.MadeBase")) {
                Class<?> known = findLoadedClass(name);
                return known != null ? known : defineClass(name, base, 0, base.length);
            }
            return super.loadClass(name, resolve);
        }

        Runnable make() throws ReflectiveOperationException {
            Class<?> made = defineClass("start.Made", this.made, 0, this.made.length);
            return (Runnable) made.getDeclaredConstructor().newInstance();
        }
    }

    private static volatile boolean done;

    private Loaders() {}

    private static byte[] bytes(String name) throws Exception {
        try (InputStream in = Loaders.class.getResourceAsStream(name)) {
            return in.readAllBytes();
        }
    }

    public static void main(String[] args) throws Exception {
        int loaders = Integer.parseInt(args[0]);
        byte[] base = bytes("MadeBase.class");
        byte[] made = bytes("Made.class");
        Runnable[] all = new Runnable[loaders];
        Thread collector = new Thread(() -> {
            while (!done) System.gc();
        });
        collector.start();
        for (int i = 0; i < loaders; i++) {
            all[i] = new Loader(base, made).make();
            all[i].run();
        }
        done = true;
        collector.join();
        System.out.println("CHECK made=" + all.length);
        System.out.println("DONE");
    }
}
