package cover;

import covered.Held;
import java.lang.reflect.Array;

/** JNI: every Get and Set of a field, array regions, copies of arrays, critical arrays, strings. */
final class NativePaths {
    private static final String LETTERS = "ZBCSIJFDO";

    /** Indexes of array regions. */
    private static final int FROM = 4500;

    private static final int COUNT = 1000;
    private static final int ROUNDS = 2;

    private NativePaths() {}

    static native int loadField(Class<?> holder, Object target, char letter, int times);

    static native void storeField(Class<?> holder, Object target, char letter, int times);

    static native int region(Object array, char letter, int from, int length, boolean store, int times);

    static native void elements(Object array, char letter, int index, int times);

    static native int critical(Object array, int bytes, int times);

    static native int objectElement(Object[] array, int index, Object value, boolean store, int times);

    static native int string(String string, int how, int times);

    static void open() {
        System.load(System.getProperty("harness.native"));
    }

    static void run() throws Throwable {
        open();
        for (Place.Kind kind : new Place.Kind[] {Place.Kind.INSTANCE, Place.Kind.STATIC}) {
            Path path = new Path("JNI.field/" + kind);
            for (Place place : Coverage.places(kind)) {
                char letter = LETTERS.charAt(place.number);
                path.add((h, n) -> loadField(place.holder, h, letter, n), place.target, Expect.TIMES);
                path.add(
                        (h, n) -> {
                            storeField(place.holder, h, letter, n);
                            return 0;
                        },
                        place.target, Expect.TIMES);
                place.expectAll(path.name(), "load");
                place.expectAll(path.name(), "store");
            }
            path.run();
        }
        arrays();
        objectElements();
        strings();
    }

    private static void arrays() throws Throwable {
        Path get = new Path("JNI.GetArrayRegion/");
        Path set = new Path("JNI.SetArrayRegion/");
        Path copies = new Path("JNI.ArrayElements/");
        Path critical = new Path("JNI.Critical/");
        for (int type = 0; type < 8; type++) {
            char letter = LETTERS.charAt(type);
            String name = Place.TYPES[type].getName() + "[]";
            Object array = Array.newInstance(Place.TYPES[type], Place.LENGTH);
            get.add((a, n) -> region(a, letter, FROM, COUNT, false, n), array, ROUNDS);
            set.add((a, n) -> region(a, letter, FROM, COUNT, true, n), array, ROUNDS);
            Expect.copied(get.name(), name, FROM, FROM + COUNT, "load", ROUNDS);
            Expect.copied(set.name(), name, FROM, FROM + COUNT, "store", ROUNDS);
            copies.add(
                    (a, n) -> {
                        elements(a, letter, Place.INDEX, n);
                        return 0;
                    },
                    array, ROUNDS);
            Expect.copied(copies.name(), name, Expect.FIRST, Place.LENGTH, "load", ROUNDS);
            Expect.copied(copies.name(), name, Expect.FIRST, Place.LENGTH, "store", ROUNDS);
            critical.add((a, n) -> critical(a, Place.LENGTH, n), array, Expect.TIMES);
            Expect.elements(critical.name(), name, Expect.FIRST, Place.LENGTH, "rmw", Expect.TIMES, Expect.TIMES, "");
        }
        get.run();
        set.run();
        copies.run();
        critical.run();
    }

    private static void objectElements() throws Throwable {
        Path path = new Path("JNI.ObjectArrayElement/");
        Held.O[] array = new Held.O[Place.LENGTH];
        path.add((a, n) -> objectElement((Object[]) a, Place.INDEX, null, false, n), array, Expect.TIMES);
        path.add((a, n) -> objectElement((Object[]) a, Place.INDEX, new Held.O(), true, n), array, Expect.TIMES);
        for (String op : new String[] {"load", "store"}) {
            Expect.elements(
                    path.name(), "covered.Held$O[]", Place.INDEX, Place.INDEX + 1, op, Expect.TIMES, Expect.TIMES, "");
        }
        path.run();
    }

    private static void strings() throws Throwable {
        String[] names = {"Chars", "UTFChars", "Region", "UTFRegion", "Critical"};
        for (int how = 0; how < names.length; how++) {
            int kind = how;
            Path path = new Path("JNI.GetString" + names[how] + "/");
            path.add((s, n) -> string((String) s, kind, n), TextPaths.latin(Place.LENGTH), ROUNDS);
            // Latin strings are widened or checked byte by byte, UTF lengths are counted first.
            Expect.elements(
                    path.name(), "byte[]", Expect.FIRST, Place.LENGTH, "load", ROUNDS, 4L * ROUNDS, "vm-passes");
            path.run();
        }
    }
}
