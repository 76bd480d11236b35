import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * A database at work: an in-memory H2 (h2.jar on the class path) gets 200 inserts into two tables,
 * an update and three joins, and prints every row of the answers. Nothing printed depends on time.
 * Argument: another number of inserts.
 */
public final class SqlScript {
    private SqlScript() {}

    public static void main(String[] args) throws SQLException {
        int inserts = args.length > 0 ? Integer.parseInt(args[0]) : 200;
        int customers = inserts / 5;
        try (Connection db = DriverManager.getConnection("jdbc:h2:mem:script");
                Statement statement = db.createStatement()) {
            statement.execute("create table customer(id int primary key, name varchar(40), city varchar(20))");
            statement.execute("create table orders(id int primary key, customer int, total decimal(10,2))");
            statement.execute("create index by_customer on orders(customer)");
            insertCustomers(db, customers);
            insertOrders(db, inserts - customers, customers);
            print(statement, "select count(*), sum(total), min(total), max(total) from orders");
            print(statement, "select c.name, count(*) n, sum(o.total) s from customer c join orders o"
                    + " on o.customer = c.id group by c.name order by s desc, c.name limit 10");
            statement.executeUpdate("update orders set total = total * 2 where customer in"
                    + " (select id from customer where city = 'Ulm')");
            print(statement, "select c.city, avg(o.total) from customer c left join orders o"
                    + " on o.customer = c.id group by c.city order by c.city");
            print(statement, "select a.id, b.id from orders a join orders b on a.customer = b.customer"
                    + " and a.id < b.id where a.total > b.total order by a.id, b.id limit 20");
        }
        System.out.println("DONE");
    }

    private static void insertCustomers(Connection db, int n) throws SQLException {
        String[] cities = {"Ulm", "Bonn", "Kiel", "Jena", "Trier"};
        try (PreparedStatement insert = db.prepareStatement("insert into customer values(?, ?, ?)")) {
            for (int i = 0; i < n; i++) {
                insert.setInt(1, i);
                insert.setString(2, "customer " + i);
                insert.setString(3, cities[i % cities.length]);
                insert.executeUpdate();
            }
        }
    }

    private static void insertOrders(Connection db, int n, int customers) throws SQLException {
        try (PreparedStatement insert = db.prepareStatement("insert into orders values(?, ?, ?)")) {
            for (int i = 0; i < n; i++) {
                insert.setInt(1, i);
                insert.setInt(2, (i * 7) % customers);
                insert.setBigDecimal(3, new java.math.BigDecimal((i * 7919) % 10007).movePointLeft(2));
                insert.executeUpdate();
            }
        }
    }

    private static void print(Statement statement, String sql) throws SQLException {
        try (ResultSet rows = statement.executeQuery(sql)) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                StringBuilder line = new StringBuilder();
                for (int c = 1; c <= columns; c++) {
                    line.append(c > 1 ? " | " : "").append(rows.getString(c));
                }
                System.out.println(line);
            }
        }
    }
}
