package counts;

import java.io.File;

/**
 * With -Dgate=FILE: what comes behind it waits until FILE exists. Everything before is done by then, and
 * the line GATE says so.
 */
final class Gate {
    private static final String FILE = System.getProperty("gate");
    private static volatile boolean open = FILE == null;

    private Gate() {}

    /** Waits while it is closed. */
    static void pass() {
        while (!open) {
            pause();
        }
    }

    /** Called once: prints GATE and opens it as soon as the file is there. */
    static void open() throws InterruptedException {
        if (open) {
            return;
        }
        // What existed before it: garbage, and arrays that stay.
        byte[][] kept = new byte[20][];
        for (int i = 0; i < 200; i++) {
            kept[i % kept.length] = new byte[60_000];
            kept[i % kept.length][i] = 1;
        }
        System.out.println("GATE");
        File file = new File(FILE);
        while (!file.exists()) {
            Thread.sleep(20);
        }
        int sum = 0;
        for (byte[] array : kept) {
            for (int k = 0; k < array.length; k += 16) {
                sum += array[k] + 1;
            }
        }
        System.out.println("CHECK kept=".concat(Integer.toString(sum)));
        open = true;
    }

    private static void pause() {
        try {
            Thread.sleep(5);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
