package held;

/** A static field declared by an interface, stored once by its initialiser. */
public interface Constants {
    int[] TABLE = new int[] {1, 2, 3};
}
