package held;

/** Fields that one thread of many touches a known number of times. */
public final class Turns {
    public volatile int stored;
    public volatile int loaded;
}
