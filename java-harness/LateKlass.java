import java.lang.reflect.Field;
import java.lang.reflect.Method;

/**
 * Objects that hold, in fields, what looks like a header: 1 where a mark word would be, and a narrow Klass behind it.
 */
public final class LateKlass {
    static final class Victim {
        int value;
    }

    static final class Holder {
        int before;  // at 12, so that the others are at 16 and 24
        long mark;
        int klass;

        Holder(int klass, int before) {
            this.mark = 1;
            this.klass = klass;
            this.before = before;
        }
    }

    static Holder last;

    public static void main(String[] args) throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Method getInt = unsafe.getMethod("getInt", Object.class, long.class);
        Victim victim = new Victim();
        victim.value = 1;
        int klass = (Integer) getInt.invoke(field.get(null), victim, 8L);
        int rounds = Integer.parseInt(args[0]);
        for (int i = 0; i < rounds; i++) {
            last = new Holder(klass, i);
        }
        System.out.println("DONE");
    }
}
