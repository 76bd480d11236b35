package calls;

import java.util.concurrent.CountDownLatch;
import shapes.Native;
import shapes.Rename;

/**
 * Redefined.java ROUNDS [retransform]: methods that are redefined, and retransformed by another agent, while they are
 * timed and while they are under way. Prints EXPECT lines, name=calls, and THROWN lines. Needs -Dharness.native.
 */
public final class Redefined {
    static class Before {
        static int work(int depth) {
            if (depth == 0) {
                return 1;
            }
            return work(depth - 1) + 1;
        }

        static int inside(CountDownLatch here, CountDownLatch go, boolean fail) throws InterruptedException {
            here.countDown();
            go.await();
            if (fail) {
                throw new IllegalStateException("before");
            }
            return 10;
        }
    }

    static class After {
        static int work(int depth) {
            int sum = 0;
            for (int i = 0; i < depth; i++) {
                sum += 2;
            }
            return depth == 0 ? 2 : work(depth - 1) + 2;
        }

        static int inside(CountDownLatch here, CountDownLatch go, boolean fail) throws InterruptedException {
            here.countDown();
            go.await();
            if (fail) {
                throw new IllegalArgumentException("after");
            }
            return 20;
        }
    }

    private static int worked, entered, thrown;

    private Redefined() {}

    private static int work(int depth) {
        worked += depth + 1;
        return Before.work(depth);
    }

    private static void must(int error) {
        if (error != 0) {
            throw new IllegalStateException("JVMTI error ".concat(Integer.toString(error)));
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        boolean retransform = args.length > 1;
        byte[] before = Rename.read(Before.class);
        byte[] after = Rename.rename(Rename.read(After.class), "calls/Redefined$After", "calls/Redefined$Before",
                "After", "Before");
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            boolean fail = round % 4 == 1;
            CountDownLatch here = new CountDownLatch(1);
            CountDownLatch go = new CountDownLatch(1);
            long[] result = new long[1];
            // It ends in code that is not the method's any more.
            Thread inside = new Thread(() -> {
                try {
                    result[0] = Before.inside(here, go, fail);
                } catch (IllegalStateException e) {
                    result[0] = 100;
                } catch (IllegalArgumentException e) {
                    result[0] = 200;
                } catch (InterruptedException e) {
                    result[0] = -1;
                }
            });
            inside.start();
            here.await();
            entered++;
            thrown += fail ? 1 : 0;
            must(retransform && round % 3 == 2 ? Native.retransform(Before.class)
                    : Native.redefine(Before.class, round % 2 == 0 ? after : before));
            for (int i = 0; i < 200; i++) {
                sum += work(i % 10);
            }
            go.countDown();
            inside.join();
            sum += result[0];
        }
        System.out.println("CHECK sum=".concat(Long.toString(sum)));
        System.out.println("EXPECT calls.Redefined$Before.work=".concat(Integer.toString(worked)));
        System.out.println("EXPECT calls.Redefined$Before.inside=".concat(Integer.toString(entered)));
        System.out.println("THROWN calls.Redefined$Before.inside=".concat(Integer.toString(thrown)));
        System.out.println("DONE");
    }
}
