package start;

/** A class with a field of its own and an inherited one, defined anew by each loader of {@link Loaders}. */
public class Made extends MadeBase implements Runnable {
    public int own;

    @Override
    public void run() {
        own = 1;
        inherited = 2;
    }
}
