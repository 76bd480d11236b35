package counts;

/** How often each thing is done in one round. All numbers differ, so a mix-up cannot cancel out. */
final class Plan {
    static final int TYPES = 9;

    /** Field names by type: boolean byte char short int long float double Object. */
    static final String[] FIELD = {"z", "b", "c", "s", "i", "j", "f", "d", "o"};

    private Plan() {}

    static int stores(int type, int worker) {
        return 20 + 3 * type + 31 * worker;
    }

    static int loads(int type, int worker) {
        return 25 + 7 * type + 11 * worker;
    }

    static int storePasses(int worker) {
        return 1 + worker;
    }

    static int loadPasses(int worker) {
        return 2 + worker;
    }
}
