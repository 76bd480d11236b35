package ends;

import java.util.ArrayList;
import java.util.List;
import shapes.Native;
import shapes.Subject;
import shapes.Touch;

/** The ways a program can end, and threads that others made. Argument: which. */
public final class Ends {
    private static final Subject[] SUBJECTS = new Subject[4];
    private static volatile boolean touched;

    private Ends() {}

    /** Touches for ever. */
    private static final class Loop extends Thread {
        Loop(String name) {
            super(name);
            setDaemon(true);
        }

        @Override
        public void run() {
            Subject own = new Subject();
            while (true) {
                own.touch(10, 10);
                touched = true;
            }
        }
    }

    private static final class Worker extends Thread {
        private final String what;

        Worker(String what) {
            super("ender");
            this.what = what;
        }

        @Override
        public void run() {
            SUBJECTS[0].touch(5, 6);
            switch (what) {
                case "exit": System.exit(3); break;
                case "halt": Runtime.getRuntime().halt(4); break;
                case "throw": throw new IllegalStateException("thrown by a worker");
                default: break;
            }
        }
    }

    private static void loops() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            new Loop("loop-".concat(Integer.toString(i))).start();
        }
        while (!touched) {
            Thread.sleep(1);
        }
    }

    private static void fill() {
        List<byte[]> kept = new ArrayList<>();
        while (true) {
            kept.add(new byte[256 * 1024]);
        }
    }

    /** By reflection: the harness is compiled for 17. No name for null. */
    private static Thread startVirtual(String name, Runnable work) throws ReflectiveOperationException {
        Class<?> type = Class.forName("java.lang.Thread$Builder$OfVirtual");
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        if (name != null) {
            builder = type.getMethod("name", String.class).invoke(builder, name);
        }
        return (Thread) type.getMethod("start", Runnable.class).invoke(builder, work);
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < SUBJECTS.length; i++) {
            SUBJECTS[i] = new Subject();
        }
        SUBJECTS[1].touch(7, 8);
        switch (args[0]) {
            case "daemon":
                loops();
                break;
            case "exit":
            case "halt":
                Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                    SUBJECTS[2].touch(9, 10);
                    System.out.println("hook");
                }));
                loops();
                new Worker(args[0]).start();
                Thread.sleep(60000);
                break;
            case "throw":
                Thread worker = new Worker("throw");
                worker.start();
                worker.join();
                throw new IllegalArgumentException("thrown by main");
            case "signal":
                Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                    SUBJECTS[2].touch(9, 10);
                    System.out.println("hook");
                }));
                loops();
                System.out.println("READY");
                Thread.sleep(60000);
                break;
            case "memory":
                try {
                    fill();
                } catch (OutOfMemoryError e) {
                    System.out.println("caught ".concat(e.getMessage()));
                }
                SUBJECTS[3].touch(11, 12);
                fill();
                break;
            case "virtual":
                startVirtual(null, () -> SUBJECTS[0].touch(5, 6)).join();
                startVirtual("first name", () -> {
                    SUBJECTS[1].touch(1, 2);
                    Thread.currentThread().setName("w\u00f6rker \u65e5\u672c \ud83d\ude00");
                    SUBJECTS[1].touch(7, 8);
                }).join();
                startVirtual("\u00e4".repeat(5000), () -> SUBJECTS[2].touch(9, 10)).join();
                break;
            case "attach":
                Touch[] touches = {SUBJECTS[0], SUBJECTS[1], SUBJECTS[2], SUBJECTS[3]};
                System.out.println("calls ".concat(Integer.toString(Native.attach(touches, 20, 30))));
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.out.println("DONE");
    }
}
