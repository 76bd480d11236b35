import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A program that recordings of are started and ended: THREADS that are busy all the time (arrays of their own,
 * and short-lived objects; with the third argument sql each works on a database of its own instead, jdbc:h2:mem:).
 * When FOLDER/goN appears, each of them stores and loads Box.value (100 + N) times and "ROUND N" is printed; when
 * FOLDER/end appears the program ends. With the third argument read two more threads take part, each when it has read
 * a byte from FOLDER/pipe0 or pipe1: one by FileInputStream, one by FileChannel.
 */
public final class Rounds extends Thread {
    static final class Box {
        volatile int value;
    }

    private static volatile int round;
    private static volatile boolean over;
    private static final AtomicInteger DONE = new AtomicInteger();
    private final Box box = new Box();
    private final int[] work = new int[256];
    private int wrong;
    private Object last;
    private Connection database;
    private PreparedStatement insert;
    private int rows;

    private void take(int times) {
        for (int i = 0; i < times; i++) {
            box.value = i;
            if (box.value != i) {
                wrong++;
            }
        }
    }

    private void keepBusy() {
        int[] made = new int[16];
        for (int i = 0; i < 256; i++) {
            work[i] += i ^ work[(i * 7 + 1) & 255];
            made[i & 15]++;
        }
        for (int count : made) {
            if (count != 16) {
                wrong++;
            }
        }
        last = made;
    }

    private void openDatabase() throws SQLException {
        database = DriverManager.getConnection("jdbc:h2:mem:");
        try (Statement statement = database.createStatement()) {
            statement.execute("create table t(id int primary key, name varchar(40), amount int)");
        }
        insert = database.prepareStatement("insert into t values(?, ?, ?)");
    }

    private void work() throws SQLException {
        if (database == null) {
            keepBusy();
            return;
        }
        insert.setInt(1, rows);
        insert.setString(2, "row ".concat(Integer.toString(rows % 17)));
        insert.setInt(3, rows % 5);
        insert.executeUpdate();
        rows++;
        if (rows % 20 != 0) {
            return;
        }
        try (Statement statement = database.createStatement()) {
            try (ResultSet found = statement.executeQuery("select count(*), sum(amount) from t where id < 100000")) {
                found.next();
                if (found.getInt(1) != rows || found.getInt(2) != rows * 2) {
                    wrong++;
                }
            }
            if (rows == 200) {
                statement.execute("delete from t");
                rows = 0;
            }
        }
    }

    @Override
    public void run() {
        try {
            runRounds();
        } catch (SQLException e) {
            e.printStackTrace();
            wrong++;
        }
    }

    private void runRounds() throws SQLException {
        int seen = 0;
        while (!over) {
            int now = round;
            if (now != seen) {
                seen = now;
                take(100 + now);
                DONE.incrementAndGet();
            }
            work();
        }
    }

    /** Waits in a read between its rounds. */
    private static final class Reader extends Thread {
        private final Rounds rounds = new Rounds();
        private final String pipe;
        private final boolean channel;

        Reader(String pipe, boolean channel) {
            this.pipe = pipe;
            this.channel = channel;
            setDaemon(true);
        }

        @Override
        public void run() {
            try (FileInputStream in = new FileInputStream(pipe)) {
                ByteBuffer one = ByteBuffer.allocateDirect(1);
                int seen = 0;
                while (channel ? in.getChannel().read(one) == 1 : in.read() >= 0) {
                    one.clear();
                    while (round == seen) {
                        Thread.onSpinWait();
                    }
                    seen = round;
                    rounds.take(100 + seen);
                    DONE.incrementAndGet();
                }
            } catch (IOException e) {
                e.printStackTrace();
            }
        }
    }

    public static void main(String[] args) throws InterruptedException, SQLException {
        boolean sql = args.length > 2 && args[2].equals("sql");
        Reader[] readers = new Reader[args.length > 2 && args[2].equals("read") ? 2 : 0];
        for (int i = 0; i < readers.length; i++) {
            readers[i] = new Reader(args[1] + "/pipe" + i, i % 2 == 1);
            readers[i].start();
        }
        Rounds[] threads = new Rounds[Integer.parseInt(args[0])];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Rounds();
            if (sql) {
                threads[i].openDatabase();
            }
            threads[i].start();
        }
        System.out.println("READY");
        File end = new File(args[1], "end");
        int next = 1;
        while (!end.exists()) {
            Thread.sleep(5);
            if (!new File(args[1], "go".concat(Integer.toString(next))).exists()) {
                continue;
            }
            DONE.set(0);
            round = next;
            while (DONE.get() < threads.length + readers.length) {
                Thread.sleep(1);
            }
            System.out.println("ROUND ".concat(Integer.toString(next)));
            next++;
        }
        over = true;
        int wrong = 0;
        for (Rounds thread : threads) {
            thread.join();
            wrong += thread.wrong;
        }
        for (Reader reader : readers) {
            wrong += reader.rounds.wrong;
        }
        System.out.println("CHECK wrong=".concat(Integer.toString(wrong)));
        System.out.println("DONE");
    }
}
