package calls;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Spins.java ROUNDS: methods that spin for about 2 ns, 20 ns, 200 ns and 2 us, each twice: `timed...` for calls= or
 * JFR, `plain...` for nobody. Prints SPIN size=plain ns a call and LOOP size=timed ns a call, least of the rounds, in
 * processor time of the thread.
 */
public final class Spins {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static int seed = 1;

    private static int spin(int times) {
        int value = seed;
        for (int i = 0; i < times; i++) {
            value ^= value << 13;
            value ^= value >>> 17;
            value ^= value << 5;
        }
        return seed = value;
    }

    static void timed2() {
        spin(1);
    }

    static void timed20() {
        spin(9);
    }

    static void timed200() {
        spin(95);
    }

    static void timed2000() {
        spin(950);
    }

    static void plain2() {
        spin(1);
    }

    static void plain20() {
        spin(9);
    }

    static void plain200() {
        spin(95);
    }

    static void plain2000() {
        spin(950);
    }

    private static double each(int calls, Runnable loop) {
        long start = THREADS.getCurrentThreadCpuTime();
        loop.run();
        return (double) (THREADS.getCurrentThreadCpuTime() - start) / calls;
    }

    private static void loop(int which, int calls) {
        switch (which) {
            case 0:
                for (int i = 0; i < calls; i++) plain2();
                break;
            case 1:
                for (int i = 0; i < calls; i++) timed2();
                break;
            case 2:
                for (int i = 0; i < calls; i++) plain20();
                break;
            case 3:
                for (int i = 0; i < calls; i++) timed20();
                break;
            case 4:
                for (int i = 0; i < calls; i++) plain200();
                break;
            case 5:
                for (int i = 0; i < calls; i++) timed200();
                break;
            case 6:
                for (int i = 0; i < calls; i++) plain2000();
                break;
            default:
                for (int i = 0; i < calls; i++) timed2000();
                break;
        }
    }

    private static double nanoTime() {
        long sum = 0, start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < 200000; i++) {
            sum += System.nanoTime();
        }
        double each = (THREADS.getCurrentThreadCpuTime() - start) / 200000.0;
        return sum == 0 ? 0 : each;
    }

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        double[] least = new double[8];
        double clock = 1e9;
        java.util.Arrays.fill(least, 1e9);
        for (int round = 0; round < rounds; round++) {
            for (int which = 0; which < 8; which++) {
                int calls = which < 4 ? 200000 : which < 6 ? 50000 : 5000, now = which;
                least[which] = Math.min(least[which], each(calls, () -> loop(now, calls)));
            }
            clock = Math.min(clock, nanoTime());
        }
        System.out.printf("CLOCK nanoTime=%.1f%n", clock);
        for (int i = 0; i < 4; i++) {
            int size = new int[] {2, 20, 200, 2000}[i];
            System.out.printf("SPIN %d=%.1f%nLOOP %d=%.1f%n", size, least[2 * i], size, least[2 * i + 1]);
        }
        System.out.println("DONE");
    }

    private Spins() {
    }
}
