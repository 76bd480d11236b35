import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Counts in a field until killed or its time is over, and tells a file mapped in memory how far it
 * is, which survives kill -9. Arguments: the file, seconds. Threads ticker-0 and ticker-1 each own
 * half of the file: a long with the number of lines, then lines of (nanoTime, stores so far) as
 * longs, in native order, one every 20 ms. nanoTime is CLOCK_MONOTONIC on Linux.
 */
public final class Ticker extends Thread {
    static final int HALF = 1 << 16;

    /** What is counted. */
    static final class Counter {
        volatile long ticks;
    }

    static final Counter[] COUNTERS = {new Counter(), new Counter()};

    private final int index;
    private final ByteBuffer lines;
    private final long until;

    private Ticker(int index, ByteBuffer lines, long until) {
        super("ticker-" + index);
        this.index = index;
        this.lines = lines;
        this.until = until;
    }

    @Override
    public void run() {
        Counter counter = COUNTERS[index];
        long stores = 0;
        long count = 0;
        long next = 0;
        while (true) {
            for (int i = 0; i < 100; i++) {
                counter.ticks = i;
            }
            stores += 100;
            long now = System.nanoTime();
            if (now < next) {
                continue;
            }
            next = now + 20_000_000;
            int at = 8 + (int) (count % ((HALF - 8) / 16)) * 16;
            lines.putLong(at, now);
            lines.putLong(at + 8, stores);
            lines.putLong(0, ++count);
            if (now > until) {
                return;
            }
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        long until = System.nanoTime() + Long.parseLong(args[1]) * 1_000_000_000L;
        MappedByteBuffer all;
        try (FileChannel channel = FileChannel.open(
                Path.of(args[0]), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            all = channel.map(FileChannel.MapMode.READ_WRITE, 0, 2L * HALF);
        }
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            all.limit((i + 1) * HALF).position(i * HALF);
            threads[i] = new Ticker(i, all.slice().order(ByteOrder.nativeOrder()), until);
            threads[i].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        System.out.println("DONE");
    }
}
