import java.util.concurrent.CountDownLatch;

/**
 * Threads walker-0, walker-1, ... go through the same array of 1,000 pages at the same time, each in an order of
 * PageWalk: number N in order N % 4. None begins before all are there or ends before all have walked. Between two loads a walker touches nothing of the heap but the array's length.
 */
public final class PageWalkers {
    private PageWalkers() {}

    public static void main(String[] args) throws InterruptedException {
        int touches = Integer.parseInt(args[0]);
        Thread[] walkers = new Thread[Integer.parseInt(args[1])];
        byte[] pages = new byte[(PageWalk.PAGES + 2) * PageWalk.PAGE];
        System.gc();  // into the old generation: other pages than those that were filled with zeros
        int[] sums = new int[walkers.length];
        CountDownLatch there = new CountDownLatch(walkers.length);
        CountDownLatch walked = new CountDownLatch(walkers.length);
        for (int i = 0; i < walkers.length; i++) {
            int order = i % 4;
            int walker = i;
            walkers[i] = new Thread(() -> {
                meet(there);
                sums[walker] = PageWalk.walk(pages, order, PageWalk.PAGES, touches);
                meet(walked);
            }, "walker-" + i);
        }
        for (Thread walker : walkers) {
            walker.start();
        }
        int sum = 0;
        for (int i = 0; i < walkers.length; i++) {
            walkers[i].join();
            sum += sums[i];
        }
        System.out.println("sum " + sum);
        System.out.println("DONE");
    }

    private static void meet(CountDownLatch latch) {
        latch.countDown();
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
