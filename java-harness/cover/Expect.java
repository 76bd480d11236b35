package cover;

import java.util.ArrayList;

/**
 * What a path must have done, told on standard output after it: lines {@code EXPECT key=value ...}. Keys: path (the
 * thread's name too), class, what (a field's name, or `from..to`, a range of array indexes each of which is touched
 * that often), part, op, least, most, and, where least and most differ, reason: a word that the test explains.
 */
final class Expect {
    static final int TIMES = 1000;

    /** Lower array indexes belong to the JDK's own arrays and are not looked at. */
    static final int FIRST = 4096;

    private static final ArrayList<String> LINES = new ArrayList<>();

    private Expect() {}

    static void exact(String path, String holder, String what, String part, String op, long count) {
        line(path, holder, what, part, op, count, count, "-");
    }

    static void bound(
            String path, String holder, String what, String part, String op, long least, long most, String reason) {
        line(path, holder, what, part, op, least, most, reason);
    }

    static void elements(String path, String holder, int from, int to, String op, long least, long most, String why) {
        line(path, holder, from + ".." + to, "element", op, least, most, least == most ? "-" : why);
    }

    /** Each index `times` times; a vector at the end may touch what the one before it has touched. */
    static void copied(String path, String holder, int from, int to, String op, long times) {
        line(path, holder, from + ".." + to, "element", op, times, 2 * times, "overlap");
    }

    private static void line(
            String path, String holder, String what, String part, String op, long least, long most, String reason) {
        StringBuilder s = new StringBuilder(200);
        s.append("EXPECT path=").append(path).append(" class=").append(holder).append(" what=").append(what);
        s.append(" part=").append(part).append(" op=").append(op).append(" least=").append(least);
        s.append(" most=").append(most).append(" reason=").append(reason);
        LINES.add(s.toString());
    }

    static void print() {
        StringBuilder all = new StringBuilder(1 << 18);
        for (String line : LINES) {
            all.append(line).append('\n');
        }
        System.out.print(all);
    }
}
