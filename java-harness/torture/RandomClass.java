package torture;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * A random subclass of Unit: static methods that call each other in a deep chain, loops, loads and stores of
 * fields and elements, virtual calls, monitors, casts, and exceptions that are thrown by the hardware or by
 * checks and caught a few frames up. Everything ends: each call and each turn of a loop takes fuel.
 */
final class RandomClass {
    private static final String UNIT = "torture/Unit";
    private static final String TURN = "torture/Turn";
    private static final String STEP = "(Ltorture/Turn;Ltorture/Unit;I)I";
    private static final String[][] INTS = {
        {"a", "I"}, {"b", "I"}, {"c", "J"}, {"d", "D"}, {"f", "F"}, {"e", "B"}, {"s", "S"}, {"h", "C"}, {"z", "Z"},
        {"v", "I"}};
    // Local variables: 0 turn, 1 unit, 2 x, 3 sum, 4.. counters of loops.
    private static final int SUM = 3;

    private final Random random;
    private final ClassFile file;
    private final int chain;
    private ByteArrayOutputStream code;
    private int method;
    private int loops;

    RandomClass(long seed, String name) {
        random = new Random(seed);
        file = new ClassFile(name, UNIT);
        chain = 4 + random.nextInt(9);
    }

    byte[] make() throws IOException {
        file.addField(0x9, "total", "I");
        file.addField(0x9, "shared", "[I");
        file.addField(0x1, "own", "I");
        for (method = 0; method < chain; method++) {
            step();
        }
        constructor();
        work();
        if (random.nextInt(3) == 0) {
            value();
        }
        return file.write();
    }

    private void op(int... bytes) {
        for (int each : bytes) {
            code.write(each);
        }
    }

    private void op2(int opcode, int operand) {
        op(opcode, operand >> 8, operand);
    }

    private void number(int value) throws IOException {
        if (value >= -128 && value < 128) {
            op(0x10, value);
        } else {
            op2(0x13, file.number(value));
        }
    }

    /** Patches the branch at `from` to lead here. */
    private static void land(byte[] bytes, int from, int to) {
        int offset = to - from;
        bytes[from + 1] = (byte) (offset >> 8);
        bytes[from + 2] = (byte) offset;
    }

    private final List<int[]> landings = new ArrayList<>();

    private int branch(int opcode) {
        int at = code.size();
        op(opcode, 0, 0);
        return at;
    }

    private void here(int from) {
        landings.add(new int[] {from, code.size()});
    }

    private void there(int from, int to) {
        landings.add(new int[] {from, to});
    }

    private byte[] landed() {
        byte[] bytes = code.toByteArray();
        for (int[] each : landings) {
            land(bytes, each[0], each[1]);
        }
        landings.clear();
        return bytes;
    }

    private void constructor() throws IOException {
        code = new ByteArrayOutputStream();
        op(0x2a);
        op2(0xb7, file.method(UNIT, "<init>", "()V"));
        op(0xb1);
        file.addMethod(1, "<init>", "()V", landed(), 1, List.of());
    }

    private void work() throws IOException {
        code = new ByteArrayOutputStream();
        op(0x2b, 0x2a, 0x1c);
        op2(0xb8, file.method(file.name, "m0", STEP));
        op(0x59);
        op2(0xb2, file.field(file.name, "total", "I"));
        op(0x60);
        op2(0xb3, file.field(file.name, "total", "I"));
        op(0xac);
        file.addMethod(random.nextInt(4) == 0 ? 0x21 : 1, "work", "(Ltorture/Turn;I)I", landed(), 3, List.of());
    }

    private void value() throws IOException {
        code = new ByteArrayOutputStream();
        op(0x2a);
        op2(0xb4, file.field(file.name, "own", "I"));
        op(0x1b, 0x60);
        op(0x2a);
        op2(0xb4, file.field(UNIT, "b", "I"));
        op(0x82, 0xac);
        file.addMethod(1, "value", "(I)I", landed(), 2, List.of());
    }

