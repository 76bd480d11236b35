package held;

/** A volatile static field of every type. */
public final class VolatileStatics {
    public static volatile boolean z;
    public static volatile byte b;
    public static volatile char c;
    public static volatile short s;
    public static volatile int i;
    public static volatile long j;
    public static volatile float f;
    public static volatile double d;
    public static volatile Object o;

    private VolatileStatics() {}
}
