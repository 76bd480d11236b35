/**
 * The loop of the benchmarks: loads and stores of two fields of one escaping object, nothing else.
 * Arguments: iterations of a round, rounds. Prints ns per iteration of each round; an iteration is
 * two loads and two stores, volatile so that no compiler removes one.
 */
public final class FieldLoop {
    static final class Pair {
        volatile int left;
        volatile long right;
    }

    static final Pair PAIR = new Pair();

    private FieldLoop() {}

    static long run(Pair pair, long iterations) {
        for (long i = 0; i < iterations; i++) {
            pair.left = pair.left + 1;
            pair.right = pair.right + 1;
        }
        return pair.right;
    }

    public static void main(String[] args) {
        long iterations = Long.parseLong(args[0]);
        int rounds = Integer.parseInt(args[1]);
        long sum = 0;
        for (int r = 0; r < rounds; r++) {
            long start = System.nanoTime();
            sum += run(PAIR, iterations);
            long elapsed = System.nanoTime() - start;
            System.out.printf("round %d: %.2f ns/iteration%n", r, (double) elapsed / iterations);
        }
        System.out.println("sum " + sum);
    }
}
