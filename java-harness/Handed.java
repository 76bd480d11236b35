import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Objects made by one thread and used at once by another. Arguments: pairs of threads, objects of each pair; with
 * a third one both of a pair make objects, and use each other's.
 */
public final class Handed {
    static class Node {
        volatile int updated;
        volatile int stored;
    }

    private interface Task {
        void run() throws InterruptedException;
    }

    private interface Use {
        void of(Node node);
    }

    private static void exchange(int objects, AtomicReference<Node> out, AtomicReference<Node> in, Use use) {
        for (int i = 0; i < objects; i++) {
            out.set(new Node());
            Node node;
            while ((node = in.getAndSet(null)) == null) {
                Thread.yield();
            }
            use.of(node);
            while (out.get() != null) {
                Thread.yield();
            }
        }
    }

    private static Thread start(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws InterruptedException {
        int pairs = Integer.parseInt(args[0]);
        int objects = Integer.parseInt(args[1]);
        AtomicIntegerFieldUpdater<Node> updater = AtomicIntegerFieldUpdater.newUpdater(Node.class, "updated");
        AtomicIntegerFieldUpdater<Node> setter = AtomicIntegerFieldUpdater.newUpdater(Node.class, "stored");
        Thread[] threads = new Thread[2 * pairs];
        Use use = node -> {
            updater.getAndAdd(node, 1);
            setter.set(node, 5);
            if (setter.get(node) != 5) {
                throw new IllegalStateException("not stored");
            }
        };
        boolean both = args.length > 2;
        for (int pair = 0; pair < pairs; pair++) {
            if (both) {
                AtomicReference<Node> forth = new AtomicReference<>();
                AtomicReference<Node> back = new AtomicReference<>();
                threads[2 * pair] = start(() -> exchange(objects, forth, back, use));
                threads[2 * pair + 1] = start(() -> exchange(objects, back, forth, use));
                continue;
            }
            SynchronousQueue<Node> queue = new SynchronousQueue<>();
            threads[2 * pair] = start(() -> {
                for (int i = 0; i < objects; i++) {
                    queue.put(new Node());
                }
            });
            threads[2 * pair + 1] = start(() -> {
                for (int i = 0; i < objects; i++) {
                    use.of(queue.take());
                }
            });
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("DONE");
    }
}
