package held;

/** An object whose constructor stores; its zeroed memory and header are not those stores. */
public final class Made {
    public final int first;
    public final long second;
    public Object third;

    public Made(int first, Object third) {
        this.first = first;
        this.second = first;
        this.third = third;
    }
}
