package shapes;

/** A loader that defines what it is given. */
class Definer extends ClassLoader {
    Definer() {
        super(Touch.class.getClassLoader());
    }

    Touch make(byte[] file) throws ReflectiveOperationException {
        return (Touch) defineClass(null, file, 0, file.length).getConstructor().newInstance();
    }

    /** Another class of loaders. */
    static final class Second extends Definer {}
}
