package shapes;

/** What only native code can do; the library is given by -Dharness.native=FILE. */
public final class Native {
    static {
        System.load(System.getProperty("harness.native"));
    }

    private Native() {}

    /** JVMTI RedefineClasses; its error, 0 on success. */
    public static native int redefine(Class<?> type, byte[] file);

    /** JVMTI RetransformClasses by an agent that changes nothing; its error, 0 on success. */
    public static native int retransform(Class<?> type);

    /**
     * Native threads, one after the other joined: each attaches itself (named {@code native-0} and so on, every
     * second as a daemon), calls {@code touch(n + its number, m)} and detaches, twice. Returns the calls made.
     */
    public static native int attach(Touch[] touches, int n, int m);
}
