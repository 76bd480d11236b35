package cover;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.util.ArrayList;

/** Every access of jdk.internal.misc.Unsafe and of sun.misc.Unsafe, on every place. */
final class UnsafePaths {
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    private static final String[] LOADS = {"get", "get%Volatile", "get%Opaque", "get%Acquire"};
    private static final String[] STORES = {"put", "put%Volatile", "put%Opaque", "put%Release", "putOrdered"};
    private static final String[] SWAPS = {
        "compareAndSet", "compareAndSwap", "compareAndExchange", "compareAndExchange%Acquire",
        "compareAndExchange%Release", "weakCompareAndSet", "weakCompareAndSet%Plain", "weakCompareAndSet%Acquire",
        "weakCompareAndSet%Release"
    };
    private static final String[] CHANGES = {
        "getAndAdd", "getAndAdd%Acquire", "getAndAdd%Release", "getAndSet", "getAndSet%Acquire", "getAndSet%Release",
        "getAndBitwiseOr", "getAndBitwiseAnd%Acquire", "getAndBitwiseXor%Release"
    };

    private final Object unsafe;
    private final String reference;
    private final String prefix;

    private UnsafePaths(Object unsafe, String reference, String prefix) {
        this.unsafe = unsafe;
        this.reference = reference;
        this.prefix = prefix;
    }

    static void run(boolean internal, ArrayList<Place> places, String suffix) throws Throwable {
        UnsafePaths paths;
        if (internal) {
            Class<?> type = Class.forName("jdk.internal.misc.Unsafe");
            Object unsafe = LOOKUP.findStatic(type, "getUnsafe", MethodType.methodType(type)).invoke();
            paths = new UnsafePaths(unsafe, "Reference", "Unsafe.");
        } else {
            Field the = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
            the.setAccessible(true);
            paths = new UnsafePaths(the.get(null), "Object", "sun.Unsafe.");
        }
        paths.run(places, suffix);
    }

    private void run(ArrayList<Place> places, String suffix) throws Throwable {
        for (String name : LOADS) {
            run(name, suffix, places, 0);
        }
        for (String name : STORES) {
            run(name, suffix, places, 1);
        }
        for (String name : CHANGES) {
            run(name, suffix, places, 2);
        }
        for (String name : SWAPS) {
            run(name, suffix, places, 3);
        }
    }

    /** form: 0 load, 1 store, 2 read-modify-write of one value, 3 of two. */
    private void run(String name, String suffix, ArrayList<Place> places, int form)
            throws Throwable {
        Path path = new Path(prefix + name + suffix);
        for (Place place : places) {
            place.renew();
            Class<?> t = place.type.isPrimitive() ? place.type : Object.class;
            boolean swap = name.startsWith("compareAndSet") || name.contains("Swap") || name.startsWith("weak");
            Class<?> result = form == 1 ? void.class : swap ? boolean.class : t;
            MethodType type = MethodType.methodType(result, Object.class, long.class);
            for (int i = 0; i < (form + 1) / 2; i++) {
                type = type.appendParameterTypes(t);
            }
            MethodHandle access;
            try {
                access = LOOKUP.findVirtual(unsafe.getClass(), filled(name, place), type);
            } catch (NoSuchMethodException e) {
                continue;  // a type that this Unsafe does not have
            }
            path.add(Loops.of(shaped(place, located(place, access.bindTo(unsafe)), form)), place.target, place.times());
            if (form == 0) {
                place.expect(path.name(), "load");
            } else if (form == 1) {
                place.expect(path.name(), "store");
            } else {
                place.expectModify(path.name());
            }
        }
        path.run();
    }

    private static MethodHandle shaped(Place place, MethodHandle access, int form) throws Throwable {
        switch (form) {
            case 0:
                return place.load(access);
            case 1:
                return place.store(access);
            default:
                return place.modify(access);
        }
    }

    private String filled(String name, Place place) {
        String type = place.typeName(reference);
        return name.indexOf('%') >= 0 ? name.replace("%", type) : name + type;
    }

    private long number(String method, Class<?> parameter, Object argument) throws Throwable {
        MethodHandle handle;
        try {
            handle = LOOKUP.findVirtual(unsafe.getClass(), method, MethodType.methodType(long.class, parameter));
        } catch (NoSuchMethodException e) {
            handle = LOOKUP.findVirtual(unsafe.getClass(), method, MethodType.methodType(int.class, parameter));
        }
        return ((Number) handle.invoke(unsafe, argument)).longValue();
    }

    /** With base and offset bound, but the base of an instance or an array. */
    private MethodHandle located(Place place, MethodHandle access) throws Throwable {
        if (place.kind == Place.Kind.ELEMENT) {
            long base = number("arrayBaseOffset", Class.class, place.arrayClass());
            long scale = number("arrayIndexScale", Class.class, place.arrayClass());
            return MethodHandles.insertArguments(access, 1, base + scale * Place.INDEX);
        }
        if (place.kind == Place.Kind.INSTANCE) {
            long offset = number("objectFieldOffset", Field.class, place.field());
            return MethodHandles.insertArguments(access, 1, offset);
        }
        MethodHandle find = LOOKUP.findVirtual(
                unsafe.getClass(), "staticFieldBase", MethodType.methodType(Object.class, Field.class));
        Object base = find.invoke(unsafe, place.field());
        long offset = number("staticFieldOffset", Field.class, place.field());
        return MethodHandles.insertArguments(access, 0, base, offset);
    }
}
