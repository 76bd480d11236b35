package start;

/** A system class loader (-Djava.system.class.loader) that prints every name it is asked for. */
public final class AskedLoader extends ClassLoader {
    public AskedLoader(ClassLoader parent) {
        super(parent);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        System.out.println("asked for " + name);
        return super.loadClass(name, resolve);
    }
}
