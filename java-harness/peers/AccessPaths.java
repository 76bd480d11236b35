package peers;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Field;
import java.lang.reflect.Method;

/**
 * N loads and N stores of one location by each way that Java code has, each in a class of its own: scripts/bench
 * asks every tool how many of them it has seen. Argument: N. Prints {@code PATH name class loads stores}. JNI only
 * with -Dharness.native.
 */
public final class AccessPaths {
    static final class Plain {
        int v;
    }

    static final class Static {
        static int v;
    }

    static final class Reflected {
        int v;
    }

    static final class ByVarHandle {
        int v;
    }

    static final class ByMethodHandle {
        int v;
    }

    static final class ByUnsafe {
        int v;
    }

    static final class ByJni {
        int v;
    }

    static final class Element {}

    static final class Copied {}

    static final class Locked {}

    private static int sum;

    private AccessPaths() {}

    private static void path(String name, Class<?> type, int loads, int stores) {
        System.out.println("PATH " + name + " " + type.getName().replace("[L", "").replace(";", "[]") + " " + loads + " " + stores);
    }

    private static void plain(int n) {
        Plain plain = new Plain();
        for (int i = 0; i < n; i++) {
            sum += plain.v;
            plain.v = i;
        }
        path("field", Plain.class, n, n);
        for (int i = 0; i < n; i++) {
            sum += Static.v;
            Static.v = i;
        }
        path("static", Static.class, n, n);
    }

    private static void handles(int n) throws Throwable {
        Field field = Reflected.class.getDeclaredField("v");
        Reflected reflected = new Reflected();
        for (int i = 0; i < n; i++) {
            sum += field.getInt(reflected);
            field.setInt(reflected, i);
        }
        path("reflection", Reflected.class, n, n);
        VarHandle variable = MethodHandles.lookup().findVarHandle(ByVarHandle.class, "v", int.class);
        ByVarHandle byVarHandle = new ByVarHandle();
        for (int i = 0; i < n; i++) {
            sum += (int) variable.getVolatile(byVarHandle);
            variable.setVolatile(byVarHandle, i);
        }
        path("VarHandle", ByVarHandle.class, n, n);
        MethodHandle getter = MethodHandles.lookup().findGetter(ByMethodHandle.class, "v", int.class);
        MethodHandle setter = MethodHandles.lookup().findSetter(ByMethodHandle.class, "v", int.class);
        ByMethodHandle byMethodHandle = new ByMethodHandle();
        for (int i = 0; i < n; i++) {
            sum += (int) getter.invokeExact(byMethodHandle);
            setter.invokeExact(byMethodHandle, i);
        }
        path("MethodHandle", ByMethodHandle.class, n, n);
    }

    private static void unsafe(int n) throws ReflectiveOperationException {
        Class<?> type = Class.forName("sun.misc.Unsafe");
        Field only = type.getDeclaredField("theUnsafe");
        only.setAccessible(true);
        Object unsafe = only.get(null);
        Method get = type.getMethod("getInt", Object.class, long.class);
        Method put = type.getMethod("putInt", Object.class, long.class, int.class);
        Object offset = type.getMethod("objectFieldOffset", Field.class).invoke(unsafe, ByUnsafe.class.getDeclaredField("v"));
        ByUnsafe byUnsafe = new ByUnsafe();
        for (int i = 0; i < n; i++) {
            sum += (int) get.invoke(unsafe, byUnsafe, offset);
            put.invoke(unsafe, byUnsafe, offset, i);
        }
        path("Unsafe", ByUnsafe.class, n, n);
    }

    // Classes of their own, so that a tool that tells elements and monitors by their code only can tell them.
    static final class ElementPath {
        static void run(int n) {
            Element[] elements = new Element[8];
            Element one = new Element();
            for (int i = 0; i < n; i++) {
                sum += elements[i & 7] == null ? 1 : 0;
                elements[i & 7] = one;
            }
        }
    }

    static final class CopyPath {
        static void run(Copied[] from, Copied[] to, int n) {
            // One element at a time, so that no two are one access.
            for (int i = 0; i < n; i++) {
                System.arraycopy(from, i & 7, to, i & 7, 1);
            }
        }
    }

    static final class LockPath {
        static void run(int n) {
            Locked locked = new Locked();
            for (int i = 0; i < n; i++) {
                synchronized (locked) {
                    sum += i;
                }
            }
        }
    }

    private static void arrays(int n) {
        ElementPath.run(n);
        path("element", Element[].class, n, n);
        CopyPath.run(new Copied[8], new Copied[8], n);
        path("arraycopy", Copied[].class, n, n);
    }

    private static void jni(int n) throws ReflectiveOperationException {
        String library = System.getProperty("harness.native");
        if (library == null) {
            return;
        }
        Class<?> natives = Class.forName("cover.NativePaths");
        Method open = natives.getDeclaredMethod("open");
        open.setAccessible(true);
        open.invoke(null);
        Method load =
                natives.getDeclaredMethod("loadField", Class.class, Object.class, char.class, int.class);
        Method store =
                natives.getDeclaredMethod("storeField", Class.class, Object.class, char.class, int.class);
        load.setAccessible(true);
        store.setAccessible(true);
        ByJni byJni = new ByJni();
        sum += (int) load.invoke(null, ByJni.class, byJni, 'I', n);
        store.invoke(null, ByJni.class, byJni, 'I', n);
        path("JNI", ByJni.class, n, n);
    }

    public static void main(String[] args) throws Throwable {
        int n = Integer.parseInt(args[0]);
        plain(n);
        handles(n);
        unsafe(n);
        arrays(n);
        jni(n);
        LockPath.run(n);
        // The mark word is changed at the beginning and at the end of each.
        path("lock", Locked.class, n, n);
        System.out.println("sum " + sum);
    }
}
