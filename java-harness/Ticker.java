import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;

/**
 * Counts in a field until killed or its time is over, and tells files how far it is. Arguments: the
 * files' common name, seconds, and optionally a file that ends it when it exists. Threads ticker-0 and ticker-1 each append to their own, NAME.0 and
 * NAME.1, one line every 20 ms: nanoTime and stores so far, two big-endian longs. A line survives
 * kill -9, for a write is the kernel's once it returns. nanoTime is CLOCK_MONOTONIC on Linux. Written
 * for a fast start: no channel, no buffer, no lambda.
 */
public final class Ticker extends Thread {
    /** What is counted. */
    static final class Counter {
        volatile long ticks;
    }

    static final Counter[] COUNTERS = {new Counter(), new Counter()};

    private static volatile boolean ended;

    private final int index;
    private final FileOutputStream out;
    private final long until;
    private final byte[] line = new byte[16];

    private Ticker(int index, FileOutputStream out, long until) {
        super("ticker-".concat(Integer.toString(index)));
        this.index = index;
        this.out = out;
        this.until = until;
    }

    @Override
    public void run() {
        Counter counter = COUNTERS[index];
        long stores = 0;
        long next = 0;
        long now;
        do {
            for (int i = 0; i < 100; i++) {
                counter.ticks = i;
            }
            stores += 100;
            now = System.nanoTime();
            if (now >= next) {
                next = now + 20_000_000;
                tell(now, stores);
            }
        } while (now < until && !ended);
        tell(now, stores);
    }

    private void tell(long now, long stores) {
        for (int i = 0; i < 8; i++) {
            line[i] = (byte) (now >> (56 - 8 * i));
            line[8 + i] = (byte) (stores >> (56 - 8 * i));
        }
        try {
            out.write(line);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Thread[] threads = new Thread[2];
        FileOutputStream[] files = new FileOutputStream[2];
        for (int i = 0; i < threads.length; i++) {
            files[i] = new FileOutputStream(args[0].concat(i == 0 ? ".0" : ".1"));
        }
        long until = System.nanoTime() + Long.parseLong(args[1]) * 1_000_000_000L;
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Ticker(i, files[i], until);
            threads[i].start();
        }
        if (args.length > 2) {
            File end = new File(args[2]);
            while (!end.exists() && System.nanoTime() < until) {
                Thread.sleep(20);
            }
            ended = true;
        }
        for (int i = 0; i < threads.length; i++) {
            threads[i].join();
            files[i].close();
        }
        System.out.println("DONE");
    }
}
