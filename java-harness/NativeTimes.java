import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import java.util.zip.ZipOutputStream;

/** Native methods of the JDK, a known number of times, on several threads; some throw. Argument: rounds a thread. */
public final class NativeTimes {
    private NativeTimes() {}

    private static long round(int seed) throws Exception {
        byte[] data = new byte[5000];
        for (int i = 0; i < data.length; i++) {
            data[i] = (byte) ((i * seed) >> 3);
        }
        Deflater deflater = new Deflater();
        deflater.setInput(data);
        deflater.finish();
        byte[] packed = new byte[6000];
        int length = deflater.deflate(packed);
        deflater.end();
        Inflater inflater = new Inflater();
        inflater.setInput(packed, 0, length);
        byte[] again = new byte[data.length];
        inflater.inflate(again);
        inflater.end();
        CRC32 crc = new CRC32();
        crc.update(again);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(out)) {
            zip.putNextEntry(new ZipEntry("a"));
            zip.write(again);
            zip.closeEntry();
        }
        int read = 0;
        try (ZipInputStream zip = new ZipInputStream(new ByteArrayInputStream(out.toByteArray()))) {
            zip.getNextEntry();
            InputStream in = zip;
            while (in.read() >= 0) {
                read++;
            }
        }
        int thrown = 0;
        try {
            Class.forName("no.such.Class" + seed);
        } catch (ClassNotFoundException e) {
            thrown++;
        }
        try {
            System.arraycopy(data, 0, again, 4000, 2000);
        } catch (ArrayIndexOutOfBoundsException e) {
            thrown++;
        }
        Object lock = new Object();
        synchronized (lock) {
            lock.wait(1);
        }
        return crc.getValue() + read + thrown + lock.getClass().getName().length();
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        long[] sums = new long[4];
        Thread[] threads = new Thread[sums.length];
        for (int t = 0; t < threads.length; t++) {
            int own = t;
            threads[t] = new Thread(() -> {
                try {
                    for (int i = 0; i < rounds; i++) {
                        sums[own] = sums[own] * 31 + round(own * rounds + i + 1);
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                }
            });
            threads[t].start();
        }
        long sum = 0;
        for (int t = 0; t < threads.length; t++) {
            threads[t].join();
            sum = sum * 31 + sums[t];
        }
        System.out.println("CHECK sum=" + sum);
        System.out.println("DONE");
    }
}
