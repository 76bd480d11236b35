package cover;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.ArrayList;

/** Bytecodes, reflection, method handles and every access mode of variable handles, on every place. */
final class HandlePaths {
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    private static final String[] LETTERS = {"Z", "B", "C", "S", "I", "J", "F", "D", "O"};

    private HandlePaths() {}

    static void bytecodes(Path path, Place place) throws Throwable {
        MethodHandle load;
        MethodHandle store;
        if (place.kind == Place.Kind.STATIC) {
            String letter = LETTERS[place.number];
            load = find(Bytecodes.class, "loadStatic" + letter, int.class);
            store = find(Bytecodes.class, "storeStatic" + letter, void.class, int.class);
        } else {
            boolean element = place.kind == Place.Kind.ELEMENT;
            Class<?> holder = element ? place.arrayClass() : place.holder;
            String what = element ? "Element" : "Field";
            load = find(Bytecodes.class, "load" + what, int.class, holder);
            store = find(Bytecodes.class, "store" + what, void.class, holder, int.class);
        }
        both(path, place, place.load(load), store(place, store));
    }

    /** A store whose value is an int already. */
    private static MethodHandle store(Place place, MethodHandle store) {
        MethodHandle placed =
                place.kind == Place.Kind.STATIC ? MethodHandles.dropArguments(store, 0, Object.class) : store;
        return MethodHandles.explicitCastArguments(
                placed, MethodType.methodType(int.class, Object.class, int.class));
    }

    /** Field.getInt and its like, or with boxes; Array.getInt and its like for elements. */
    static void reflection(Path path, Place place, boolean boxed) throws Throwable {
        Class<?> value = boxed ? Object.class : place.type;
        String name = boxed ? "" : place.typeName("");
        if (!boxed && !place.type.isPrimitive()) {
            return;
        }
        MethodHandle get;
        MethodHandle set;
        if (place.kind == Place.Kind.ELEMENT) {
            get = find(Array.class, "get" + name, value, Object.class, int.class);
            set = find(Array.class, "set" + name, void.class, Object.class, int.class, value);
            get = MethodHandles.insertArguments(get, 1, Place.INDEX);
            set = MethodHandles.insertArguments(set, 1, Place.INDEX);
        } else {
            Field field = place.field();
            MethodType load = MethodType.methodType(value, Object.class);
            MethodType store = MethodType.methodType(void.class, Object.class, value);
            get = LOOKUP.findVirtual(Field.class, "get" + name, load).bindTo(field);
            set = LOOKUP.findVirtual(Field.class, "set" + name, store).bindTo(field);
            if (place.kind == Place.Kind.STATIC) {
                get = MethodHandles.insertArguments(get, 0, (Object) null);
                set = MethodHandles.insertArguments(set, 0, (Object) null);
            }
        }
        if (boxed && place.type.isPrimitive()) {
            get = get.asType(get.type().changeReturnType(place.type));
            set = set.asType(set.type().changeParameterType(set.type().parameterCount() - 1, place.type));
        }
        both(path, place, place.load(get), place.store(set));
    }

    static void methodHandles(Path path, Place place) throws Throwable {
        MethodHandle get;
        MethodHandle set;
        if (place.kind == Place.Kind.ELEMENT) {
            get = MethodHandles.insertArguments(MethodHandles.arrayElementGetter(place.arrayClass()), 1, Place.INDEX);
            set = MethodHandles.insertArguments(MethodHandles.arrayElementSetter(place.arrayClass()), 1, Place.INDEX);
        } else if (place.kind == Place.Kind.STATIC) {
            get = LOOKUP.findStaticGetter(place.holder, "s", place.type);
            set = LOOKUP.findStaticSetter(place.holder, "s", place.type);
        } else {
            get = LOOKUP.findGetter(place.holder, "v", place.type);
            set = LOOKUP.findSetter(place.holder, "v", place.type);
        }
        both(path, place, place.load(get), place.store(set));
    }

    /** Runs one path for each access mode, all places of one kind in it. */
    static void variableHandles(ArrayList<Place> places, String suffix) throws Throwable {
        for (VarHandle.AccessMode mode : VarHandle.AccessMode.values()) {
            Path path = new Path("VarHandle." + mode.methodName() + suffix);
            for (Place place : places) {
                place.renew();
                VarHandle handle = variableHandle(place);
                if (!handle.isAccessModeSupported(mode)) {
                    continue;
                }
                MethodHandle access = handle.toMethodHandle(mode);
                if (place.kind == Place.Kind.ELEMENT) {
                    access = MethodHandles.insertArguments(access, 1, Place.INDEX);
                }
                one(path, place, access, mode.methodName());
            }
            path.run();
        }
    }

    private static VarHandle variableHandle(Place place) throws ReflectiveOperationException {
        switch (place.kind) {
            case ELEMENT:
                return MethodHandles.arrayElementVarHandle(place.arrayClass());
            case STATIC:
                return LOOKUP.findStaticVarHandle(place.holder, "s", place.type);
            default:
                return LOOKUP.findVarHandle(place.holder, "v", place.type);
        }
    }

    /** What the access does follows from its name, in VarHandle and in Unsafe alike. */
    static void one(Path path, Place place, MethodHandle access, String name) throws Throwable {
        if (name.startsWith("getAnd") || name.startsWith("compareAnd") || name.startsWith("weakCompare")) {
            path.add(Loops.of(place.modify(access)), place.target, place.times());
            place.expectModify(path.name());
        } else if (name.startsWith("get")) {
            path.add(Loops.of(place.load(access)), place.target, place.times());
            place.expect(path.name(), "load");
        } else {
            path.add(Loops.of(place.store(access)), place.target, place.times());
            place.expect(path.name(), "store");
        }
    }

    static void both(Path path, Place place, MethodHandle load, MethodHandle store) throws Throwable {
        path.add(Loops.of(load), place.target, place.times());
        path.add(Loops.of(store), place.target, place.times());
        place.expect(path.name(), "load");
        place.expect(path.name(), "store");
    }

    static MethodHandle find(Class<?> in, String name, Class<?> result, Class<?>... parameters)
            throws ReflectiveOperationException {
        return LOOKUP.findStatic(in, name, MethodType.methodType(result, parameters));
    }
}
