package atomic;

/** What the threads share. */
final class Shared {
    volatile int i;
    volatile long j;
    volatile byte b;
    volatile short s;
    volatile double d;
    volatile Object o = 0L;
    long plain;
    double plainDouble;

    /** Fields of one byte side by side: a store of one must leave the others alone. */
    byte b0;
    byte b1;
    byte b2;
    byte b3;
    short s0;
    short s1;
    boolean z0;
    boolean z1;

    /** Guarded by this object's monitor. */
    long guarded;

    /** Guarded by a ReentrantLock. */
    long locked;
}
