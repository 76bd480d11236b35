import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What many programs do all day: words counted in a hash table, sorted in a tree, joined to texts. Argument: rounds. */
public final class TreesAndTexts {
    private TreesAndTexts() {}

    private static final class Entry {
        final String word;
        int count;

        Entry(String word) {
            this.word = word;
        }
    }

    private static List<String> words(int round) {
        List<String> words = new ArrayList<>();
        long seed = round + 1;
        for (int i = 0; i < 4000; i++) {
            seed = seed * 6364136223846793005L + 1442695040888963407L;
            StringBuilder text = new StringBuilder();
            int length = 3 + (int) (seed >>> 61);
            for (int k = 0; k < length; k++) {
                text.append((char) ('a' + (int) ((seed >>> (8 * (k % 7))) & 7)));
            }
            words.add(text.toString());
        }
        return words;
    }

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        long check = 0;
        for (int round = 0; round < rounds; round++) {
            Map<String, Entry> counts = new HashMap<>();
            for (String word : words(round)) {
                counts.computeIfAbsent(word, Entry::new).count++;
            }
            TreeMap<String, Entry> sorted = new TreeMap<>();
            for (Entry entry : counts.values()) {
                sorted.put(entry.word, entry);
            }
            StringBuilder joined = new StringBuilder();
            for (Entry entry : sorted.values()) {
                joined.append(entry.word).append('=').append(entry.count).append(' ');
            }
            check = check * 31 + joined.toString().hashCode();
        }
        System.out.println("CHECK sum=" + check);
        System.out.println("DONE");
    }
}
