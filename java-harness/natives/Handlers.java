package natives;

/**
 * Counts loads and stores of one field while a JNI library plays with SIGSEGV handlers. Arguments: the
 * library, then any of sigaction, signal, raw, reporter, stack (an alternate stack for what follows),
 * probe, blocked, attached=BYTES, criticals=FILE, sleep=MILLISECONDS. Prints what each did and how many loads and stores
 * there were.
 */
public final class Handlers {
    /** What is counted. */
    static final class Cell {
        volatile int value;
    }

    private static final Cell CELL = new Cell();
    private static int rounds;

    private Handlers() {}

    private static void work(int n) {
        for (int i = 0; i < n; i++) {
            CELL.value = CELL.value + 1;
        }
        rounds += n;
    }

    @SuppressWarnings("null")
    private static int nullPointers() {
        int caught = 0;
        for (int i = 0; i < 20; i++) {
            Cell none = i < 100 ? null : CELL;
            try {
                none.value = 1;
            } catch (NullPointerException e) {
                caught++;
            }
        }
        return caught;
    }

    private static void check(String name, long value) {
        System.out.println("CHECK ".concat(name).concat("=").concat(Long.toString(value)));
    }

    private static void handler(String name, int how, boolean stack) throws InterruptedException {
        Native.install(how, stack);
        work(100);
        check(name.concat("_faults"), Native.fault());
        if (how != Native.SIGNAL && how != Native.REPORTER) {
            check(name.concat("_null_pointers"), nullPointers());
        }
        // Until it has been noticed.
        for (int i = 0; i < 30; i++) {
            Thread.sleep(10);
            work(10);
        }
        check(name.concat("_faults_later"), Native.fault());
        if (how != Native.SIGNAL && how != Native.REPORTER) {
            check(name.concat("_null_pointers_later"), nullPointers());
        }
        if (stack) {
            for (int bytes : new int[] {8192, 0}) {
                check("on_stack_".concat(Integer.toString(bytes)), Native.attached(bytes, () -> work(50)));
            }
        }
        Native.uninstall(how);
        work(100);
        check(name.concat("_null_pointers_after"), nullPointers());
    }

    public static void main(String[] args) throws InterruptedException {
        System.load(args[0]);
        boolean stack = false;
        work(10);
        for (int a = 1; a < args.length; a++) {
            String arg = args[a];
            int equals = arg.indexOf('=');
            String value = equals < 0 ? "" : arg.substring(equals + 1);
            switch (equals < 0 ? arg : arg.substring(0, equals)) {
                case "stack":
                    stack = true;
                    break;
                case "sigaction":
                    handler(arg, Native.SIGACTION, stack);
                    break;
                case "signal":
                    handler(arg, Native.SIGNAL, false);
                    break;
                case "raw":
                    handler(arg, Native.RAW, stack);
                    break;
                case "reporter":
                    handler(arg, Native.REPORTER, stack);
                    break;
                case "sleep":
                    Thread.sleep(Integer.parseInt(value));
                    break;
                case "probe":
                    check("probe", Native.probe() ? 1 : 0);
                    break;
                case "blocked":
                    int[] array = new int[16];
                    array[3] = 5;
                    for (int how = 0; how < 2; how++) {
                        CELL.value = 7;
                        check("blocked".concat(Integer.toString(how)), Native.blocked(how, CELL, array));
                    }
                    check("own_stores", 2);
                    break;
                case "attached":
                    check("attached".concat(value), Native.attached(Integer.parseInt(value), () -> {
                        work(50);
                        check("attached_null_pointers", nullPointers());
                    }));
                    break;
                case "criticals":
                    check("criticals", Native.criticals(new byte[10000], "kr\u00f6\u20ac", value));
                    break;
                default:
                    throw new IllegalArgumentException(arg);
            }
            work(10);
        }
        check("rounds", rounds);
        System.out.println("DONE");
    }
}
