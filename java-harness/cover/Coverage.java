package cover;

import java.util.ArrayList;
import java.util.List;

/**
 * A known number of accesses by every way that Java code has to reach the heap. Arguments: {@code interpreted} or
 * {@code compiled} (how the flags make it run: what may be expected differs), how often fields, elements
 * and statics are accessed by handles, 1000 times only for an int field (0: all are), and any of the groups. Each path runs in
 * a thread of its own; prints what each must have done, and a sum of what was loaded, which must not change under the
 * agent.
 */
public final class Coverage {
    private Coverage() {}

    static ArrayList<Place> places(Place.Kind kind) {
        ArrayList<Place> places = new ArrayList<>();
        for (int i = 0; i < Place.TYPES.length; i++) {
            places.add(new Place(kind, i));
        }
        return places;
    }

    private static void group(String group) throws Throwable {
        switch (group) {
            case "native":
                NativePaths.run();
                return;
            case "arrays":
                ArrayPaths.run();
                return;
            case "text":
                TextPaths.run();
                return;
            case "objects":
                ObjectPaths.run();
                return;
            default:
                break;
        }
        for (Place.Kind kind : Place.Kind.values()) {
            String suffix = "/" + kind;
            ArrayList<Place> places = places(kind);
            switch (group) {
                case "basic":
                    Path bytecodes = new Path("bytecodes" + suffix);
                    Path typed = new Path("reflection-typed" + suffix);
                    Path boxed = new Path("reflection-boxed" + suffix);
                    Path handles = new Path("MethodHandle" + suffix);
                    for (Place place : places) {
                        HandlePaths.bytecodes(bytecodes, place);
                        HandlePaths.reflection(typed, place, false);
                        HandlePaths.reflection(boxed, place, true);
                        HandlePaths.methodHandles(handles, place);
                    }
                    for (Path path : List.of(bytecodes, typed, boxed, handles)) {
                        path.run();
                    }
                    break;
                case "varhandle":
                    HandlePaths.variableHandles(places, suffix);
                    break;
                case "unsafe":
                    UnsafePaths.run(true, places, suffix);
                    break;
                case "sun":
                    UnsafePaths.run(false, places, suffix);
                    break;
                default:
                    throw new IllegalArgumentException(group);
            }
        }
    }

    public static void main(String[] args) throws Throwable {
        Loops.own = args[0].equals("compiled");
        Place.otherTimes = Integer.parseInt(args[1]);
        for (int i = 2; i < args.length; i++) {
            group(args[i]);
        }
        Expect.print();
        System.out.println("CHECK sum=" + Path.sum);
        System.out.println("DONE");
    }
}
