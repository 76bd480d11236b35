package held;

/** A plain field of every type. */
public final class Plain {
    public boolean z;
    public byte b;
    public char c;
    public short s;
    public int i;
    public long j;
    public float f;
    public double d;
    public Object o;
}
