import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Starts other programs, and forks in native code, while another thread goes on. Arguments: {@code processes}, or
 * {@code fork} with the library in property harness.native. Prints all that the children print, their status, and how
 * often the other thread stored a static field.
 */
public final class Children {
    /** Stored by thread ticker only. */
    private static long ticks;

    private static volatile boolean stop;

    private Children() {}

    static native int fork(int how);

    public static void main(String[] args) throws IOException, InterruptedException {
        Thread ticker = new Thread(Children::tick, "ticker");
        ticker.start();
        if (args[0].equals("fork")) {
            System.load(System.getProperty("harness.native"));
            for (int how = 0; how < 3; how++) {
                System.out.flush();
                System.out.println("status " + fork(how));
            }
        } else {
            processes();
        }
        stop = true;
        ticker.join();
        System.err.println("CHECK ticks=" + ticks);
        System.out.println("DONE");
    }

    private static void tick() {
        long done = 0;
        while (!stop) {
            ticks = ++done;
            if (done % 16 == 0) {
                Thread.yield();
            }
        }
    }

    private static void processes() throws IOException, InterruptedException {
        run("some text", "/bin/cat");
        run("", "/bin/sh", "-c", "echo out; echo err >&2; exit 3");
        // What a child inherits: signal masks, limits, open files.
        run("", "/bin/sh", "-c", "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ulimit -a");
        run("", "/bin/ls", "/proc/self/fd");
        run("", "/bin/sh", "-c", "kill -SEGV $$");
        run("", System.getProperty("java.home") + "/bin/java", "-Xshare:auto", "-Xint", "-version");
        try {
            run("", "/nowhere/to/be/found");
        } catch (IOException e) {
            System.out.println("no such program");
        }
    }

    private static void run(String input, String... command) throws IOException, InterruptedException {
        List<String> words = new ArrayList<>(List.of(command));
        Process process = new ProcessBuilder(words).redirectErrorStream(true).start();
        try (OutputStream out = process.getOutputStream()) {
            out.write(input.getBytes(StandardCharsets.US_ASCII));
        } catch (IOException e) {
            // A child that reads nothing may have ended already.
        }
        byte[] output;
        try (InputStream in = process.getInputStream()) {
            output = in.readAllBytes();
        }
        System.out.println(command[0] + ": " + process.waitFor());
        System.out.print(new String(output, StandardCharsets.US_ASCII));
    }
}
