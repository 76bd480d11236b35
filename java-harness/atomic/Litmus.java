package atomic;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/**
 * Litmus tests: outcomes that the Java memory model (or, for plain accesses, x86) forbids. The threads go through
 * many instances together; at each they meet, then make their accesses. Argument: milliseconds for each test. Prints {@code TEST name wrong=N done=N}
 * and {@code DONE}. Adve and Boehm, Foundations of the C++ concurrency memory model, PLDI 2008, names the shapes.
 */
public final class Litmus {
    /** Two locations on cache lines of their own as well as side by side. */
    static final class Pair {
        volatile int x;
        volatile int y;
        int plainX;
        int plainY;
        long l0;
        long l1;
        long l2;
        long l3;
        long l4;
        long l5;
        long l6;
        long l7;
        volatile int farY;
    }

    /** One thread's part: the two values it loaded, or anything. */
    interface Part {
        void run(Pair pair, int[] loaded);
    }

    /** True if what was loaded is forbidden: r[part][k]. */
    interface Forbidden {
        boolean test(int[][] r);
    }

    private static final VarHandle X = handle("plainX");
    private static final VarHandle Y = handle("plainY");
    private static final int BATCH = 128;
    private static final int LINE = 32;

    private static volatile boolean stop;

    private Litmus() {}

