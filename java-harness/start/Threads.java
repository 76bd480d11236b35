package start;

import java.lang.reflect.Method;

/** Runs a platform thread and, where the JVM has them, a virtual one, each to its end. */
public final class Threads {
    private Threads() {}

    public static void main(String[] args) throws Exception {
        Thread platform = new Thread(() -> System.out.println("platform ran"), "one");
        platform.start();
        platform.join();
        if (Runtime.version().feature() >= 21) {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            Runnable task = () -> System.out.println("virtual ran");
            ((Thread) start.invoke(null, task)).join();
        }
        System.out.println("DONE");
    }
}
