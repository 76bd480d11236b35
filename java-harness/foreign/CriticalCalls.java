package foreign;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * System calls on heap segments passed by {@code Linker.Option.critical(true)}; needs JDK 22 or later
 * and is compiled by the test that runs it. Prints {@code CHECK call=bytes} for each call, after it
 * has compared the data; a mismatch throws. Everything is done once on thread main, unsaid, so that the
 * linker is warm, and then on thread caller.
 */
public final class CriticalCalls {
    private static final int BYTES = 10_000; // more than two pages
    private static final Linker LINKER = Linker.nativeLinker();
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final MemoryLayout ADDRESS = ValueLayout.ADDRESS;

    private CriticalCalls() {}

    private static MethodHandle function(String name, MemoryLayout... arguments) {
        return LINKER.downcallHandle(LINKER.defaultLookup().find(name).orElseThrow(),
                FunctionDescriptor.of(LONG, arguments), Linker.Option.critical(true));
    }

    private static byte[] pattern(int seed) {
        byte[] bytes = new byte[BYTES];
        for (int i = 0; i < BYTES; i++) {
            bytes[i] = (byte) (i * 31 + seed);
        }
        return bytes;
    }

    private static void check(String call, long result, byte[] got, byte[] wanted, int from) {
        if (result != wanted.length - from) {
            throw new IllegalStateException(call + " returned " + result);
        }
        for (int i = from; i < wanted.length; i++) {
            if (got[i] != wanted[i]) {
                throw new IllegalStateException(call + ": byte " + i + " is " + got[i] + ", not " + wanted[i]);
            }
        }
        say(call, result);
    }

    private static void count(String call, long result, long wanted) {
        if (result != wanted) {
            throw new IllegalStateException(call + " returned " + result);
        }
        say(call, result);
    }

    private static MemorySegment on(byte[] bytes) {
        return MemorySegment.ofArray(bytes);
    }

    private static boolean silent;
    private static Throwable failure;

    public static void main(String[] args) throws Throwable {
        Path file = Path.of(args[0]);
        silent = true;
        calls(file);
        silent = false;
        Thread caller = new Thread(() -> {
            try {
                calls(file);
            } catch (Throwable t) {
                failure = t;
            }
        }, "caller");
        caller.start();
        caller.join();
        if (failure != null) {
            throw failure;
        }
        System.out.println("DONE");
    }

    private static void say(String call, long result) {
        if (!silent) {
            System.out.println("CHECK ".concat(call).concat("=").concat(Long.toString(result)));
        }
    }

    private static void calls(Path file) throws Throwable {
        MethodHandle write = function("write", INT, ADDRESS, LONG);
        MethodHandle read = function("read", INT, ADDRESS, LONG);
        MethodHandle pwrite = function("pwrite", INT, ADDRESS, LONG, LONG);
        MethodHandle pread = function("pread", INT, ADDRESS, LONG, LONG);
        MethodHandle open = function("open", ADDRESS, INT, INT);
        MethodHandle lseek = function("lseek", INT, LONG, INT);
        Files.write(file, new byte[0]);
        try (Arena arena = Arena.ofConfined()) {
            int fd = (int) (long) open.invokeExact((MemorySegment) arena.allocateFrom(file.toString()), 2, 0);
            byte[] out = pattern(1);
            count("write", (long) write.invokeExact(fd, on(out), (long) BYTES), BYTES);
            byte[] in = new byte[BYTES];
            long at = (long) lseek.invokeExact(fd, 0L, 0);
            check("read", (long) read.invokeExact(fd, on(in), (long) BYTES), in, out, 0);

            out = pattern(2);
            count("pwrite", (long) pwrite.invokeExact(fd, on(out), (long) BYTES, 0L), BYTES);
            in = new byte[BYTES];
            check("pread", (long) pread.invokeExact(fd, on(in), (long) BYTES, 0L), in, out, 0);

            // The middle of an array, and memory that is not the heap's.
            in = pattern(2);
            for (int i = 5000; i < BYTES; i++) {
                in[i] = 0;
            }
            MemorySegment part = on(in).asSlice(5000);
            check("pread_part", (long) pread.invokeExact(fd, part, BYTES - 5000L, 5000L), in, pattern(2), 5000);
            MemorySegment outside = arena.allocate(BYTES);
            count("pread_outside", (long) pread.invokeExact(fd, outside, (long) BYTES, 0L), BYTES);

            vectors(arena, fd);
        }
        sockets();
        streams(file);
    }

