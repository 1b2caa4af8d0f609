"""psycopg 3: the same by its ways: executemany that returns, a pipeline, binary results, COPY by rows."""
import psycopg

from report import are_beyond_floats, are_distinct_and_rise, done, keys, ok

connection = psycopg.connect("", autocommit=True)
cursor = connection.cursor()

(single,) = cursor.execute("INSERT INTO item (name) VALUES (%s) RETURNING id", ("single",)).fetchone()
keys("item", [("single", single)])
ok(cursor.execute("SELECT snowflake_currval()").fetchone() == (single,),
   "RETURNING gives the key, and so does snowflake_currval()")

names = [f"many-{n}" for n in range(100)]
cursor.executemany(
    "INSERT INTO item (name) VALUES (%s) RETURNING name, id", [(name,) for name in names], returning=True)
rows = []
while True:
    rows += cursor.fetchall()
    if not cursor.nextset():
        break
keys("item", rows)
ids = [key for _, key in rows]
ok([name for name, _ in rows] == names and are_distinct_and_rise(ids),
   "executemany gives a key for each row, in their order")

with connection.pipeline():
    cursors = [connection.cursor(binary=True) for _ in range(20)]
    for n, each in enumerate(cursors):
        each.execute("INSERT INTO item (name) VALUES (%s) RETURNING name, id", (f"pipeline-{n}",))
rows = [each.fetchone() for each in cursors]
keys("item", rows)
ids += [key for _, key in rows]
ok(len(rows) == 20 and are_distinct_and_rise(ids), "statements in a pipeline get keys, as binary")

names = [f"unnest-{n}" for n in range(500)]
rows = cursor.execute(
    "INSERT INTO item (name) SELECT unnest(%s::text[]) RETURNING name, id", (names,)).fetchall()
keys("item", rows)
ids += [key for _, key in rows]
ok(len(rows) == 500 and are_distinct_and_rise(ids), "INSERT of an unnested array gives keys")
ok(are_beyond_floats(ids) and all(type(key) is int for key in ids),
   "keys are exact where a float would not be")

with cursor.copy("COPY item (name) FROM STDIN") as copy:
    for n in range(500):
        copy.write_row((f"copy-{n}",))
(copied,) = cursor.execute("SELECT count(DISTINCT id) FROM item WHERE name LIKE 'copy-%'").fetchone()
ok(copied == 500, "COPY fills the keys in")

for binary in (False, True):
    found = cursor.execute("SELECT id, name FROM item WHERE id = %b" if binary else
                           "SELECT id, name FROM item WHERE id = %t", (single,), binary=binary).fetchall()
    ok(found == [(single, "single")], "a key finds its row, passed as " + ("binary" if binary else "text"))

done()
