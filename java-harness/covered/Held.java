package covered;

import java.io.Serializable;

/**
 * One class for each type of field, with one instance field and one static field: whatever wider than the
 * field an access is, it meets no other field. And classes for what copies, writes and locks whole objects.
 */
public final class Held {
    private Held() {}

    public static final class Z {
        public boolean v;
        public static boolean s;
    }

    public static final class B {
        public byte v;
        public static byte s;
    }

    public static final class C {
        public char v;
        public static char s;
    }

    public static final class S {
        public short v;
        public static short s;
    }

    public static final class I {
        public int v;
        public static int s;
    }

    public static final class J {
        public long v;
        public static long s;
    }

    public static final class F {
        public float v;
        public static float s;
    }

    public static final class D {
        public double v;
        public static double s;
    }

    public static final class O {
        public Object v;
        public static Object s;
    }

    /** A field of every type, for what touches all of an object. */
    public static final class All implements Serializable, Cloneable {
        private static final long serialVersionUID = 1;

        public boolean z;
        public byte b;
        public char c;
        public short s;
        public int i;
        public long j;
        public float f;
        public double d;
        public String o;

        @Override
        public All clone() {
            try {
                return (All) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Volatile, as the field updaters want it. */
    public static final class Updated {
        public volatile int i;
        public volatile long j;
        public volatile Object o;
    }

    /** Nothing but a header. */
    public static final class Bare {}
}
