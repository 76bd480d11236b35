package cover;

import java.util.ArrayList;

/**
 * One way to reach the heap: a list of loops that a thread of its own runs, named like the path, so that the
 * recording tells its accesses from all others. Warmed up by thread main first: linking, class initialisers and
 * compilation are no part of it.
 */
final class Path {
    private static final int WARM_UPS = 3;

    /** What was loaded; must not change under the agent. */
    static int sum;

    private final String name;
    private final ArrayList<Loop> loops = new ArrayList<>();
    private final ArrayList<Object> targets = new ArrayList<>();
    private final ArrayList<Integer> times = new ArrayList<>();
    private Throwable failure;

    Path(String name) {
        this.name = name;
    }

    String name() {
        return name;
    }

    void add(Loop loop, Object target, int count) {
        loops.add(loop);
        targets.add(target);
        times.add(count);
    }

    void run() throws Throwable {
        for (int k = 0; k < loops.size(); k++) {
            for (int i = 0; i < WARM_UPS; i++) {
                sum += loops.get(k).run(targets.get(k), loops.get(k).warmUp());
            }
        }
        Thread thread = new Thread(this::measured, name);
        // Where only these threads are observed: what others allocated is known after a collection.
        System.gc();
        thread.start();
        thread.join();
        if (failure != null) {
            throw failure;
        }
    }

    private void measured() {
        try {
            for (int k = 0; k < loops.size(); k++) {
                sum += loops.get(k).run(targets.get(k), times.get(k));
            }
        } catch (Throwable e) {
            failure = e;
        }
    }
}
