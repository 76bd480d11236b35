import java.io.ByteArrayOutputStream;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Arrays that native code reads and writes as JNI critical arrays (zlib), while another thread stores
 * to other elements of one of them. Prints what came out.
 */
public final class Critical {
    private static final int SIZE = 8_000;

    private Critical() {}

    public static void main(String[] args) throws DataFormatException, InterruptedException {
        byte[] text = new byte[SIZE];
        for (int i = 0; i < SIZE; i++) {
            text[i] = (byte) (i * i >> 5);
        }
        byte[] packed = new byte[SIZE * 2];
        Deflater deflater = new Deflater();
        deflater.setInput(text);
        deflater.finish();
        int length = 0;
        while (!deflater.finished()) {
            length += deflater.deflate(packed, length, 500);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Inflater inflater = new Inflater();
        inflater.setInput(packed, 0, length);
        byte[] part = new byte[SIZE + 256];
        // Stores behind what the inflater writes: none of them may be lost.
        int[] stored = new int[256];
        Thread other = new Thread(() -> {
            for (int round = 1; round <= 20; round++) {
                for (int i = 0; i < 256; i++) {
                    part[SIZE + i] = (byte) (round + i);
                    stored[i] = round + i;
                }
            }
        });
        other.start();
        while (!inflater.finished()) {
            int got = inflater.inflate(part, 0, 333);
            out.write(part, 0, got);
        }
        other.join();
        int lost = 0;
        for (int i = 0; i < 256; i++) {
            if (part[SIZE + i] != (byte) stored[i]) {
                lost++;
            }
        }
        byte[] back = out.toByteArray();
        int different = back.length == SIZE ? 0 : SIZE;
        for (int i = 0; i < back.length && i < SIZE; i++) {
            if (back[i] != text[i]) {
                different++;
            }
        }
        CRC32 crc = new CRC32();
        crc.update(packed, 0, length);
        System.out.println("CHECK lost=".concat(Integer.toString(lost)));
        System.out.println("CHECK different=".concat(Integer.toString(different)));
        System.out.println("CHECK crc=".concat(Long.toString(crc.getValue())));
        System.out.println("DONE");
    }
}
