package held;

/** A static field of every type. */
public final class Statics {
    public static boolean z;
    public static byte b;
    public static char c;
    public static short s;
    public static int i;
    public static long j;
    public static float f;
    public static double d;
    public static Object o;

    private Statics() {}
}
