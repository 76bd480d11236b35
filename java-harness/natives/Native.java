package natives;

/** Functions of tests/jvm/native/natives.cc. */
final class Native {
    static final int SIGACTION = 0;
    static final int SIGNAL = 1;
    static final int RAW = 2;
    static final int REPORTER = 3;

    private Native() {}

    /** A SIGSEGV handler in front of the one that is there; REPORTER passes nothing on. */
    static native void install(int how, boolean onAlternateStack);

    static native void uninstall(int how);

    /** A fault of the library's own: how often its handler has been called so far. */
    static native int fault();

    /** A fault whose handler jumps out. */
    static native boolean probe();

    /** cell.value and the sum of 16 elements, loaded with all signals blocked; -1: the mask is wrong. */
    static native long blocked(int how, Object cell, int[] array);

    /** Runs it on a thread of the library's with that alternate stack (0: none, -1: AT_MINSIGSTKSZ). */
    static native int attached(int stackBytes, Runnable body);

    /** 0, or which promise of critical arrays was broken. */
    static native int criticals(byte[] array, String string, String file);
}
