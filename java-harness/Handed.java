import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/** Objects made by one thread and used at once by another. Arguments: pairs of threads, objects of each pair. */
public final class Handed {
    static class Node {
        volatile int updated;
        volatile int stored;
    }

    private interface Task {
        void run() throws InterruptedException;
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
        for (int pair = 0; pair < pairs; pair++) {
            SynchronousQueue<Node> queue = new SynchronousQueue<>();
            threads[2 * pair] = start(() -> {
                for (int i = 0; i < objects; i++) {
                    queue.put(new Node());
                }
            });
            threads[2 * pair + 1] = start(() -> {
                for (int i = 0; i < objects; i++) {
                    Node node = queue.take();
                    updater.getAndAdd(node, 1);
                    setter.set(node, 5);
                    if (setter.get(node) != 5) {
                        throw new IllegalStateException("not stored");
                    }
                }
            });
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("DONE");
    }
}
