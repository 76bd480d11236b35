/**
 * Loads of objects that come from the CDS archive (the Integer cache, a string literal of the JDK), before and
 * after two full collections. Argument: rounds.
 */
public final class Archived {
    private Archived() {}

    static int integers(int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += Integer.valueOf(i % 100).intValue();
        }
        return sum;
    }

    static int strings(int rounds) {
        int sum = 0;
        String name = Object.class.getModule().getName();
        for (int i = 0; i < rounds; i++) {
            sum += name.charAt(i % 9);
        }
        return sum;
    }

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        int sum = integers(rounds) + strings(rounds);
        System.gc();
        System.gc();
        sum += integers(rounds) + strings(rounds);
        System.out.println("CHECK sum=".concat(Integer.toString(sum)));
        System.out.println("DONE");
    }
}
