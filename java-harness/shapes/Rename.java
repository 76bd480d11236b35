package shapes;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;

/** Class files with other names in them (JVM specification 4.4): any name, also one no file could have. */
public final class Rename {
    private static final int UTF8 = 1;

    private Rename() {}

    public static byte[] read(Class<?> type) throws IOException {
        String file = type.getName().replace('.', '/').concat(".class");
        try (InputStream in = type.getClassLoader().getResourceAsStream(file)) {
            return in.readAllBytes();
        }
    }

    /** Every constant that is names[0] becomes names[1], and so on in pairs. */
    public static byte[] rename(byte[] file, String... names) throws IOException {
        DataInputStream in = new DataInputStream(new java.io.ByteArrayInputStream(file));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(in.readInt());
        out.writeInt(in.readInt());
        int count = in.readUnsignedShort();
        out.writeShort(count);
        for (int i = 1; i < count; i++) {
            int tag = in.readUnsignedByte();
            out.writeByte(tag);
            if (tag == UTF8) {
                String text = in.readUTF();
                for (int k = 0; k < names.length; k += 2) {
                    if (text.equals(names[k])) {
                        text = names[k + 1];
                        break;
                    }
                }
                write(text, out);
            } else {
                out.write(in.readNBytes(bytesOf(tag)));
                if (tag == 5 || tag == 6) {
                    i++; // long and double take two numbers
                }
            }
        }
        out.write(in.readAllBytes());
        return bytes.toByteArray();
    }

    private static void write(String text, DataOutputStream out) throws IOException {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        if (text.length() > 1000 && bytes.length == text.length()) {
            out.writeShort(bytes.length); // the same bytes, without a step for each
            out.write(bytes);
        } else {
            out.writeUTF(text);
        }
    }

    private static int bytesOf(int tag) {
        switch (tag) {
            case 7: case 8: case 16: case 19: case 20: return 2;
            case 15: return 3;
            case 3: case 4: case 9: case 10: case 11: case 12: case 17: case 18: return 4;
            case 5: case 6: return 8;
            default: throw new IllegalStateException("constant pool tag ".concat(Integer.toString(tag)));
        }
    }
}