    /** static int mN(Turn t, Unit u, int x) */
    private void step() throws IOException {
        code = new ByteArrayOutputStream();
        loops = 0;
        op(0x03, 0x3e);
        takeFuel();
        int guarded = code.size();
        int statements = 1 + random.nextInt(4);
        for (int i = 0; i < statements; i++) {
            statement(2);
        }
        if (method + 1 < chain) {
            op(0x2a);
            unit(1);
            integer(2);
            op2(0xb8, file.method(file.name, "m" + (method + 1), STEP));
            op(0x1d, 0x60, 0x3e);
        }
        int end = code.size();
        op(0x1d, 0xac);
        List<int[]> handlers = new ArrayList<>();
        if (method == 0 || random.nextInt(3) == 0) {
            handlers.add(new int[] {guarded, end, code.size(), file.type("java/lang/RuntimeException")});
            op(0x2a, 0x5f);
            op2(0xb8, file.method(TURN, "caught", "(Ltorture/Turn;Ljava/lang/RuntimeException;)I"));
            op(0x1d, 0x60, 0xac);
        }
        // Later counters are declared by name of local variable only.
        file.addMethod(9, "m" + method, STEP, landed(), 4 + loops + 1, handlers);
    }

    /** if (--t.fuel < 0) return sum; */
    private void takeFuel() throws IOException {
        op(0x2a, 0x59);
        op2(0xb4, file.field(TURN, "fuel", "I"));
        op(0x04, 0x64, 0x5a);
        op2(0xb5, file.field(TURN, "fuel", "I"));
        int on = branch(0x9c);
        op(0x1d, 0xac);
        here(on);
    }

    private void statement(int depth) throws IOException {
        switch (random.nextInt(depth > 0 ? 12 : 7)) {
            case 0, 1 -> {
                unit(1);
                storeField();
            }
            case 2 -> {
                ints();
                integer(1);
                op(0x04 + random.nextInt(3));
                op(0x7e);
                integer(1);
                op(0x4f);
            }
            case 3 -> {
                integer(2);
                op(0x1d, 0x60, 0x3e);
            }
            case 4 -> {
                op(0x2b);
                unit(1);
                op2(0xb5, file.field(UNIT, "next", "Ltorture/Unit;"));
                op(0x2b, 0x2b);
                op2(0xb5, file.field(UNIT, "thing", "Ljava/lang/Object;"));
            }
            case 5 -> {
                unit(1);
                op2(0xb4, file.field(UNIT, "bytes", "[B"));
                integer(1);
                op(0x10, 15 + random.nextInt(3), 0x7e);
                integer(1);
                op(0x54);
            }
            case 6 -> {
                // A new object that escapes, sometimes.
                op2(0xbb, file.type(file.name));
                op(0x59);
                op2(0xb7, file.method(file.name, "<init>", "()V"));
                op(0x59, 0x1d);
                op2(0xb5, file.field(file.name, "own", "I"));
                if (random.nextBoolean()) {
                    op(0x2b, 0x5f);
                    op2(0xb5, file.field(UNIT, "thing", "Ljava/lang/Object;"));
                } else {
                    op2(0xb4, file.field(file.name, "own", "I"));
                    op(0x1d, 0x60, 0x3e);
                }
            }
            case 7, 8 -> loop(depth);
            case 9 -> {
                integer(1);
                int otherwise = branch(0x99 + random.nextInt(6));
                statement(depth - 1);
                here(otherwise);
            }
            case 10 -> {
                // The cast fails where `thing` is no Unit.
                op(0x2b);
                op2(0xb4, file.field(UNIT, "thing", "Ljava/lang/Object;"));
                op2(0xc0, file.type(random.nextInt(5) == 0 ? file.name : UNIT));
                op(0x1d);
                op2(0xb5, file.field(UNIT, "a", "I"));
            }
            default -> {
                unit(1);
                integer(1);
                op2(0xb6, file.method(UNIT, "locked", "(I)I"));
                op(0x1d, 0x82, 0x3e);
            }
        }
    }

