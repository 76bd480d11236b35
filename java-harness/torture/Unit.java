package torture;

/** What generated classes extend. Fields of every kind, some of them null now and then. */
public abstract class Unit {
    public int a;
    public int b;
    public long c;
    public double d;
    public float f;
    public byte e;
    public short s;
    public char h;
    public boolean z;
    public volatile int v;
    public int[] xs;
    public byte[] bytes;
    public long[] longs;
    public Unit next;
    public Unit[] many;
    public Object thing;

    /** Generated: random code. */
    public abstract int work(Turn t, int x);

    /** Overridden by some generated classes: loading one of them undoes what the compiler assumed. */
    public int value(int x) {
        return a * 31 + x;
    }

    public synchronized int locked(int x) {
        b += x;
        return b ^ a;
    }
}
