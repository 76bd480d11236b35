package counts;

import java.util.ArrayList;
import java.util.HashMap;

/**
 * What the measured code did, told on standard output after it: one line {@code EXPECT key=value ...}
 * for each (class, field, op, thread) or (array class, method, op, thread). Counts of rounds add up.
 * Under the agent a program can be told to stay silent, since printing is then most of its work: the
 * lines of the same program with the same arguments, but not silent, hold for it.
 * Keys: class, declares, field, part, kind (plain or volatile), op, thread, count, method, elements.
 */
final class Expect {
    /** Set before any thread starts: nothing is collected or printed. */
    static boolean silent;

    private static final HashMap<String, long[]> COUNTS = new HashMap<>();
    private static final ArrayList<String> ORDER = new ArrayList<>();

    private Expect() {}

    static void field(
            String holder, String field, String part, String kind, String op, String thread, long count) {
        if (!silent) {
            add(key(holder, holder, field, part, kind, op, thread), count);
        }
    }

    static void inherited(String holder, String declares, String field, String op, String thread, long count) {
        if (!silent) {
            add(key(holder, declares, field, "field", "plain", op, thread), count);
        }
    }

    /** The method walks an array of `elements` with a for loop, touching each once, `passes` times. */
    static void elements(String type, String method, String op, String thread, int elements, int passes) {
        if (silent) {
            return;
        }
        StringBuilder s = new StringBuilder(160);
        s.append("class=").append(type).append(" part=element kind=plain op=").append(op);
        s.append(" method=").append(method).append(" elements=").append(elements);
        s.append(" thread=").append(thread);
        add(s.toString(), (long) elements * passes);

        // In the interpreter every element access checks its index against the length, and the loop
        // loads it once more for each of its tests.
        s.setLength(0);
        s.append("class=").append(type).append(" part=length kind=plain op=load method=").append(method);
        s.append(" thread=").append(thread);
        add(s.toString(), (2L * elements + 1) * passes);
    }

    private static String key(
            String holder, String declares, String field, String part, String kind, String op, String thread) {
        StringBuilder s = new StringBuilder(160);
        s.append("class=").append(holder).append(" declares=").append(declares).append(" field=").append(field);
        s.append(" part=").append(part).append(" kind=").append(kind).append(" op=").append(op);
        s.append(" thread=").append(thread);
        return s.toString();
    }

    private static synchronized void add(String key, long count) {
        long[] sum = COUNTS.get(key);
        if (sum == null) {
            sum = new long[1];
            COUNTS.put(key, sum);
            ORDER.add(key);
        }
        sum[0] += count;
    }

    static synchronized void print() {
        StringBuilder all = new StringBuilder(1 << 16);
        for (String key : ORDER) {
            all.append("EXPECT ").append(key).append(" count=").append(COUNTS.get(key)[0]).append('\n');
        }
        System.out.print(all);
    }
}
