import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntUnaryOperator;

/** Something of everything the layout agent compares: classes, arrays, compiled code, parked virtual threads. */
public final class LayoutWorkload {
    static class Base { int a; long b; byte c; Object d; }
    static class Derived extends Base { short e; double f; static int count; static Object shared = new Object(); }
    static final class Growing extends ArrayList<String> { }

    static final List<Object> keep = new ArrayList<>();
    static long sink;

    static int inner(Derived o, int[] data, int i) {
        o.a += data[i & 63];
        o.b ^= o.a;
        Derived.count++;
        return o.e + o.a;
    }

    static int outer(Derived o, int[] data) {
        int sum = 0;
        for (int i = 0; i < 2000; i++) {
            sum += inner(o, data, i);
        }
        return sum;
    }

    static long wide(Map<Integer, String> map, StringBuilder text) {
        long total = 0;
        for (int i = 0; i < 200; i++) {
            map.put(i, "value " + i);
            total += map.get(i / 2).length();
            text.append((char) ('a' + i % 26));
        }
        return total + text.length();
    }

    static void arrays() {
        for (int n = 0; n < 70; n++) {
            keep.add(new boolean[n]);
            keep.add(new byte[n]);
            keep.add(new char[n]);
            keep.add(new short[n]);
            keep.add(new int[n]);
            keep.add(new float[n]);
            keep.add(new long[n]);
            keep.add(new double[n]);
            keep.add(new Object[n]);
            keep.add(new int[n][2]);
        }
        keep.add(new byte[3 << 20]);
        keep.add(new byte[40 << 20]);
        keep.add(new Derived[100]);
    }

    static void parkedVirtualThreads() throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException none) {
            return;
        }
        CountDownLatch ready = new CountDownLatch(40);
        CountDownLatch never = new CountDownLatch(1);
        Thread[] threads = new Thread[40];
        for (int i = 0; i < threads.length; i++) {
            final int depth = i;
            threads[i] = (Thread) start.invoke(null, (Runnable) () -> park(depth, ready, never));
        }
        ready.await();
        // Parked, and off its carrier: only then it has a StackChunk.
        for (Thread thread : threads) {
            while (thread.getState() != Thread.State.WAITING) {
                Thread.sleep(10);
            }
        }
        Thread.sleep(100);
    }

    static void park(int depth, CountDownLatch ready, CountDownLatch never) {
        if (depth > 0) {
            park(depth - 1, ready, never);
            return;
        }
        ready.countDown();
        try {
            never.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        arrays();
        parkedVirtualThreads();
        keep.add(new Growing());
        keep.add(new IdentityHashMap<>());
        Derived object = new Derived();
        int[] data = new int[64];
        IntUnaryOperator lambda = x -> x + object.a;
        Map<Integer, String> map = new HashMap<>();
        for (int round = 0; round < 400; round++) {
            sink += outer(object, data);
            sink += wide(map, new StringBuilder());
            sink += lambda.applyAsInt(round);
            if (round % 100 == 0) {
                System.gc();
            }
            synchronized (object) {
                sink += object.hashCode();
            }
            keep.add(new Derived[round % 7]);
        }
        System.out.println("workload done");
    }
}
