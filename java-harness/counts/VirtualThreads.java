package counts;

import held.Turns;
import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads (21 and later, by reflection: the harness is compiled for 17) that touch one object
 * each a known number of times, and lose their carrier between the accesses: by yield, sleep, park and
 * a contended lock. Arguments: threads, collections meanwhile, and {@code silent}. They are called
 * {@code v-0} and so on.
 */
public final class VirtualThreads implements Runnable {
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static Turns[] all;
    private static int[] sums;

    private final int number;

    private VirtualThreads(int number) {
        this.number = number;
    }

    private static int stores(int number) {
        return 3 + number % 7;
    }

    private static int loads(int number) {
        return 2 + number % 11;
    }

    static void store(Turns turns, int n) {
        for (int i = 0; i < n; i++) {
            turns.stored = i;
        }
    }

    static int load(Turns turns, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += turns.loaded + i;
        }
        return sum;
    }

    @Override
    public void run() {
        Turns turns = all[number];
        store(turns, stores(number) - 1);
        leaveCarrier();
        int sum = load(turns, 1);
        LOCK.lock();
        try {
            sum += load(turns, loads(number) - 2);
            Thread.yield();
        } finally {
            LOCK.unlock();
        }
        store(turns, 1);
        LockSupport.parkNanos(1000);
        sums[number] = sum + load(turns, 1);
        String name = "v-".concat(Integer.toString(number));
        Expect.field("held.Turns", "stored", "field", "volatile", "store", name, stores(number));
        Expect.field("held.Turns", "loaded", "field", "volatile", "load", name, loads(number));
    }

    private void leaveCarrier() {
        if (number % 3 == 0) {
            Thread.yield();
        } else {
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        int collections = Integer.parseInt(args[1]);
        Expect.silent = args.length > 2 && args[2].equals("silent");
        Method ofVirtual = Thread.class.getMethod("ofVirtual");
        Class<?> builder = Class.forName("java.lang.Thread$Builder$OfVirtual");
        Method name = builder.getMethod("name", String.class);
        Method start = builder.getMethod("start", Runnable.class);
        all = new Turns[threads];
        sums = new int[threads];
        Thread[] running = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Turns();
        }
        for (int i = 0; i < threads; i++) {
            Object named = name.invoke(ofVirtual.invoke(null), "v-".concat(Integer.toString(i)));
            running[i] = (Thread) start.invoke(named, new VirtualThreads(i));
            if (collections > 0 && i % (threads / collections) == 0) {
                System.gc();
            }
        }
        int sum = 0;
        for (int i = 0; i < threads; i++) {
            running[i].join();
            sum += sums[i];
        }
        if (!Expect.silent) {
            Expect.print();
        }
        System.out.println("CHECK sum=".concat(Integer.toString(sum)));
        System.out.println("DONE");
    }
}
