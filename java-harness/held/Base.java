package held;

/** Declares fields that {@link Derived} inherits, and one that it hides. */
public class Base {
    public static int shared;
    public int own;
    public long hidden;
    public Object link;
}
