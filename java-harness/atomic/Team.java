package atomic;

/**
 * Threads that do one thing again and again for a given time, and what each of them counted. Thread k is called
 * {@code atomic-k}: the agent may be told to observe only some.
 */
final class Team {
    /** Does its thing once or some times; returns how often. */
    interface Step {
        long run(int member, long round);
    }

    private Team() {}

    /** Sum of what the steps of all members returned. */
    static long run(int members, int millis, Step step) throws InterruptedException {
        long[] counts = new long[members];
        Throwable[] failures = new Throwable[members];
        Thread[] threads = new Thread[members];
        for (int m = 0; m < members; m++) {
            int member = m;
            threads[m] = new Thread(
                    () -> {
                        try {
                            counts[member] = member(member, millis, step);
                        } catch (Throwable e) {
                            failures[member] = e;
                        }
                    },
                    "atomic-" + m);
        }
        for (Thread thread : threads) {
            thread.start();
        }
        long sum = 0;
        for (int m = 0; m < members; m++) {
            threads[m].join();
            if (failures[m] != null) {
                throw new IllegalStateException(failures[m]);
            }
            sum += counts[m];
        }
        return sum;
    }

    /** At least one round, however slow. */
    private static long member(int member, int millis, Step step) {
        long end = System.nanoTime() + millis * 1_000_000L;
        long count = 0;
        long round = 0;
        do {
            for (int i = 0; i < 100; i++) {
                count += step.run(member, ++round);
            }
        } while (System.nanoTime() < end);
        return count;
    }

    /** One line for each test: what went wrong must be 0, what was done must not. */
    static void report(String name, long done, long wrong) {
        System.out.println("TEST " + name + " wrong=" + wrong + " done=" + done);
    }
}
