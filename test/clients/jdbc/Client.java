// JDBC: keys come back from getGeneratedKeys, one by one and in batches.
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.postgresql.PGConnection;

class Client {
    static void ok(boolean condition, String what) {
        System.out.println((condition ? "ok" : "not ok") + " - " + what);
    }

    /** Reports the key that the client believes the row of this name to have. */
    static void key(String name, long id) {
        System.out.println("key item " + name + " " + id);
    }

    static boolean areDistinctAndRise(List<Long> ids) {
        for (int i = 1; i < ids.size(); i++) {
            if (ids.get(i) <= ids.get(i - 1)) {
                return false;
            }
        }
        return ids.size() > 1;
    }

    static boolean areBeyondDoubles(List<Long> ids) {
        return ids.stream().anyMatch(id -> new BigDecimal((double) id).longValueExact() != id);
    }

    static Connection connect(String... settings) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        for (int i = 0; i < settings.length; i += 2) {
            properties.setProperty(settings[i], settings[i + 1]);
        }
        return DriverManager.getConnection(String.format("jdbc:postgresql://%s:%s/%s",
            System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE")), properties);
    }

    /** Inserts many rows in one batch; returns the keys that came back for them. */
    static List<Long> insertBatch(Connection connection, String prefix, int count) throws SQLException {
        List<Long> ids = new ArrayList<>();
        try (PreparedStatement insert = connection.prepareStatement(
                 "INSERT INTO item (name) VALUES (?)", new String[] {"id"})) {
            for (int n = 0; n < count; n++) {
                insert.setString(1, prefix + n);
                insert.addBatch();
            }
            insert.executeBatch();
            try (ResultSet keys = insert.getGeneratedKeys()) {
                while (keys.next()) {
                    key(prefix + ids.size(), keys.getLong(1));
                    ids.add(keys.getLong(1));
                }
            }
        }
        return ids;
    }

    public static void main(String[] arguments) throws Exception {
        long single;
        try (Connection connection = connect("prepareThreshold", "-1")) { // binary from the first time
            try (Statement insert = connection.createStatement()) {
                insert.executeUpdate("INSERT INTO item (name) VALUES ('single')", Statement.RETURN_GENERATED_KEYS);
                ResultSet keys = insert.getGeneratedKeys();
                keys.next();
                single = keys.getLong("id");
                key("single", single);
                ok(keys.getObject("id").equals(single), "getGeneratedKeys gives the key, as a Long");
            }
            try (PreparedStatement insert = connection.prepareStatement(
                     "INSERT INTO item (name) SELECT unnest(?) RETURNING name, id")) {
                String[] names = new String[500];
                for (int n = 0; n < names.length; n++) {
                    names[n] = "unnest-" + n;
                }
                insert.setArray(1, connection.createArrayOf("text", names));
                List<Long> ids = new ArrayList<>();
                ResultSet rows = insert.executeQuery();
                while (rows.next()) {
                    key(rows.getString(1), rows.getLong(2));
                    ids.add(rows.getLong(2));
                }
                ok(ids.size() == 500 && areDistinctAndRise(ids), "INSERT of an unnested array gives keys");
                ok(areBeyondDoubles(ids), "keys are exact where a double would not be");
            }
            long copied = ((PGConnection) connection).getCopyAPI().copyIn(
                "COPY item (name) FROM STDIN", new StringReader("copy-0\ncopy-1\ncopy-2\n"));
            try (Statement count = connection.createStatement()) {
                ResultSet rows = count.executeQuery("SELECT count(DISTINCT id) FROM item WHERE name LIKE 'copy-%'");
                rows.next();
                ok(copied == 3 && rows.getLong(1) == 3, "COPY fills the keys in");
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT name FROM item WHERE id = ?")) {
                select.setLong(1, single);
                ResultSet rows = select.executeQuery();
                ok(rows.next() && rows.getString(1).equals("single") && !rows.next(), "a key finds its row");
            }
        }
        for (String rewrite : new String[] {"false", "true"}) {
            try (Connection connection = connect("reWriteBatchedInserts", rewrite)) {
                List<Long> ids = insertBatch(connection, "batch-" + rewrite + "-", 300);
                ok(ids.size() == 300 && areDistinctAndRise(ids),
                    "a batch gives a key for each row, in their order, with reWriteBatchedInserts=" + rewrite);
            }
        }
        System.out.println("done");
    }
}
