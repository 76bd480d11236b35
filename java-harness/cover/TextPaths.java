package cover;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;

/** Strings and their builders, most of them intrinsics. Counts are of each byte of the text. */
final class TextPaths {
    private static final int ROUNDS = 1;
    private static final String LATIN = latin(Place.LENGTH);
    private static final String SHORTER = latin(Place.LENGTH - 1);
    private static final String LATIN_TOO = latin(Place.LENGTH);

    /** Two bytes a character: as many bytes. */
    private static final String WIDE = latin(Place.LENGTH / 2 - 1).concat("\u20ac");

    private static final String WIDE_TOO = latin(Place.LENGTH / 2 - 1).concat("\u20ac");
    private static final char[] CHARS = LATIN.toCharArray();
    private static final byte[] BYTES = LATIN.getBytes(StandardCharsets.ISO_8859_1);

    /** Where results escape to. */
    static Object escaped;

    private TextPaths() {}

    static String latin(int length) {
        StringBuilder s = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            s.append((char) ('a' + i % 23));
        }
        return s.toString();
    }

    interface Text {
        int run(int i);
    }

    private static void text(String name, String type, int loads, int stores, Text once) throws Throwable {
        Path path = path(name, once);
        expect(path, type, loads, stores);
        path.run();
    }

    private static Path path(String name, Text once) {
        Path path = new Path(name);
        path.add(
                (target, times) -> {
                    int sum = 0;
                    for (int i = 0; i < times; i++) {
                        sum += once.run(i);
                    }
                    return sum;
                },
                null, ROUNDS);
        return path;
    }

    private static void expect(Path path, String type, int loads, int stores) {
        if (loads > 0) {
            Expect.copied(path.name(), type, Expect.FIRST, Place.LENGTH, "load", (long) loads * ROUNDS);
        }
        if (stores > 0) {
            Expect.copied(path.name(), type, Expect.FIRST, Place.LENGTH, "store", (long) stores * ROUNDS);
        }
    }

    /** From bytes to chars or back. */
    private static void converted(String name, String from, String to, Text once) throws Throwable {
        Path path = path(name, once);
        expect(path, from, 1, 0);
        expect(path, to, 0, 1);
        path.run();
    }

    private static int length(String s) {
        escaped = s;
        return s.length();
    }

    private static int length(char[] s) {
        escaped = s;
        return s.length;
    }

    static void run() throws Throwable {
        text("String.equals/latin", "byte[]", 2, 0, i -> LATIN.equals(LATIN_TOO) ? 1 : 0);
        text("String.equals/wide", "byte[]", 2, 0, i -> WIDE.equals(WIDE_TOO) ? 1 : 0);
        text("String.compareTo/latin", "byte[]", 2, 0, i -> LATIN.compareTo(LATIN_TOO));
        text("String.compareTo/wide", "byte[]", 2, 0, i -> WIDE.compareTo(WIDE_TOO));
        text("String.charAt/latin", "byte[]", 1, 0, i -> characters(LATIN));
        text("String.charAt/wide", "byte[]", 1, 0, i -> characters(WIDE));
        text("String.indexOf/char", "byte[]", 1, 0, i -> LATIN.indexOf('#'));
        text("String.indexOf/wide", "byte[]", 1, 0, i -> WIDE.indexOf('#'));
        Path search = path("String.indexOf/string", i -> LATIN.indexOf("##"));
        Expect.copied(search.name(), "byte[]", Expect.FIRST, Place.LENGTH - 1, "load", ROUNDS);
        Expect.elements(
                search.name(), "byte[]", Place.LENGTH - 1, Place.LENGTH, "load", 0, 2 * ROUNDS, "last-start");
        search.run();
        converted("String.toCharArray/", "byte[]", "char[]", i -> length(LATIN.toCharArray()));
        text("String.getBytes/latin", "byte[]", 1, 1, i -> LATIN.getBytes(StandardCharsets.ISO_8859_1).length);
        converted("String.new/chars", "char[]", "byte[]", i -> length(new String(CHARS)));
        text("String.new/bytes", "byte[]", 1, 1, i -> length(new String(BYTES, StandardCharsets.ISO_8859_1)));
        Path concat = path("String.concat/", i -> length(SHORTER.concat("x")));
        Expect.copied(concat.name(), "byte[]", Expect.FIRST, Place.LENGTH - 1, "load", ROUNDS);
        expect(concat, "byte[]", 0, 1);
        concat.run();
        text("StringBuilder.append/", "byte[]", 1, 1, i -> builder().append(LATIN).length());
        Path joined = path("StringBuilder.toString/", i -> length(builder().append(LATIN).toString()));
        for (String op : new String[] {"load", "store"}) {
            int least = Loops.own ? 0 : 2 * ROUNDS;
            Expect.elements(
                    joined.name(), "byte[]", Expect.FIRST, Place.LENGTH, op, least, 4 * ROUNDS, "shared-array");
        }
        joined.run();
        hashes();
    }

    private static StringBuilder builder() {
        return new StringBuilder(Place.LENGTH);
    }

    private static int characters(String s) {
        int sum = 0;
        for (int i = 0; i < s.length(); i++) {
            sum += s.charAt(i);
        }
        return sum;
    }

    /** A string keeps its hash code: a new one each time. */
    private static void hashes() throws Throwable {
        for (boolean wide : new boolean[] {false, true}) {
            ArrayList<String> fresh = new ArrayList<>();
            for (int i = 0; i < ROUNDS + 10; i++) {
                fresh.add(wide ? latin(Place.LENGTH / 2 - 1).concat("\u20ac") : latin(Place.LENGTH));
            }
            text("String.hashCode/" + (wide ? "wide" : "latin"), "byte[]", 1, 0, i -> fresh.remove(0).hashCode());
        }
    }
}
