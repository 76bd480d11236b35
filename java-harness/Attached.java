import java.io.File;
import java.util.Arrays;
import java.util.zip.Deflater;

/**
 * A program that an agent is attached to: LIVE arrays of 1 or 5 MB with known contents, THREADS that compress
 * (JNI critical arrays, most of the time in native code) and compare what comes out. Prints GATE, and
 * goes on to its end when FILE exists.
 */
public final class Attached extends Thread {
    private static final int SIZE = 150_000;
    private static volatile boolean over;
    private final byte[] text;
    private final byte[] expected;
    private int rounds;
    private int wrong;

    private Attached(byte[] text, byte[] expected) {
        this.text = text;
        this.expected = expected;
    }

    /** Length of what is in out; 0 if it did not fit. Allocates next to nothing. */
    private static int pack(byte[] text, byte[] out) {
        Deflater deflater = new Deflater(9);
        deflater.setInput(text);
        deflater.finish();
        int length = deflater.deflate(out);
        boolean whole = deflater.finished();
        deflater.end();
        return whole ? length : 0;
    }

    @Override
    public void run() {
        byte[] out = new byte[SIZE * 2];
        while (!over) {
            int length = pack(text, out);
            if (!Arrays.equals(out, 0, length, expected, 0, expected.length)) {
                wrong++;
            }
            rounds++;
        }
    }

    public static void main(String[] args) throws InterruptedException {
        byte[][] live = new byte[Integer.parseInt(args[0])][];
        for (int i = 0; i < live.length; i++) {
            // Some are larger than any region of this heap.
            live[i] = new byte[((i % 16 == 0 ? 5 : 1) << 20) - 64];
            Arrays.fill(live[i], (byte) (i + 1));
        }
        System.gc();
        System.gc();
        byte[] text = new byte[SIZE];
        for (int i = 0; i < SIZE; i++) {
            text[i] = (byte) (i * i >> 7);
        }
        byte[] out = new byte[SIZE * 2];
        byte[] expected = Arrays.copyOf(out, pack(text, out));
        Attached[] threads = new Attached[Integer.parseInt(args[1])];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Attached(text, expected);
            threads[i].start();
        }
        System.out.println("GATE");
        File file = new File(args[2]);
        while (!file.exists()) {
            Thread.sleep(20);
        }
        over = true;
        int wrong = 0;
        for (Attached thread : threads) {
            thread.join();
            wrong += thread.wrong + (thread.rounds > 0 ? 0 : 1);
        }
        int different = 0;
        for (int i = 0; i < live.length; i++) {
            for (int k = 0; k < live[i].length; k += 4096) {
                if (live[i][k] != (byte) (i + 1)) {
                    different++;
                }
            }
        }
        System.out.println("CHECK wrong=".concat(Integer.toString(wrong)));
        System.out.println("CHECK different=".concat(Integer.toString(different)));
        System.out.println("DONE");
    }
}
