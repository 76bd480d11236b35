/**
 * Exceptions that start as hardware faults. Arguments: exceptions, stack overflows.
 * Prints how many were delivered and how many of them were the compiler's preallocated instance
 * (a site that throws very often in C2 code, -XX:+OmitStackTraceInFastThrow).
 */
public final class NullPointers {
    static final class Node {
        int value;
    }

    /** Mostly null; the compiler cannot know. */
    static Node[] nodes = new Node[16];

    private static NullPointerException last;
    private static long preallocated;

    private NullPointers() {}

    /** One site; the load of `value` faults at a small address when the element is null. */
    static int value(Node node) {
        return node.value;
    }

    /** Counts in local variables: the only accesses of the loop are of the array. */
    static int throwOften(Node[] from, int n) {
        int delivered = 0;
        int same = 0;
        NullPointerException before = last;
        for (int i = 0; i < n; i++) {
            try {
                delivered -= value(from[i & 15]) + 1000000;
            } catch (NullPointerException e) {
                delivered++;
                if (e == before) {
                    same++;
                }
                before = e;
            }
        }
        last = before;
        preallocated += same;
        return delivered;
    }

    static int dive(int depth) {
        return dive(depth + 1) + 1;
    }

    static int overflow(int n) {
        int delivered = 0;
        for (int i = 0; i < n; i++) {
            try {
                dive(0);
            } catch (StackOverflowError e) {
                delivered++;
            }
        }
        return delivered;
    }

    public static void main(String[] args) {
        int exceptions = Integer.parseInt(args[0]);
        int overflows = Integer.parseInt(args[1]);
        int delivered = 0;
        for (int done = 0; done < exceptions; done += 1000) {
            delivered += throwOften(nodes, Math.min(1000, exceptions - done));
        }
        System.out.println("CHECK exceptions=" + delivered);
        System.out.println("CHECK preallocated=" + preallocated);
        System.out.println("CHECK overflows=" + overflow(overflows));
        System.out.println("DONE");
    }
}
