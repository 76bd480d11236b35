package cover;

import covered.Held;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;

/** Whole objects (clone, serialization), field updaters, and the mark word (locks, identity hash codes). */
final class ObjectPaths {
    private static final String ALL = "covered.Held$All";
    private static final String BARE = "covered.Held$Bare";
    private static final String[] FIELDS = {"z", "b", "c", "s", "i", "j", "f", "d", "o"};

    private static final AtomicIntegerFieldUpdater<Held.Updated> INT =
            AtomicIntegerFieldUpdater.newUpdater(Held.Updated.class, "i");
    private static final AtomicLongFieldUpdater<Held.Updated> LONG =
            AtomicLongFieldUpdater.newUpdater(Held.Updated.class, "j");
    private static final AtomicReferenceFieldUpdater<Held.Updated, Object> OBJECT =
            AtomicReferenceFieldUpdater.newUpdater(Held.Updated.class, Object.class, "o");

    /** Where copies escape to. */
    static Object escaped;

    private ObjectPaths() {}

    static void run() throws Throwable {
        Path clone = new Path("clone/object");
        clone.add(
                (h, n) -> {
                    for (int i = 0; i < n; i++) {
                        escaped = ((Held.All) h).clone();
                    }
                    return 0;
                },
                new Held.All(), Expect.TIMES);
        for (String field : FIELDS) {
            Expect.bound(clone.name(), ALL, field, "field", "load", 1000, 2000, "overlap");
            Expect.bound(clone.name(), ALL, field, "field", "store", 1000, 2000, "overlap");
        }
        clone.run();
        serialization();
        updaters();
        marks();
    }

    private static void serialization() throws Throwable {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        ObjectOutputStream out = new ObjectOutputStream(bytes);
        Path write = new Path("serialization/write");
        write.add(
                (h, n) -> {
                    for (int i = 0; i < n; i++) {
                        out.writeUnshared(h);
                    }
                    out.flush();
                    return bytes.size();
                },
                new Held.All(), Expect.TIMES);
        write.run();
        ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()));
        Path read = new Path("serialization/read");
        read.add(
                (h, n) -> {
                    for (int i = 0; i < n; i++) {
                        escaped = in.readUnshared();
                    }
                    return 0;
                },
                null, Expect.TIMES);
        read.run();
        for (String field : FIELDS) {
            Expect.exact(write.name(), ALL, field, "field", "load", Expect.TIMES);
            Expect.exact(read.name(), ALL, field, "field", "store", Expect.TIMES);
        }
    }

    private static void updaters() throws Throwable {
        Held.Updated held = new Held.Updated();
        String name = "covered.Held$Updated";
        Path path = new Path("FieldUpdater/");
        path.add(ObjectPaths::update, held, Expect.TIMES);
        for (String field : new String[] {"i", "j", "o"}) {
            Expect.exact(path.name(), name, field, "field", "store", Expect.TIMES);
            Expect.exact(path.name(), name, field, "field", "rmw", 2 * Expect.TIMES);
            // One of its own, and that of getAndSet's Java code.
            Expect.bound(path.name(), name, field, "field", "load", 1000, 2000, "loads-first");
        }
        path.run();
    }

    private static int update(Object target, int times) {
        Held.Updated h = (Held.Updated) target;
        int sum = 0;
        for (int i = 0; i < times; i++) {
            INT.set(h, 3);
            LONG.set(h, 3);
            OBJECT.set(h, h);
            sum += INT.compareAndSet(h, 3, 4) ? 1 : 0;
            sum += LONG.compareAndSet(h, 3, 4) ? 1 : 0;
            sum += OBJECT.compareAndSet(h, h, null) ? 1 : 0;
            sum += INT.getAndSet(h, 5) + (int) LONG.getAndAdd(h, 5);
            sum += Place.isNull(OBJECT.getAndSet(h, h));
            sum += INT.get(h) + (int) LONG.get(h) + Place.isNull(OBJECT.get(h));
        }
        return sum;
    }

    private static void marks() throws Throwable {
        Path locked = new Path("synchronized/uncontended");
        locked.add(ObjectPaths::lock, new Held.Bare(), Expect.TIMES);
        // Locking and unlocking swap the mark word.
        Expect.bound(locked.name(), BARE, "-", "mark", "rmw", 2000, 2000, "");
        locked.run();

        Held.Bare[] fresh = new Held.Bare[Expect.TIMES + 10];
        for (int i = 0; i < fresh.length; i++) {
            fresh[i] = new Held.Bare();
        }
        Path hash = new Path("identityHashCode/first");
        hash.add((a, n) -> hashes((Held.Bare[]) a, n), fresh, Expect.TIMES);
        // The three warm-ups have given the first its hash code.
        Expect.exact(hash.name(), BARE, "-", "mark", "rmw", Expect.TIMES - 1);
        Expect.bound(hash.name(), BARE, "-", "mark", "load", Expect.TIMES - 1, 4 * Expect.TIMES, "vm-looks");
        hash.run();

        Path again = new Path("identityHashCode/again");
        again.add(
                (a, n) -> {
                    int sum = 0;
                    for (int i = 0; i < n; i++) {
                        sum |= System.identityHashCode(a);
                    }
                    return sum == 0 ? 1 : 0;
                },
                new Held.Bare(), Expect.TIMES);
        Expect.bound(again.name(), BARE, "-", "mark", "load", Expect.TIMES, 4 * Expect.TIMES, "vm-looks");
        again.run();

        Held.Bare shared = new Held.Bare();
        CountDownLatch both = new CountDownLatch(2);
        Thread rival = new Thread(() -> contend(shared, both, Expect.TIMES), "rival/");
        Path contended = new Path("synchronized/contended");
        contended.add((h, n) -> n == 1 ? lock(h, 1) : contend(h, both, n), shared, Expect.TIMES);
        // A monitor is looked up by the mark word, and holds all the rest.
        Expect.bound(
                contended.name(), BARE, "-", "mark", "load", Expect.TIMES, 40L * Expect.TIMES, "vm-looks");
        System.gc();  // as in Path.run
        rival.start();
        contended.run();
        rival.join();
    }

    private static int lock(Object h, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += lockOnce(h);
        }
        return sum;
    }

    /** Never inlined: C2 makes one lock of many that follow each other. */
    private static int lockOnce(Object h) {
        synchronized (h) {
            return 1;
        }
    }

    private static int contend(Object h, CountDownLatch both, int n) {
        both.countDown();
        try {
            both.await();
            for (int i = 0; i < n; i++) {
                synchronized (h) {
                    if (i % 100 == 0) {
                        h.wait(1);
                    }
                }
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return n;
    }

    private static int hashes(Held.Bare[] all, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum |= System.identityHashCode(all[i]);
        }
        return sum == 0 ? 1 : 0;
    }
}
