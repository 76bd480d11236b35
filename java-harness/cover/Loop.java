package cover;

/** Makes one access {@code times} times on {@code target}; see {@link One}. */
public interface Loop {
    int run(Object target, int times) throws Throwable;

    /** How many times make it what it stays: linked, or compiled. */
    default int warmUp() {
        return 1;
    }
}
