package torture;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Writes class files of version 50: they need no StackMapTable. */
final class ClassFile {
    private final ByteArrayOutputStream poolBytes = new ByteArrayOutputStream();
    private final DataOutputStream pool = new DataOutputStream(poolBytes);
    private final Map<String, Integer> constants = new LinkedHashMap<>();
    private int entries = 1;
    private final List<byte[]> methods = new ArrayList<>();
    private final List<byte[]> fields = new ArrayList<>();
    final String name;
    private final String parent;

    ClassFile(String name, String parent) {
        this.name = name;
        this.parent = parent;
    }

    private interface Entry {
        void write() throws IOException;
    }

    private int add(String key, Entry entry) throws IOException {
        Integer known = constants.get(key);
        if (known != null) {
            return known;
        }
        entry.write();
        constants.put(key, entries);
        return entries++;
    }

    private int add(String key, int tag, int first, int second) throws IOException {
        return add(key, () -> {
            pool.writeByte(tag);
            pool.writeShort(first);
            if (second >= 0) {
                pool.writeShort(second);
            }
        });
    }

    int utf8(String text) throws IOException {
        return add("u" + text, () -> {
            pool.writeByte(1);
            pool.writeUTF(text);
        });
    }

    int number(int value) throws IOException {
        return add("i" + value, () -> {
            pool.writeByte(3);
            pool.writeInt(value);
        });
    }

    int type(String of) throws IOException {
        return add("c" + of, 7, utf8(of), -1);
    }

    private int member(int tag, String owner, String member, String descriptor) throws IOException {
        int pair = add("n" + member + " " + descriptor, 12, utf8(member), utf8(descriptor));
        return add("m" + tag + owner + " " + member + " " + descriptor, tag, type(owner), pair);
    }

    int field(String owner, String field, String descriptor) throws IOException {
        return member(9, owner, field, descriptor);
    }

    int method(String owner, String method, String descriptor) throws IOException {
        return member(10, owner, method, descriptor);
    }

    void addField(int access, String field, String descriptor) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeShort(access);
        out.writeShort(utf8(field));
        out.writeShort(utf8(descriptor));
        out.writeShort(0);
        fields.add(bytes.toByteArray());
    }

    /** `handlers`: start, end, handler, type of each. */
    void addMethod(int access, String method, String descriptor, byte[] code, int locals, List<int[]> handlers)
            throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeShort(access);
        out.writeShort(utf8(method));
        out.writeShort(utf8(descriptor));
        out.writeShort(1);
        out.writeShort(utf8("Code"));
        out.writeInt(12 + code.length + 8 * handlers.size());
        out.writeShort(200);
        out.writeShort(locals);
        out.writeInt(code.length);
        out.write(code);
        out.writeShort(handlers.size());
        for (int[] handler : handlers) {
            for (int part : handler) {
                out.writeShort(part);
            }
        }
        out.writeShort(0);
        methods.add(bytes.toByteArray());
    }

    byte[] write() throws IOException {
        int self = type(name);
        int above = type(parent);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xcafebabe);
        out.writeInt(50);
        out.writeShort(entries);
        out.write(poolBytes.toByteArray());
        out.writeShort(0x21);
        out.writeShort(self);
        out.writeShort(above);
        out.writeShort(0);
        out.writeShort(fields.size());
        for (byte[] field : fields) {
            out.write(field);
        }
        out.writeShort(methods.size());
        for (byte[] method : methods) {
            out.write(method);
        }
        out.writeShort(0);
        return bytes.toByteArray();
    }
}
