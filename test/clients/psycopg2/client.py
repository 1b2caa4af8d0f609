"""psycopg2: keys come back, one and many, and rows can be copied in without any."""
import io

import psycopg2
from psycopg2.extras import execute_values

from report import are_beyond_floats, are_distinct_and_rise, done, keys, ok

connection = psycopg2.connect("")
connection.autocommit = True
cursor = connection.cursor()

cursor.execute("INSERT INTO item (name) VALUES (%s) RETURNING id", ("single",))
(single,) = cursor.fetchone()
keys("item", [("single", single)])
cursor.execute("SELECT snowflake_currval()")
ok(cursor.fetchone() == (single,), "RETURNING gives the key, and so does snowflake_currval()")

names = [f"values-{n}" for n in range(500)]
rows = execute_values(
    cursor, "INSERT INTO item (name) VALUES %s RETURNING name, id",
    [(name,) for name in names], page_size=200, fetch=True)
keys("item", rows)
ids = [key for _, key in rows]
ok([name for name, _ in rows] == names and are_distinct_and_rise(ids),
   "execute_values gives keys in the order of the rows, over several pages")
ok(are_beyond_floats(ids) and all(type(key) is int for key in ids),
   "keys are exact where a float would not be")

names = [f"unnest-{n}" for n in range(500)]
cursor.execute(
    "INSERT INTO item (name) SELECT unnest(%s) RETURNING name, id", (names,))
rows = cursor.fetchall()
keys("item", rows)
ok(len(rows) == 500 and are_distinct_and_rise([key for _, key in rows]),
   "INSERT of an unnested array gives keys")

cursor.executemany("INSERT INTO item (name) VALUES (%s)", [(f"many-{n}",) for n in range(50)])
cursor.copy_expert("COPY item (name) FROM STDIN", io.StringIO("".join(f"copy-{n}\n" for n in range(500))))
cursor.execute("""SELECT count(DISTINCT id) FILTER (WHERE name LIKE 'many-%'),
                         count(DISTINCT id) FILTER (WHERE name LIKE 'copy-%') FROM item""")
ok(cursor.fetchone() == (50, 500), "executemany and COPY fill the keys in")

cursor.execute("SELECT name FROM item WHERE id = %s", (single,))
ok(cursor.fetchall() == [("single",)], "a key that came back finds its row")

done()
