/** Makes N objects and N arrays of them, all of which escape. Argument: N. */
public final class NewObjects {
    static final class Point {
        int x;
        long y;
        Point other;

        Point(int x, Point other) {
            this.x = x;
            this.y = x;
            this.other = other;
        }
    }

    static final class Cell {}

    static Point last;
    static Point[] lastArray;
    static Cell[] lastCells;
    static Cell lastCell;

    private NewObjects() {}

    static void make(int i) {
        last = new Point(i, last);
        last.other.other = null;
        lastCell = new Cell();
        lastArray = new Point[i & 7];
        lastCells = new Cell[] {lastCell, null};
    }

    public static void main(String[] args) {
        int count = Integer.parseInt(args[0]);
        last = new Point(0, null);
        make(0); // with it all classes are loaded: compiled code makes the rest itself
        for (int i = 0; i < count; i++) {
            make(i);
        }
        System.out.println("CHECK last=" + last.x);
        System.out.println("DONE");
    }
}
