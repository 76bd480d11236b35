/**
 * Writes two known lines, one on each stream, works a little on its own objects and exits with
 * status 7: whatever happens to the recording, these stay. Argument: how many rounds of work.
 */
public final class Quiet {
    static final class Cell {
        long value;
        Cell next;
    }

    private Quiet() {}

    public static void main(String[] args) {
        long rounds = args.length > 0 ? Long.parseLong(args[0]) : 1;
        Cell head = new Cell();
        for (int i = 0; i < 63; i++) {
            Cell cell = new Cell();
            cell.value = i;
            cell.next = head;
            head = cell;
        }
        long sum = 0;
        for (long r = 0; r < rounds; r++) {
            for (Cell c = head; c != null; c = c.next) {
                c.value += r;
                sum += c.value;
            }
        }
        System.out.println("quiet: sum " + sum);
        System.err.println("quiet: a word on standard error");
        System.exit(7);
    }
}
