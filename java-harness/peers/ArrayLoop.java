package peers;

/** The loop of the benchmarks on an array: {@code long[1024]}, each element loaded and stored. Arguments: rounds, turns. */
public final class ArrayLoop {
    private ArrayLoop() {}

    static long run(long[] array, int rounds) {
        for (int r = 0; r < rounds; r++) {
            for (int i = 1; i < array.length; i++) {
                // Each element depends on the one before: no vectors, one load and one store each.
                array[i] = array[i] * 31 + (array[i] ^ i);
            }
        }
        return array[array.length - 1];
    }

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        int turns = Integer.parseInt(args[1]);
        long[] array = new long[1024];
        long sum = 0;
        for (int t = 0; t < turns; t++) {
            sum += run(array, rounds);
        }
        System.out.println("sum " + sum);
    }
}
