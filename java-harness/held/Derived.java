package held;

/** Inherits {@code own} and {@code link}, hides {@code hidden}. */
public class Derived extends Base {
    public byte hidden;
    public int extra;
}
