package calls;

import java.io.FileInputStream;
import java.io.IOException;
import java.util.Map;

/**
 * Blocked.java PIPE: three threads wait in native methods called from Java: "reader" for bytes of PIPE (two, the second
 * ends the program), "waiter" in Object.wait, "sleeper" in Thread.sleep. Prints BLOCKED when all are there, and
 * after the first byte how deep each one's stack is, then BLOCKED again.
 */
public final class Blocked {
    private static final Object LOCK = new Object();
    private static volatile boolean over;
    private static int sum;

    private Blocked() {}

    static int reads(FileInputStream in) throws IOException {
        byte[] one = new byte[1];
        return in.read(one, 0, 1);
    }

    static void waits() throws InterruptedException {
        synchronized (LOCK) {
            while (!over) {
                LOCK.wait();
            }
        }
    }

    static void sleeps() {
        while (!over) {
            try {
                Thread.sleep(1_000_000);
            } catch (InterruptedException e) {
                sum++;
            }
        }
    }

    private static void await(Thread thread, Thread.State state) throws InterruptedException {
        while (thread.getState() != state) {
            Thread.sleep(5);
        }
    }

    private static void show(Thread thread, String method) {
        int depth = 0;
        int found = -1;
        for (StackTraceElement frame : thread.getStackTrace()) {
            if (frame.getMethodName().equals(method)) {
                found = depth;
            }
            depth++;
        }
        System.out.println("STACK " + thread.getName() + " " + (found > 0) + " " + (depth > found));
    }

    public static void main(String[] args) throws Exception {
        FileInputStream in = new FileInputStream(args[0]);
        Thread waiter = new Thread("waiter") {
            @Override
            public void run() {
                try {
                    waits();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        };
        Thread sleeper = new Thread(Blocked::sleeps, "sleeper");
        Thread main = Thread.currentThread();
        Thread shower = new Thread(() -> {
            try {
                await(waiter, Thread.State.WAITING);
                await(sleeper, Thread.State.TIMED_WAITING);
                Thread.sleep(100);
                System.out.println("BLOCKED");
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        main.setName("reader");
        waiter.start();
        sleeper.start();
        shower.start();
        sum += reads(in);
        // Stacks are walked, and objects on them moved, while the calls are under way.
        show(waiter, "waits");
        show(sleeper, "sleeps");
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        for (Map.Entry<Thread, StackTraceElement[]> each : Thread.getAllStackTraces().entrySet()) {
            sum += each.getValue().length > 100 ? 1000 : 0;
        }
        System.out.println("AGAIN");
        sum += reads(in);
        over = true;
        synchronized (LOCK) {
            LOCK.notifyAll();
        }
        sleeper.interrupt();
        waiter.join();
        sleeper.join();
        shower.join();
        System.out.println("CHECK sum=" + sum);
        System.out.println("DONE");
    }
}
