import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** The counters of CountAgent, on the boot class path. Plain increments: threads that share one lose some. */
public final class Counts {
    private static final long[] COUNTS = new long[32768];
    private static final Map<String, Integer> NUMBERS = new HashMap<>();

    private Counts() {}

    public static synchronized int number(String what, boolean store) {
        int number = NUMBERS.computeIfAbsent(what, w -> NUMBERS.size() * 2);
        if (number >= COUNTS.length) {
            throw new IllegalStateException("too many fields");
        }
        return number + (store ? 1 : 0);
    }

    public static void hit(int number) {
        COUNTS[number]++;
    }

    public static synchronized void print() {
        long sum = 0;
        for (Map.Entry<String, Integer> entry : new TreeMap<>(NUMBERS).entrySet()) {
            long loads = COUNTS[entry.getValue()];
            long stores = COUNTS[entry.getValue() + 1];
            sum += loads + stores;
            if (loads + stores > 0) {
                System.err.println("COUNT " + entry.getKey() + " " + loads + " " + stores);
            }
        }
        System.err.println("COUNTED " + sum);
    }
}
