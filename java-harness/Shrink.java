import java.io.File;

/**
 * A heap that grows by MB megabytes, is emptied and shrinks, CYCLES times. Prints GATE when it is small again
 * (or will not become so), and ends when FILE exists.
 */
public final class Shrink {
    private static byte[][] kept;

    private Shrink() {}

    public static void main(String[] args) throws InterruptedException {
        int megabytes = Integer.parseInt(args[0]);
        for (int cycle = 0; cycle < Integer.parseInt(args[1]); cycle++) {
            kept = new byte[megabytes][];
            for (int i = 0; i < megabytes; i++) {
                kept[i] = new byte[(1 << 20) - 64];
                for (int k = 0; k < kept[i].length; k += 4096) {
                    kept[i][k] = 1;
                }
            }
            kept = null;
            long smallest = Long.MAX_VALUE;
            for (int unchanged = 0; unchanged < 8; unchanged++) {
                System.gc();
                Thread.sleep(100);
                long now = Runtime.getRuntime().totalMemory();
                if (now < smallest) {
                    smallest = now;
                    unchanged = 0;
                }
            }
        }
        System.out.println("CHECK heap=".concat(Long.toString(Runtime.getRuntime().totalMemory() >> 20)));
        System.out.println("GATE");
        File file = new File(args[2]);
        while (!file.exists()) {
            Thread.sleep(20);
        }
        System.out.println("DONE");
    }
}
