package counts;

/**
 * Makes the heap grow, shrink and be collected while the workers go on: `collections` calls of
 * System.gc(), and twice in that time 20 MB of arrays that live for a while.
 */
final class Churn extends Thread {
    /** Collections done; workers wait for it so that their accesses spread over all of them. */
    static volatile int done;

    private final int collections;
    private byte[][] kept;

    Churn(int collections) {
        super("churn");
        this.collections = collections;
    }

    @Override
    public void run() {
        for (int i = 0; i < collections; i++) {
            if (i % 40 == 10) {
                kept = new byte[20][];
                for (int k = 0; k < kept.length; k++) {
                    kept[k] = new byte[1 << 20];
                }
            } else if (i % 40 == 20) {
                kept = null;
            }
            System.gc();
            done = i + 1;
        }
        done = Integer.MAX_VALUE;
    }
}
