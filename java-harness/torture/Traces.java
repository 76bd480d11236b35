package torture;

import java.io.File;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * Exceptions thrown through code that touches objects. Prints each different stack trace once, with its text, its
 * lines, and how often it came. {@code kinds N}: N tries of each kind of exception, three of four throw.
 * {@code site N EVERY}: N exceptions at one load, after it was compiled without ever meeting null; the trace of one in
 * EVERY is looked at. {@code kinds N FILE} begins when FILE appears.
 */
public final class Traces {
    static class Node {
        int value = 3;
        int zero;
        long wide;
        int[] ints = new int[8];
        Object thing = this;
        Object[] many = new Node[4];
        Node next;

        int get() {
            return value;
        }

        synchronized int deep(int i) {
            wide++;
            return get() + deeper(i);
        }

        private int deeper(int i) {
            many[i & 3] = this;
            int sum = 0;
            for (int k = 0; k < 3; k++) {
                sum += ints[k] + next.ints[k & 7];
            }
            return sum;
        }
    }

    private static final int KINDS = 13;
    private static final int DIVES = 40;
    static final Node[] nodes = new Node[16];
    private static final Map<String, Integer> seen = new TreeMap<>();
    private static final Map<Long, String> texts = new HashMap<>();
    private static final boolean[] heldAfter = new boolean[1];
    static long sink;
    private static int delivered;
    private static int untraced;

    private Traces() {}

    private static int one(int kind, Node node, int i) {
        switch (kind) {
            case 0:
                return node.next.value;
            case 1:
                node.next.wide = i;
                return 0;
            case 2:
                return node.ints[i & 7];
            case 3:
                return node.ints.length;
            case 4:
                return node.next.get();
            case 5:
                synchronized (node.next) {
                    return i;
                }
            case 6:
                return nodes[i & 15].value;
            case 7:
                return nodes[i & 15].ints[8 + node.value];
            case 8:
                return ((Node) node.thing).value;
            case 9:
                return node.value / node.zero;
            case 10:
                node.many[i & 3] = node.thing;
                return 0;
            case 11:
                return new int[node.zero].length;
            default:
                return node.deep(i);
        }
    }

    /** What makes three of four tries of a kind throw. */
    private static void prepare(Node node, int kind, int i) {
        boolean whole = i % 4 == 0;
        node.next = whole ? node : null;
        node.ints = whole ? new int[16] : null;
        nodes[i & 15] = whole || i % 4 == 2 ? node : null;
        node.thing = whole ? node : "text";
        node.zero = whole ? 1 : kind == 11 ? -1 - (i & 3) : 0;
        if (kind == 12 || kind == 7) {
            node.ints = i % 4 == 2 ? new int[2] : new int[16];
        }
    }

    private static void caught(Throwable e, boolean withMessage) {
        delivered++;
        StackTraceElement[] trace = e.getStackTrace();
        if (trace.length == 0) {
            untraced++;
            return;
        }
        long hash = 31L * e.getClass().getName().hashCode();
        if (withMessage) {
            hash += e.getMessage() == null ? 7 : e.getMessage().hashCode();
        }
        for (StackTraceElement frame : trace) {
            hash = hash * 31 + frame.getLineNumber() + frame.getMethodName().hashCode();
        }
        String known = texts.get(hash);
        if (known == null) {
            StringWriter text = new StringWriter();
            e.printStackTrace(new PrintWriter(text, true));
            known = text.toString();
            texts.put(hash, known);
        }
        seen.merge(known, 1, Integer::sum);
    }

    private static void kinds(int times) {
        Node node = new Node();
        for (int kind = 0; kind < KINDS; kind++) {
            for (int i = 0; i < times; i++) {
                prepare(node, kind, i);
                try {
                    sink += one(kind, node, kind == 11 ? i & 7 : i);
                } catch (RuntimeException e) {
                    caught(e, true);
                }
                heldAfter[0] |= Thread.holdsLock(node);
            }
        }
    }

    // In one line: where in it the stack ends depends on how far it is compiled.
    private static int dive(Node node) { node.wide++; return node.value + dive(node) + node.zero; }

    private static void dives() {
        Node node = new Node();
        for (int i = 0; i < DIVES; i++) {
            try {
                sink += dive(node);
            } catch (StackOverflowError e) {
                delivered++;
                for (StackTraceElement frame : e.getStackTrace()) {
                    seen.merge("overflow at " + frame + "\n", i == 0 ? 1 : 0, (a, b) -> 1);
                }
            }
        }
    }

    private static int load(Node node) {
        return node.value;
    }

    /** Its compiled code is left at each null and entered again at the next call. */
    private static NullPointerException tryOne(Node node) {
        try {
            sink += load(node);
            return null;
        } catch (NullPointerException e) {
            return e;
        }
    }

    private static void site(int times, int every) {
        Node node = new Node();
        for (int i = 0; i < 100000; i++) {
            tryOne(node);
        }
        for (int i = 0; i < times; i++) {
            NullPointerException e = tryOne(null);
            if (i % every == 0) {
                caught(e, i % (16 * every) == 0);
            } else {
                delivered += e != null ? 1 : 0;
            }
            tryOne(node);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int times = Integer.parseInt(args[1]);
        if (args[0].equals("site")) {
            site(times, Integer.parseInt(args[2]));
        } else {
            if (args.length > 2) {
                System.out.println("READY");
                File begin = new File(args[2]);
                while (!begin.exists()) {
                    Thread.sleep(5);
                }
            }
            kinds(times);
            dives();
        }
        // Which of them the VM gives no trace depends on when it compiles.
        boolean counted = untraced == 0;
        seen.forEach((text, count) -> System.out.print((counted ? count + " times " : "") + text));
        System.out.println("CHECK exceptions=" + delivered);
        System.out.println("CHECK different=" + seen.size());
        System.out.println("CHECK held=" + (heldAfter[0] ? 1 : 0));
        System.err.println("untraced " + untraced);
        System.out.println("DONE");
    }
}
