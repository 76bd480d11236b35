/**
 * Loads from an array of 1,000 pages of 4 KB in the orders sequential, stride, random and ping-pong. Before each
 * order the pages of another array are gone through, so that none of the first array's is in a small window.
 * Between two loads nothing of the heap is touched but the array's length.
 */
public final class PageWalk {
    static final int PAGES = 1000;
    static final int PAGE = 4096;
    private static final int OTHER_PAGES = 16;

    private PageWalk() {}

    public static void main(String[] args) {
        int touches = Integer.parseInt(args[0]);
        byte[] pages = new byte[(PAGES + 2) * PAGE];
        byte[] others = new byte[(OTHER_PAGES + 2) * PAGE];
        System.gc();  // into the old generation: other pages than those that were filled with zeros
        int sum = 0;
        for (int order = 0; order < 4; order++) {
            sum += walk(others, 0, OTHER_PAGES, OTHER_PAGES);
            sum += walk(pages, order, PAGES, touches);
        }
        System.out.println("sum " + sum);
        System.out.println("DONE");
    }

    static int walk(byte[] array, int order, int pages, int touches) {
        int sum = 0;
        long random = 12345;
        for (int i = 0; i < touches; i++) {
            int page;
            if (order == 0) {
                page = i % pages;
            } else if (order == 1) {
                page = (int) (i * 7L % pages);
            } else if (order == 2) {
                random = random * 6364136223846793005L + 1442695040888963407L;
                page = (int) ((random >>> 33) % pages);
            } else {
                page = i % 2 == 0 ? pages / 3 : pages / 2;
            }
            sum += array[(page + 1) * PAGE];
        }
        return sum;
    }
}
