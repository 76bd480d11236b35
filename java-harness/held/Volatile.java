package held;

/** A volatile field of every type. */
public final class Volatile {
    public volatile boolean z;
    public volatile byte b;
    public volatile char c;
    public volatile short s;
    public volatile int i;
    public volatile long j;
    public volatile float f;
    public volatile double d;
    public volatile Object o;
}
