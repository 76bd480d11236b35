package torture;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Random;

/** One thread: everything it computes follows from its seed. */
final class Worker extends Thread {
    private static final VarHandle INTS = MethodHandles.arrayElementVarHandle(int[].class);
    static final int[] shared = new int[64];
    static final Object lock = new Object();
    static int underLock;

    private final long seed;
    private final int rounds;
    private final boolean messages;
    long checksum;
    int faults;
    int overflows;
    Throwable failure;

    Worker(int id, long seed, int rounds, boolean messages) {
        super("worker-" + id);
        this.seed = seed;
        this.rounds = rounds;
        this.messages = messages;
    }

    private static final class Loader extends ClassLoader {
        Loader() {
            super(Unit.class.getClassLoader());
        }

        Unit make(String name, byte[] file) throws ReflectiveOperationException {
            return (Unit) defineClass(name, file, 0, file.length).getConstructor().newInstance();
        }
    }

    private Unit fill(Unit unit, Random random) {
        unit.a = random.nextInt(1000);
        unit.c = random.nextLong();
        unit.d = random.nextInt(50);
        unit.xs = random.nextInt(12) == 0 ? null : new int[random.nextInt(6) == 0 ? 12 : 16];
        unit.bytes = new byte[17];
        unit.longs = random.nextInt(20) == 0 ? null : new long[8];
        unit.thing = random.nextInt(5) == 0 ? "no unit" : unit;
        return unit;
    }

    /** Makes the classes of one round, links the units with each other. */
    private Unit[] units(long roundSeed, Random random) throws Exception {
        Unit[] units = new Unit[4];
        for (int i = 0; i < units.length; i++) {
            // Each has a loader of its own: it is unloaded when its round is over.
            units[i] = fill(new Loader().make("torture.Made" + i,
                new RandomClass(roundSeed * 31 + i, "torture/Made" + i).make()), random);
        }
        for (Unit unit : units) {
            unit.next = random.nextInt(10) == 0 ? null : units[random.nextInt(units.length)];
            unit.many = units;
        }
        if (random.nextInt(6) == 0) {
            units[random.nextInt(units.length)] = null;
        }
        return units;
    }

    /** A recursion through a field of every frame: ends in StackOverflowError. */
    private int dive(Unit unit, int depth) {
        return unit.a + dive(unit, depth + 1) + unit.b;
    }

    private void round(int n) throws Exception {
        Random random = new Random(seed * 1000003 + n);
        Unit[] units = units(seed * 7919 + n, random);
        Turn turn = new Turn(messages);
        turn.units = units;
        turn.xs = new int[16];
        long sum = 0;
        for (int i = 0; i < 400; i++) {
            Unit unit = units[i & 3];
            // One long run among the short ones: replaced while it runs.
            turn.fuel = i == 100 ? 12000 : 60 + (i & 63);
            if (unit != null) {
                sum = sum * 31 + unit.work(turn, i);
            }
            if (i == 200) {
                // A class that nobody has seen yet where only others were.
                units[1] = units(seed * 104729 + n, random)[2];
            }
            int at = i & 63;
            for (int old = (int) INTS.getVolatile(shared, at); !INTS.compareAndSet(shared, at, old, old + 1); ) {
                old = (int) INTS.getVolatile(shared, at);
            }
            synchronized (lock) {
                underLock++;
            }
        }
        if (n % 8 == 7 && units[0] != null) {
            try {
                dive(units[0], 0);
            } catch (StackOverflowError e) {
                overflows++;
            }
        }
        for (int x : turn.xs) {
            sum = sum * 31 + x;
        }
        for (Unit unit : units) {
            if (unit != null) {
                sum = sum * 31 + unit.a + unit.b + unit.c + (long) unit.d + unit.v + unit.h;
            }
        }
        faults += turn.faults;
        checksum = checksum * 1000003 + sum * 31 + turn.text;
    }

    @Override
    public void run() {
        try {
            for (int n = 0; n < rounds; n++) {
                round(n);
            }
        } catch (Throwable e) {
            failure = e;
        }
    }
}
