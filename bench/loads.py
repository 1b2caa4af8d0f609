"""Loading a table: rate, WAL, sizes, and a range scan of what was loaded."""

import contextlib
import time
from statistics import median

from psycopg2.errors import UniqueViolation

from calls import together
from cluster import execute, run

KEYS = {
    "bigserial": "bigserial",
    "snowflake": "bigint DEFAULT snowflake_nextval()",
    "uuid": "uuid DEFAULT gen_random_uuid()",
    "PL/pgSQL shard ID": "bigint DEFAULT shard_id()",
}
SESSIONS = 4


def make_table(cluster, key):
    cluster.sql("DROP TABLE IF EXISTS t")
    cluster.sql(f"CREATE TABLE t (id {KEYS[key]} PRIMARY KEY, payload text NOT NULL)")
    cluster.sql("CHECKPOINT")
    # not the first ID of the server
    cluster.sql("SELECT snowflake_nextval()")


def wal_position(cluster):
    return cluster.sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0][0]


def scan_seconds(cluster, rows):
    """A tenth of the rows, from the middle of the key, by the index."""
    cluster.sql("VACUUM (ANALYZE) t")
    with contextlib.closing(cluster.connect()) as connection:
        bounds = [execute(connection, f"SELECT id FROM t ORDER BY id OFFSET {rows * part // 20} LIMIT 1")
                  [0][0] for part in (9, 11)]
        execute(connection, "SET enable_seqscan = off; SET enable_bitmapscan = off")
        times = []
        for _ in range(3):
            began = time.perf_counter()
            execute(connection, "SELECT count(payload) FROM t WHERE id >= %s AND id < %s", *bounds)
            times.append(time.perf_counter() - began)
    return median(times)


def load_once(cluster, key, rows, way, file):
    """The figures of one load; none if two rows got the same key."""
    make_table(cluster, key)
    before = wal_position(cluster)
    if way == "insert":
        statement = f"INSERT INTO t (payload) SELECT 'payload ' || i FROM generate_series(1, {rows}) AS i"
        seconds, _ = together(cluster, 1, statement)
    else:
        try:
            seconds, _ = together(cluster, SESSIONS, f"COPY t (payload) FROM '{file}'")
        except UniqueViolation:
            return None
    found = {"rows_per_s": rows / seconds, "wal_bytes": float(wal_position(cluster) - before)}
    (found["table_bytes"], found["index_bytes"], found["density"], count) = cluster.sql(
        "SELECT pg_table_size('t'), pg_relation_size('t_pkey'), "
        "(pgstatindex('t_pkey')).avg_leaf_density, (SELECT count(*) FROM t)")[0]
    if count != rows:
        raise RuntimeError(f"{count} rows of {rows} were loaded")
    found["scan_s"] = scan_seconds(cluster, rows)
    return found


def measure(cluster, scale):
    rows = int(10000000 * scale) // SESSIONS * SESSIONS
    file = cluster.directory / "payload"
    with open(file, "w", encoding="ascii") as lines:
        lines.writelines(f"payload {i}\n" for i in range(rows // SESSIONS))
    cluster.restart(snowflake__max_machine_ids="4")
    result = {"rows": rows, "sessions": SESSIONS}
    for way in ("insert", "copy"):
        found = {key: [] for key in KEYS}
        for number in range(3):
            for key, runs in found.items():
                # the slow ones are far off: once is enough
                if number == 0 or key in ("bigserial", "snowflake"):
                    runs.append(load_once(cluster, key, rows, way, file))
        # the shard IDs of applications read the clock and a sequence in two steps, and repeat
        result[way] = {key: None if None in runs else
                       {figure: median(run[figure] for run in runs) for figure in runs[0]}
                       for key, runs in found.items()}
    cluster.sql("DROP TABLE t")
    run("rm", file)
    return result
