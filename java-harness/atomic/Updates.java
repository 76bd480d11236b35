package atomic;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Eight threads change shared objects for a while: no update may be lost, no value torn, no neighbour changed.
 * Argument: milliseconds for each test. Prints lines {@code TEST name wrong=N done=N} and {@code DONE}.
 */
public final class Updates {
    private static final int MEMBERS = 8;
    private static final VarHandle I = handle("i", int.class);
    private static final VarHandle J = handle("j", long.class);
    private static final VarHandle B = handle("b", byte.class);
    private static final VarHandle S = handle("s", short.class);
    private static final VarHandle D = handle("d", double.class);
    private static final VarHandle O = handle("o", Object.class);
    private static final VarHandle INTS = MethodHandles.arrayElementVarHandle(int[].class);
    private static final VarHandle BYTES = MethodHandles.arrayElementVarHandle(byte[].class);

    private static final Shared SHARED = new Shared();
    private static final int[] ints = new int[16];
    private static final byte[] bytes = new byte[16];
    private static final ReentrantLock LOCK = new ReentrantLock();

    private Updates() {}

    private static VarHandle handle(String name, Class<?> type) {
        try {
            return MethodHandles.lookup().findVarHandle(Shared.class, name, type);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int millis = Integer.parseInt(args[0]);
        compareAndSet(millis);
        add(millis);
        swap(millis);
        bits(millis);
        halves(millis);
        neighbours(millis);
        locks(millis);
        System.out.println("DONE");
    }

    private static void compareAndSet(int millis) throws InterruptedException {
        SHARED.i = 0;
        SHARED.j = 0;
        SHARED.b = 0;
        SHARED.d = 0;
        ints[3] = 0;
        long done = Team.run(MEMBERS, millis, (member, round) -> {
            int i;
            do {
                i = SHARED.i;
            } while (!I.compareAndSet(SHARED, i, i + 1));
            long j;
            do {
                j = SHARED.j;
            } while (!J.weakCompareAndSet(SHARED, j, j + 1));
            byte b;
            do {
                b = SHARED.b;
            } while (!B.compareAndSet(SHARED, b, (byte) (b + 1)));
            double d;
            do {
                d = SHARED.d;
            } while (!D.compareAndSet(SHARED, d, d + 1));
            int e = (int) INTS.getVolatile(ints, 3);
            for (int seen; (seen = (int) INTS.compareAndExchange(ints, 3, e, e + 1)) != e; ) {
                e = seen;
            }
            return 1;
        });
        Team.report("compareAndSet.int", done, SHARED.i - done);
        Team.report("compareAndSet.long", done, SHARED.j - done);
        Team.report("compareAndSet.byte", done, SHARED.b - (byte) done);
        Team.report("compareAndSet.double", done, (long) SHARED.d - done);
        Team.report("compareAndExchange.element", done, ints[3] - done);
    }

    private static void add(int millis) throws InterruptedException {
        SHARED.i = 0;
        SHARED.j = 0;
        SHARED.b = 0;
        SHARED.s = 0;
        ints[5] = 0;
        bytes[5] = 0;
        long done = Team.run(MEMBERS, millis, (member, round) -> {
            I.getAndAdd(SHARED, 1);
            J.getAndAdd(SHARED, 3L);
            B.getAndAdd(SHARED, (byte) 1);
            S.getAndAdd(SHARED, (short) 1);
            INTS.getAndAdd(ints, 5, 7);
            BYTES.getAndAdd(bytes, 5, (byte) 1);
            return 1;
        });
        Team.report("getAndAdd.int", done, SHARED.i - (int) done);
        Team.report("getAndAdd.long", done, SHARED.j - 3 * done);
        Team.report("getAndAdd.byte", done, SHARED.b - (byte) done);
        Team.report("getAndAdd.short", done, SHARED.s - (short) done);
        Team.report("getAndAdd.element", done, ints[5] - (int) (7 * done));
        Team.report("getAndAdd.byteElement", done, bytes[5] - (byte) done);
    }

    /** What goes in comes out, once: the sum of all that was put is that of all that was taken. */
    private static void swap(int millis) throws InterruptedException {
        SHARED.j = 0;
        SHARED.o = 0L;
        long[] balance = new long[2 * MEMBERS];
        long done = Team.run(MEMBERS, millis, (member, round) -> {
            long mine = round * MEMBERS + member;
            balance[2 * member] += mine - (long) J.getAndSet(SHARED, mine);
            balance[2 * member + 1] += mine - (Long) O.getAndSet(SHARED, (Object) mine);
            return 1;
        });
        long longs = 0;
        long objects = 0;
        for (int m = 0; m < MEMBERS; m++) {
            longs += balance[2 * m];
            objects += balance[2 * m + 1];
        }
        Team.report("getAndSet.long", done, longs - SHARED.j);
        Team.report("getAndSet.object", done, objects - (Long) SHARED.o);
    }

    /** Each thread turns a bit of its own, an odd number of times. */
    private static void bits(int millis) throws InterruptedException {
        SHARED.i = 0;
        SHARED.b = 0;
        long[] wrong = new long[1];
        long done = Team.run(MEMBERS, millis, (member, round) -> {
            int bit = 1 << member;
            int before = (int) I.getAndBitwiseXor(SHARED, bit);
            byte was = (byte) B.getAndBitwiseOr(SHARED, (byte) bit);
            byte then = (byte) B.getAndBitwiseAnd(SHARED, (byte) ~bit);
            boolean set = (before & bit) != 0;
            if (set != (round % 2 == 0) || (was & bit) != 0 || (then & bit) == 0) {
                synchronized (wrong) {
                    wrong[0]++;
                }
            }
            return 1;
        });
        Team.report("getAndBitwise", done, wrong[0]);
    }

    /** Both halves of a value are always equal. */
    private static void halves(int millis) throws InterruptedException {
        SHARED.j = 0;
        SHARED.d = 0;
        SHARED.plain = 0;
        SHARED.plainDouble = 0;
        long[] wrong = new long[1];
        long done = Team.run(MEMBERS, millis, (member, round) -> {
            long both = (round & 0xfffff) * 0x1_0000_0001L;
            if (member % 2 == 0) {
                SHARED.j = both;
                SHARED.d = Double.longBitsToDouble(both);
                SHARED.plain = both;
                SHARED.plainDouble = Double.longBitsToDouble(both);
                return 1;
            }
            int torn = torn(SHARED.j) + torn(Double.doubleToRawLongBits(SHARED.d)) + torn(SHARED.plain)
                    + torn(Double.doubleToRawLongBits(SHARED.plainDouble));
            if (torn != 0) {
                synchronized (wrong) {
                    wrong[0]++;
                }
            }
            return 1;
        });
        Team.report("halves", done, wrong[0]);
    }

    private static int torn(long v) {
        return (int) v == (int) (v >>> 32) ? 0 : 1;
    }

    /** Each thread has a field or element of its own; nobody else's store may change it. */
    private static void neighbours(int millis) throws InterruptedException {
        long[] wrong = new long[1];
        short[] shorts = new short[MEMBERS];
        boolean[] booleans = new boolean[MEMBERS];
        long done = Team.run(MEMBERS, millis, (member, round) -> {
            boolean good = bytes[member + 8] == (byte) (round - 1) && ints[member + 8] == (int) (round - 1)
                    && shorts[member] == (short) (round - 1) && booleans[member] == (round % 2 == 0);
            bytes[member + 8] = (byte) round;
            ints[member + 8]++;
            shorts[member]++;
            booleans[member] = round % 2 != 0;
            if (!(good & field(member, (byte) round))) {
                synchronized (wrong) {
                    wrong[0]++;
                }
            }
            return 1;
        });
        Team.report("neighbours", done, wrong[0]);
    }

    private static boolean field(int member, byte round) {
        byte before = (byte) (round - 1);
        boolean good;
        switch (member) {
            case 0:
                good = SHARED.b0 == before;
                SHARED.b0++;
                return good;
            case 1:
                good = SHARED.b1 == before;
                SHARED.b1 = round;
                return good;
            case 2:
                good = SHARED.b2 == before;
                SHARED.b2 = round;
                return good;
            case 3:
                good = SHARED.b3 == before;
                SHARED.b3++;
                return good;
            case 4:
                good = SHARED.s0 == before;
                SHARED.s0 = round;
                return good;
            case 5:
                good = SHARED.s1 == before;
                SHARED.s1 = round;
                return good;
            case 6:
                good = SHARED.z0 == (before % 2 != 0);
                SHARED.z0 = round % 2 != 0;
                return good;
            default:
                good = SHARED.z1 == (before % 2 != 0);
                SHARED.z1 = round % 2 != 0;
                return good;
        }
    }

    private static void locks(int millis) throws InterruptedException {
        Shared[] own = new Shared[MEMBERS];
        for (int m = 0; m < MEMBERS; m++) {
            own[m] = new Shared();
        }
        long done = Team.run(MEMBERS, millis, (member, round) -> {
            synchronized (SHARED) {
                SHARED.guarded++;
            }
            synchronized (own[member]) {
                own[member].guarded++;
            }
            LOCK.lock();
            try {
                SHARED.locked++;
            } finally {
                LOCK.unlock();
            }
            // The two at once, and the first again.
            if (round % 16 == 0) {
                synchronized (own[member]) {
                    synchronized (SHARED) {
                        synchronized (own[member]) {
                            SHARED.plain += System.identityHashCode(own[member]) == 0 ? 1 : 0;
                        }
                    }
                }
            }
            return 1;
        });
        long uncontended = 0;
        for (Shared s : own) {
            uncontended += s.guarded;
        }
        Team.report("synchronized.contended", done, SHARED.guarded - done);
        Team.report("synchronized.uncontended", done, uncontended - done);
        Team.report("ReentrantLock", done, SHARED.locked - done);
    }
}
