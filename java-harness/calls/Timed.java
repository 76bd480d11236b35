package calls;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;
import java.util.zip.Deflater;

/**
 * Timed.java VIRTUAL: every kind of method a known number of times, for calls=. Prints EXPECT lines, name=calls, and
 * THROWN lines, name=calls that ended by an exception. VIRTUAL virtual threads sleep inside a call, where there are any.
 */
public final class Timed {
    private static final Map<String, Integer> EXPECTED = new TreeMap<>(), THROWN = new TreeMap<>();
    private static int sum, deepEntries;

    static class Base implements Comparable<Base> {
        int value;

        Base(int value) {
            if (value % 7 == 3) {
                throw new IllegalStateException("base");
            }
            this.value = value;
        }

        @Override
        public int compareTo(Base other) {
            return Integer.compare(value, other.value);
        }
    }

    static final class Sub extends Base {
        final List<String> names;

        // Branches before and behind the call of the other constructor.
        Sub(int value, boolean twice) {
            super(twice ? new ArrayList<>(List.of(value)).get(0) * 2 : Math.abs(value));
            while (true) {
                if (this.value % 5 == 4) {
                    throw new IllegalArgumentException("sub");
                }
                break;
            }
            names = new ArrayList<>();
        }

        Sub(String text) {
            this(Integer.parseInt(text), false);
        }
    }

    interface Doubling {
        int once(int i);

        default int twice(int i) {
            return once(once(i));
        }
    }

    static int thrower(int i) {
        if (i % 3 == 0) {
            throw new IllegalArgumentException("three");
        }
        try {
            if (i % 3 == 1) {
                throw new IllegalStateException("inside");
            }
            return 1;
        } catch (IllegalStateException e) {
            return 2;
        } finally {
            sum++;
        }
    }

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static synchronized int locked(int i) {
        return i + 1;
    }

    synchronized int lockedToo(long a, double b, Object... more) {
        synchronized (more) {
            return (int) (a + b) + more.length;
        }
    }

    static long loop(int n) {
        long result = 0;
        for (int i = 0; i < n; i++) {
            result += i * 3L;
            if (result < 0) {
                return -1;
            }
        }
        return result;
    }

    // Compiled for one class of `step`, then deoptimised by another.
    static int speculating(IntUnaryOperator step, int i) {
        return step.applyAsInt(i);
    }

    static int switches(String text, int i) {
        switch (text) {
            case "a":
                return 1;
            case "b":
                return 2;
            default:
                break;
        }
        switch (i) {
            case 0:
                return 3;
            case 1:
                return 4;
            case 2:
                return 5;
            case 1000:
                return 6;
            default:
                return 7;
        }
    }

    static int deep(int n) {
        deepEntries++;
        return deep(n + 1) + 1;
    }

    static void asleep(int millis) throws InterruptedException {
        Thread.sleep(millis);
        awake();
    }

    static void awake() {
        Thread.yield();
    }

    private static void expect(String name, int times) {
        EXPECTED.merge(name, times, Integer::sum);
    }

    private static void thrown(String name) {
        THROWN.merge(name, 1, Integer::sum);
    }

    private static void construct() {
        for (int i = 0; i < 200; i++) {
            int given = i % 2 == 0 ? 2 * i : i;
            expect("calls.Timed$Base.<init>", 1);
            if (given % 7 == 3) {
                thrown("calls.Timed$Base.<init>");
            } else {
                expect("calls.Timed$Sub.<init>(int, boolean)", 1);
                if (given % 5 == 4) {
                    thrown("calls.Timed$Sub.<init>(int, boolean)");
                }
            }
            try {
                sum += new Sub(i, i % 2 == 0).value;
            } catch (IllegalStateException | IllegalArgumentException e) {
                sum++;
            }
        }
        expect("calls.Timed$Sub.<init>(java.lang.String)", 1);
        expect("calls.Timed$Sub.<init>(int, boolean)", 1);
        expect("calls.Timed$Base.<init>", 1);
        Comparable<Base> bridged = new Sub("12");
        expect("calls.Timed$Base.<init>", 1);
        Base other = new Base(5);
        for (int i = 0; i < 50; i++) {
            sum += bridged.compareTo(other);
        }
        expect("calls.Timed$Base.compareTo(calls.Timed$Base)", 50);
        // The bridge is called by nobody: the compiler knows Comparable<Base> only.
        expect("calls.Timed$Base.compareTo(java.lang.Object) int", 50);
    }

    private static void call() {
        for (int i = 0; i < 3000; i++) {
            expect("calls.Timed.thrower", 1);
            if (i % 3 == 0) {
                thrown("calls.Timed.thrower");
            }
            try {
                sum += thrower(i);
            } catch (IllegalArgumentException e) {
                sum++;
            }
        }
        sum += fib(16);
        expect("calls.Timed.fib", 3193);
        Timed timed = new Timed();
        for (int i = 0; i < 20000; i++) {
            sum += locked(i) + timed.lockedToo(i, 0.5, "x", i) + switches(i % 3 == 0 ? "a" : "c", i % 5);
        }
        expect("calls.Timed.locked", 20000);
        expect("calls.Timed.lockedToo", 20000);
        expect("calls.Timed.switches", 20000);
        sum += (int) loop(2_000_000);
        expect("calls.Timed.loop", 1);
        Doubling doubling = i -> i + 1;
        for (int i = 0; i < 100; i++) {
            sum += doubling.twice(i);
        }
        expect("calls.Timed$Doubling.twice", 100);
        IntUnaryOperator[] steps = {i -> i + 1, i -> i * 2, i -> i - 3, i -> i ^ 5};
        for (int i = 0; i < 40000; i++) {
            sum += speculating(steps[i / 10000], i);
        }
        expect("calls.Timed.speculating", 40000);
        for (int i = 0; i < 3; i++) {
            try {
                deep(0);
            } catch (StackOverflowError e) {
                sum++;
            }
        }
        expect("calls.Timed.deep", deepEntries);
        Deflater deflater = new Deflater();
        deflater.setInput(new byte[1000]);
        deflater.finish();
        sum += deflater.deflate(new byte[2000], 0, 2000, Deflater.NO_FLUSH);
        deflater.end();
        expect("java.util.zip.Deflater.deflateBytesBytes", 1);
    }

    private static void sleep(int threads) throws Exception {
        List<Thread> started = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Runnable body = () -> {
                for (int round = 0; round < 2; round++) {
                    try {
                        asleep(100);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }
            };
            started.add((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body));
        }
        for (Thread thread : started) {
            thread.join();
        }
        expect("calls.Timed.asleep", 2 * threads);
        expect("calls.Timed.awake", 2 * threads);
    }

    public static void main(String[] args) throws Exception {
        construct();
        call();
        int threads = Integer.parseInt(args[0]);
        if (threads > 0) {
            sleep(threads);
        }
        EXPECTED.forEach((name, times) -> System.out.println("EXPECT " + name + "=" + times));
        THROWN.forEach((name, times) -> System.out.println("THROWN " + name + "=" + times));
        System.out.println("CHECK sum=" + sum);
        System.out.println("DONE");
    }

    private Timed() {
    }
}
