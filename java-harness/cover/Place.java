package cover;

import covered.Held;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Field;

/**
 * One measured location: an instance field, a static field or an array element of one of nine types; and how a method
 * handle that reaches it becomes one of type (Object, int) int.
 */
final class Place {
    enum Kind {
        INSTANCE,
        STATIC,
        ELEMENT
    }

    /** Arrays are this long, so that an index of {@link #INDEX} means one of them and no other. */
    static final int LENGTH = 6000;

    /** The measured index; a multiple of 8. */
    static final int INDEX = 5000;

    static final Class<?>[] HOLDERS = {
        Held.Z.class, Held.B.class, Held.C.class, Held.S.class, Held.I.class, Held.J.class, Held.F.class, Held.D.class,
        Held.O.class
    };
    static final Class<?>[] TYPES = {
        boolean.class, byte.class, char.class, short.class, int.class, long.class, float.class, double.class,
        Object.class
    };
    private static final int[] SIZES = {1, 1, 2, 2, 4, 8, 4, 8, 8};
    private static final Held.O[] OBJECTS = {null, new Held.O()};
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();

    /** How often places other than an int field are accessed, about; 0: as often. */
    static int otherTimes;

    final Kind kind;
    final int number;
    final Class<?> type;
    final Class<?> holder;

    /** What a loop gets: an instance, an array, or null. */
    Object target;

    Place(Kind kind, int number) {
        this.kind = kind;
        this.number = number;
        holder = HOLDERS[number];
        // Stores into an array of references check what they store.
        type = kind == Kind.ELEMENT && number == 8 ? Held.O.class : TYPES[number];
        renew();
    }

    /** A target that holds zero. */
    void renew() {
        try {
            if (kind == Kind.ELEMENT) {
                target = Array.newInstance(type, LENGTH);
            } else if (kind == Kind.INSTANCE) {
                target = holder.getDeclaredConstructor().newInstance();
            } else if (type.isPrimitive()) {
                Object zero = Array.get(Array.newInstance(type, 1), 0);
                field().set(null, zero);
            } else {
                field().set(null, null);
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    Field field() throws NoSuchFieldException {
        return holder.getField(kind == Kind.STATIC ? "s" : "v");
    }

    /** Capitalised, as in the names of methods. */
    String typeName(String reference) {
        if (!type.isPrimitive()) {
            return reference;
        }
        String name = type.getName();
        return Character.toUpperCase(name.charAt(0)) + name.substring(1);
    }

    Class<?> arrayClass() {
        return Array.newInstance(type, 0).getClass();
    }

    /** From (place..., i)T or (place..., T...)R, where place is nothing for a static, with the index bound already. */
    MethodHandle load(MethodHandle access) throws ReflectiveOperationException {
        return shaped(MethodHandles.dropArguments(placed(access), 1, int.class));
    }

    MethodHandle store(MethodHandle access) throws ReflectiveOperationException {
        MethodHandle placed = placed(access);
        if (!placed.type().parameterType(1).isPrimitive()) {
            placed = placed.asType(placed.type().changeParameterType(1, Held.O.class));
            placed = MethodHandles.filterArguments(placed, 1, helper("object", Held.O.class, int.class));
        }
        return shaped(placed);
    }

    /** All values are zero, so a comparison succeeds. */
    MethodHandle modify(MethodHandle access) throws Throwable {
        MethodHandle placed = placed(access);
        while (placed.type().parameterCount() > 1) {
            Class<?> p = placed.type().parameterType(1);
            Object zero = p.isPrimitive() ? Array.get(Array.newInstance(p, 1), 0) : null;
            placed = MethodHandles.insertArguments(placed, 1, zero);
        }
        return shaped(MethodHandles.dropArguments(placed, 1, int.class));
    }

    private MethodHandle placed(MethodHandle access) {
        return kind == Kind.STATIC ? MethodHandles.dropArguments(access, 0, Object.class) : access;
    }

    private static MethodHandle shaped(MethodHandle access) throws ReflectiveOperationException {
        MethodHandle shaped = access;
        Class<?> result = access.type().returnType();
        if (result != void.class && !result.isPrimitive()) {
            shaped = shaped.asType(shaped.type().changeReturnType(Object.class));
            shaped = MethodHandles.filterReturnValue(shaped, helper("isNull", int.class, Object.class));
        }
        return MethodHandles.explicitCastArguments(shaped, MethodType.methodType(int.class, Object.class, int.class));
    }

    private static MethodHandle helper(String name, Class<?> result, Class<?> parameter)
            throws ReflectiveOperationException {
        return LOOKUP.findStatic(Place.class, name, MethodType.methodType(result, parameter));
    }

    static Held.O object(int i) {
        return OBJECTS[i & 1];
    }

    static int isNull(Object o) {
        return o == null ? 1 : 0;
    }

    /** How often each access is made: an int field stands for all where there are very many accesses. */
    int times() {
        boolean all = otherTimes == 0 || (number == 4 && kind == Kind.INSTANCE);
        return all ? Expect.TIMES : otherTimes + number;
    }

    /** {@code times()} accesses by one path, nothing else. */
    void expect(String path, String op) {
        expect(path, op, times());
    }

    void expectAll(String path, String op) {
        expect(path, op, Expect.TIMES);
    }

    private void expect(String path, String op, int times) {
        if (kind == Kind.ELEMENT) {
            Expect.elements(path, className(), INDEX, INDEX + 1, op, times, times, "");
        } else {
            Expect.exact(path, className(), what(), part(), op, times);
        }
    }

    /**
     * The JDK's Java code of read-modify-writes, which interpreted and C1 code runs, loads first; types narrower than
     * an int are changed as part of one.
     */
    void expectModify(String path) {
        expect(path, "rmw");
        long most = 2L * times();
        if (kind != Kind.ELEMENT) {
            Expect.bound(path, className(), what(), part(), "load", 0, most, "loads-first");
            return;
        }
        Expect.elements(path, className(), INDEX, INDEX + 1, "load", 0, most, "loads-first");
        int more = 4 / SIZES[number];
        if (more > 1) {
            Expect.elements(path, className(), INDEX + 1, INDEX + more, "load", 0, most, "whole-int");
            Expect.elements(path, className(), INDEX + 1, INDEX + more, "rmw", 0, most, "whole-int");
        }
    }

    private String className() {
        if (kind == Kind.ELEMENT) {
            return type.getName() + "[]";
        }
        return holder.getName();
    }

    private String what() {
        return kind == Kind.STATIC ? "s" : "v";
    }

    private String part() {
        return kind == Kind.STATIC ? "static" : "field";
    }
}
