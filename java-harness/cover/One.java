package cover;

import java.lang.invoke.MethodHandle;

/**
 * One access by a method handle that is a constant: a compiler makes of it what it makes of a method that contains
 * the access. Defined anew for each access ({@link Loops}), since a constant belongs to a class. {@code once} is
 * never inlined (a flag of the test), so no two calls can be joined: every one of them makes its access.
 */
public final class One implements Loop {
    private static final MethodHandle ACCESS = Loops.pending();

    static int once(Object target, int i) throws Throwable {
        return (int) ACCESS.invokeExact(target, i);
    }

    @Override
    public int warmUp() {
        return 400;
    }

    @Override
    public int run(Object target, int times) throws Throwable {
        int sum = 0;
        for (int i = 0; i < times; i++) {
            sum += once(target, i);
        }
        return sum;
    }
}