    // The vector is in the heap, what it points to cannot be.
    private static void vectors(Arena arena, int fd) throws Throwable {
        MethodHandle writev = function("writev", INT, ADDRESS, INT);
        MethodHandle readv = function("readv", INT, ADDRESS, INT);
        MethodHandle lseek = function("lseek", INT, LONG, INT);
        MemorySegment one = arena.allocate(100);
        MemorySegment two = arena.allocate(200);
        one.fill((byte) 1);
        two.fill((byte) 2);
        MemorySegment vector =
                MemorySegment.ofArray(new long[] {one.address(), 100, two.address(), 200});
        long at = (long) lseek.invokeExact(fd, 0L, 0);
        count("writev", (long) writev.invokeExact(fd, vector, 2), 300);
        one.fill((byte) 0);
        two.fill((byte) 0);
        at = (long) lseek.invokeExact(fd, 0L, 0);
        count("readv", (long) readv.invokeExact(fd, vector, 2), 300);
        if (one.get(ValueLayout.JAVA_BYTE, 99) != 1 || two.get(ValueLayout.JAVA_BYTE, 199) != 2) {
            throw new IllegalStateException("readv read something else");
        }
    }

    private static void sockets() throws Throwable {
        MethodHandle socketpair = function("socketpair", INT, INT, INT, ADDRESS);
        MethodHandle send = function("send", INT, ADDRESS, LONG, INT);
        MethodHandle recv = function("recv", INT, ADDRESS, LONG, INT);
        MethodHandle sendto = function("sendto", INT, ADDRESS, LONG, INT, ADDRESS, INT);
        MethodHandle recvfrom = function("recvfrom", INT, ADDRESS, LONG, INT, ADDRESS, ADDRESS);
        MethodHandle sendmsg = function("sendmsg", INT, ADDRESS, INT);
        MethodHandle recvmsg = function("recvmsg", INT, ADDRESS, INT);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pair = arena.allocate(8);
            long made = (long) socketpair.invokeExact(1, 2, 0, pair); // AF_UNIX, SOCK_DGRAM
            int a = pair.getAtIndex(INT, 0);
            int b = pair.getAtIndex(INT, 1);
            byte[] out = pattern(3);
            byte[] in = new byte[BYTES];
            count("send", (long) send.invokeExact(a, on(out), (long) BYTES, 0), BYTES);
            check("recv", (long) recv.invokeExact(b, on(in), (long) BYTES, 0), in, out, 0);

            out = pattern(4);
            in = new byte[BYTES];
            count("sendto", (long) sendto.invokeExact(a, on(out), (long) BYTES, 0, MemorySegment.NULL, 0), BYTES);
            int[] length = {128};
            MemorySegment from = MemorySegment.ofArray(new byte[128]);
            MemorySegment fromLength = MemorySegment.ofArray(length);
            check("recvfrom", (long) recvfrom.invokeExact(b, on(in), (long) BYTES, 0, from, fromLength), in, out, 0);
            count("recvfrom_length", length[0] > 2 ? -1 : 0, 0); // nobody bound a name

            // struct msghdr in the heap: name, namelen, iov, iovlen, control, controllen, flags
            MemorySegment piece = arena.allocate(BYTES);
            piece.copyFrom(on(pattern(5)));
            MemorySegment vector = arena.allocateFrom(LONG, piece.address(), BYTES);
            long[] message = {0, 0, vector.address(), 1, 0, 0, 0};
            count("sendmsg", (long) sendmsg.invokeExact(a, MemorySegment.ofArray(message), 0), BYTES);
            piece.fill((byte) 0);
            message[6] = -1L; // flags are overwritten
            count("recvmsg", (long) recvmsg.invokeExact(b, MemorySegment.ofArray(message), 0), BYTES);
            if (piece.mismatch(on(pattern(5))) != -1 || (int) message[6] != 0) {
                throw new IllegalStateException("recvmsg received something else, flags " + message[6]);
            }
        }
    }

    private static void streams(Path file) throws Throwable {
        MethodHandle fopen = LINKER.downcallHandle(LINKER.defaultLookup().find("fopen").orElseThrow(),
                FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS));
        MethodHandle fwrite = function("fwrite", ADDRESS, LONG, LONG, ADDRESS);
        MethodHandle fread = function("fread", ADDRESS, LONG, LONG, ADDRESS);
        MethodHandle fclose = function("fclose", ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocateFrom(file.toString());
            byte[] out = pattern(6);
            MemorySegment stream = (MemorySegment) fopen.invokeExact(name, arena.allocateFrom("w"));
            count("fwrite", (long) fwrite.invokeExact(on(out), 1L, (long) BYTES, stream), BYTES);
            long closed = (long) fclose.invokeExact(stream);
            stream = (MemorySegment) fopen.invokeExact(name, arena.allocateFrom("r"));
            byte[] in = new byte[BYTES];
            check("fread", (long) fread.invokeExact(on(in), 1L, (long) BYTES, stream), in, out, 0);
            closed = (long) fclose.invokeExact(stream);
        }
    }
}