    private void loop(int depth) throws IOException {
        int counter = 4 + loops++;
        int turns = random.nextInt(8) == 0 ? 300 : 2 + random.nextInt(20);
        op(0x03, 0x36, counter);
        int start = code.size();
        op(0x15, counter);
        number(turns);
        int out = branch(0xa2);
        takeFuel();
        if (random.nextBoolean()) {
            // A loop over an array: vectors, range check elimination.
            op(0x1d);
            ints();
            op(0x15, counter, 0x10, 15, 0x7e, 0x2e, 0x60, 0x3e);
        }
        statement(depth - 1);
        op(0x84, counter, 1);
        there(branch(0xa7), start);
        here(out);
    }

    private void storeField() throws IOException {
        String[] field = INTS[random.nextInt(INTS.length)];
        integer(1);
        switch (field[1]) {
            case "J" -> op(0x85);
            case "D" -> op(0x87);
            case "F" -> op(0x86);
            case "Z" -> op(0x04, 0x7e);
            default -> { }
        }
        op2(0xb5, file.field(UNIT, field[0], field[1]));
    }

    private void loadField() throws IOException {
        String[] field = INTS[random.nextInt(INTS.length)];
        op2(0xb4, file.field(UNIT, field[0], field[1]));
        switch (field[1]) {
            case "J" -> op(0x88);
            case "D" -> op(0x8e);
            case "F" -> op(0x8b);
            default -> { }
        }
    }

    /** A Unit, null now and then. */
    private void unit(int depth) throws IOException {
        switch (random.nextInt(depth > 0 ? 8 : 3)) {
            case 0, 1, 2 -> op(0x2b);
            case 3, 4 -> {
                op(0x2a);
                op2(0xb4, file.field(TURN, "units", "[Ltorture/Unit;"));
                integer(0);
                op(0x06 + random.nextInt(3), 0x7e, 0x32);
            }
            case 5 -> {
                op(0x2b);
                op2(0xb4, file.field(UNIT, "many", "[Ltorture/Unit;"));
                integer(0);
                op(0x06, 0x7e, 0x32);
            }
            default -> {
                unit(depth - 1);
                op2(0xb4, file.field(UNIT, "next", "Ltorture/Unit;"));
            }
        }
    }

    private void ints() throws IOException {
        if (random.nextBoolean()) {
            op(0x2a);
            op2(0xb4, file.field(TURN, "xs", "[I"));
        } else if (random.nextInt(6) == 0) {
            op2(0xb2, file.field(file.name, "shared", "[I"));
        } else {
            unit(1);
            op2(0xb4, file.field(UNIT, "xs", "[I"));
        }
    }

    private void integer(int depth) throws IOException {
        switch (random.nextInt(depth > 0 ? 12 : 4)) {
            case 0 -> number(random.nextInt(4000) - 1000);
            case 1 -> op(0x1c);
            case 2 -> op(0x1d);
            case 3 -> {
                op(0x2b);
                loadField();
            }
            case 4, 5 -> {
                unit(1);
                loadField();
            }
            case 6 -> {
                ints();
                integer(depth - 1);
                op(0x10, random.nextInt(10) == 0 ? 31 : 15, 0x7e, 0x2e);
            }
            case 7 -> {
                unit(1);
                op2(0xb4, file.field(UNIT, "longs", "[J"));
                integer(depth - 1);
                op(0x07, 0x7e, 0x2f, 0x88);
            }
            case 8 -> {
                unit(1);
                integer(depth - 1);
                op2(0xb6, file.method(UNIT, "value", "(I)I"));
            }
            case 9 -> {
                ints();
                op(0xbe);
            }
            case 10 -> {
                op2(0xb2, file.field(file.name, "total", "I"));
                integer(depth - 1);
                op(0x6c);  // divided by zero now and then
            }
            default -> {
                integer(depth - 1);
                integer(depth - 1);
                op(new int[] {0x60, 0x64, 0x68, 0x82, 0x7e, 0x80}[random.nextInt(6)]);
            }
        }
    }
}
