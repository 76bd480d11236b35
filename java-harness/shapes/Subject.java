package shapes;

/** Compiled once, defined under many names: see {@link Rename}. */
public class Subject implements Touch {
    public volatile int first;
    public volatile long second;

    @Override
    public int touch(int n, int m) {
        for (int i = 0; i < n; i++) {
            first = i;
        }
        int sum = 0;
        for (int i = 0; i < m; i++) {
            sum += (int) second + i;
        }
        return sum;
    }
}
