package shapes;

/** What the measured classes can do, whatever they are called. */
public interface Touch {
    /** Stores {@code first} n times and loads {@code second} m times. */
    int touch(int n, int m);
}
