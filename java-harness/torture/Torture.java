package torture;

/**
 * Random programs on many threads, while classes come and go and the collector works. Arguments: seed, threads,
 * rounds of each, milliseconds between collections that are asked for (0: none), `messages` if the texts of
 * exceptions count. What it prints depends on the arguments alone.
 */
public final class Torture {
    private static volatile boolean over;

    private Torture() {}

    public static void main(String[] args) throws Exception {
        long seed = Long.parseLong(args[0]);
        int threads = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]);
        int pause = Integer.parseInt(args[3]);
        boolean messages = args.length > 4 && args[4].equals("messages");
        Thread collections = new Thread(() -> {
            while (!over) {
                System.gc();
                try {
                    Thread.sleep(pause);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }, "collections");
        collections.setDaemon(true);
        if (pause != 0) {
            collections.start();
        }
        Worker[] workers = new Worker[threads];
        for (int i = 0; i < threads; i++) {
            workers[i] = new Worker(i, seed * 257 + i, rounds, messages);
            workers[i].start();
        }
        long checksum = 0;
        long faults = 0;
        long overflows = 0;
        for (Worker worker : workers) {
            worker.join();
            if (worker.failure != null) {
                worker.failure.printStackTrace(System.out);
                System.exit(3);
            }
            checksum = checksum * 31 + worker.checksum;
            faults += worker.faults;
            overflows += worker.overflows;
        }
        over = true;
        long sum = 0;
        for (int each : Worker.shared) {
            sum += each;
        }
        System.out.println("CHECK checksum=" + (checksum >>> 1));
        System.out.println("CHECK faults=" + faults);
        System.out.println("CHECK overflows=" + overflows);
        System.out.println("CHECK swapped=" + sum);
        System.out.println("CHECK locked=" + Worker.underLock);
        System.out.println("DONE");
    }
}
