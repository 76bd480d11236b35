package shapes;

/** Subject as it is after its redefinition: it loads where it stored and stores where it loaded. */
public class Changed implements Touch {
    public volatile int first;
    public volatile long second;

    @Override
    public int touch(int n, int m) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += first + i;
        }
        for (int i = 0; i < m; i++) {
            second = i;
        }
        return sum;
    }
}
