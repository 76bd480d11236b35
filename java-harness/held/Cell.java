package held;

/** The element of reference arrays. */
public final class Cell {
    public int unused;
}