    private static VarHandle handle(String name) {
        try {
            return MethodHandles.lookup().findVarHandle(Pair.class, name, int.class);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        int millis = Integer.parseInt(args[0]);
        storeBuffering(millis);
        messagePassing(millis);
        loadBuffering(millis);
        independentReads(millis);
        System.out.println("DONE");
    }

    private static boolean bothZero(int[][] r) {
        return r[0][0] == 0 && r[1][0] == 0;
    }

    private static void storeBuffering(int millis) throws Exception {
        test("SB.volatile", millis, Litmus::bothZero,
                (p, r) -> {
                    p.x = 1;
                    r[0] = p.y;
                },
                (p, r) -> {
                    p.y = 1;
                    r[0] = p.x;
                });
        test("SB.volatile.far", millis, Litmus::bothZero,
                (p, r) -> {
                    p.x = 1;
                    r[0] = p.farY;
                },
                (p, r) -> {
                    p.farY = 1;
                    r[0] = p.x;
                });
        test("SB.fullFence", millis, Litmus::bothZero,
                (p, r) -> {
                    X.setOpaque(p, 1);
                    VarHandle.fullFence();
                    r[0] = (int) Y.getOpaque(p);
                },
                (p, r) -> {
                    Y.setOpaque(p, 1);
                    VarHandle.fullFence();
                    r[0] = (int) X.getOpaque(p);
                });
        test("SB.getAndSet", millis, Litmus::bothZero,
                (p, r) -> {
                    X.getAndSet(p, 1);
                    r[0] = (int) Y.getVolatile(p);
                },
                (p, r) -> {
                    Y.getAndAdd(p, 1);
                    r[0] = (int) X.getVolatile(p);
                });
        test("SB.compareAndSet", millis, Litmus::bothZero,
                (p, r) -> {
                    r[1] = X.compareAndSet(p, 0, 1) ? 1 : 0;
                    r[0] = (int) Y.getVolatile(p);
                },
                (p, r) -> {
                    Y.setVolatile(p, 1);
                    r[0] = (int) X.getVolatile(p);
                });
        // Plain accesses may do it: told, so that one sees whether this machine shows anything here.
        test("plain.SB", millis, Litmus::bothZero,
                (p, r) -> {
                    X.setOpaque(p, 1);
                    r[0] = (int) Y.getOpaque(p);
                },
                (p, r) -> {
                    Y.setOpaque(p, 1);
                    r[0] = (int) X.getOpaque(p);
                });
        // A failed swap orders as well.
        test("SB.failedSwap", millis, Litmus::bothZero,
                (p, r) -> {
                    p.x = 1;
                    r[0] = (int) Y.compareAndExchange(p, 5, 6);
                },
                (p, r) -> {
                    Y.setVolatile(p, 1);
                    r[0] = p.x;
                });
    }

    private static void messagePassing(int millis) throws Exception {
        Forbidden late = r -> r[1][0] == 1 && r[1][1] == 0;
        test("MP.volatile", millis, late,
                (p, r) -> {
                    p.plainX = 1;
                    p.y = 1;
                },
                (p, r) -> {
                    r[0] = p.y;
                    r[1] = p.plainX;
                });
        test("MP.acquireRelease", millis, late,
                (p, r) -> {
                    p.plainX = 1;
                    Y.setRelease(p, 1);
                },
                (p, r) -> {
                    r[0] = (int) Y.getAcquire(p);
                    r[1] = p.plainX;
                });
        // Two loads of one location never go back.
        test("CoRR.opaque", millis, late,
                (p, r) -> X.setOpaque(p, 1),
                (p, r) -> {
                    r[0] = (int) X.getOpaque(p);
                    r[1] = (int) X.getOpaque(p);
                });
    }

    private static void loadBuffering(int millis) throws Exception {
        Forbidden bothOne = r -> r[0][0] == 1 && r[1][0] == 1;
        test("LB.volatile", millis, bothOne,
                (p, r) -> {
                    r[0] = p.x;
                    p.y = 1;
                },
                (p, r) -> {
                    r[0] = p.y;
                    p.x = 1;
                });
        test("LB.acquireRelease", millis, bothOne,
                (p, r) -> {
                    r[0] = (int) X.getAcquire(p);
                    Y.setRelease(p, 1);
                },
                (p, r) -> {
                    r[0] = (int) Y.getAcquire(p);
                    X.setRelease(p, 1);
                });
    }

    private static void independentReads(int millis) throws Exception {
        test("IRIW.volatile", millis, r -> r[2][0] == 1 && r[2][1] == 0 && r[3][0] == 1 && r[3][1] == 0,
                (p, r) -> p.x = 1,
                (p, r) -> p.farY = 1,
                (p, r) -> {
                    r[0] = p.x;
                    r[1] = p.farY;
                },
                (p, r) -> {
                    r[0] = p.farY;
                    r[1] = p.x;
                });
    }

    /** How far each thread is; each slot has a cache line of its own. */
    private static final VarHandle SLOTS = MethodHandles.arrayElementVarHandle(int[].class);

    private static void test(String name, int millis, Forbidden forbidden, Part... parts) throws Exception {
        Pair[] pairs = new Pair[BATCH];
        int[] slots = new int[parts.length * LINE];
        int[][][] loaded = new int[parts.length][BATCH][2];
        CyclicBarrier barrier = new CyclicBarrier(parts.length + 1);
        Thread[] threads = new Thread[parts.length];
        stop = false;
        for (int k = 0; k < parts.length; k++) {
            int part = k;
            threads[k] = new Thread(
                    () -> {
                        try {
                            take(part, parts, pairs, loaded[part], slots, barrier);
                        } catch (InterruptedException | BrokenBarrierException e) {
                            throw new IllegalStateException(e);
                        }
                    },
                    "litmus-" + k);
            threads[k].start();
        }
        long end = System.nanoTime() + millis * 1_000_000L;
        long wrong = 0;
        long done = 0;
        int[][] instance = new int[parts.length][];
        do {
            for (int i = 0; i < BATCH; i++) {
                pairs[i] = new Pair();
            }
            barrier.await();
            barrier.await();
            for (int i = 0; i < BATCH; i++) {
                for (int k = 0; k < parts.length; k++) {
                    instance[k] = loaded[k][i];
                }
                wrong += forbidden.test(instance) ? 1 : 0;
            }
            done += BATCH;
        } while (System.nanoTime() < end);
        stop = true;
        barrier.await();
        for (Thread thread : threads) {
            thread.join();
        }
        Team.report(name, done, wrong);
    }

    private static void take(int part, Part[] parts, Pair[] pairs, int[][] loaded, int[] slots, CyclicBarrier barrier)
            throws InterruptedException, BrokenBarrierException {
        int met = 0;
        for (;;) {
            barrier.await();
            if (stop) {
                return;
            }
            for (int i = 0; i < BATCH; i++) {
                meet(part, parts.length, ++met, slots);
                parts[part].run(pairs[i], loaded[i]);
            }
            barrier.await();
        }
    }

    /** Waits for the others, but not long: one may have no processor. */
    private static void meet(int part, int parts, int number, int[] slots) {
        SLOTS.setRelease(slots, part * LINE, number);
        for (int k = 0; k < parts; k++) {
            for (int spins = 0; spins < 20 && (int) SLOTS.getAcquire(slots, k * LINE) < number; spins++) {
                Thread.onSpinWait();
            }
        }
    }
}
