"""What is paid besides the call: the first ID, a renewal, memory."""

import contextlib
import re
import time
from datetime import datetime
from statistics import median

from cluster import execute, run


def first_ids(cluster, times):
    """Milliseconds of the first snowflake_nextval() after a start, and of another session's."""
    first, second, plain = [], [], []
    for _ in range(times):
        cluster.restart()
        for found in (first, second):
            with contextlib.closing(cluster.connect()) as connection:
                execute(connection, "SELECT 1")
                began = time.perf_counter()
                execute(connection, "SELECT snowflake_nextval()")
                found.append((time.perf_counter() - began) * 1000)
        with contextlib.closing(cluster.connect()) as connection:
            execute(connection, "SELECT 1")
            began = time.perf_counter()
            execute(connection, "SELECT nextval('cache_1')")
            plain.append((time.perf_counter() - began) * 1000)
    return {"first ID of the server": median(first), "first ID of another session": median(second),
            "first nextval() of a session": median(plain)}


def when(line):
    return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S.%f").timestamp()


def renewals(cluster, seconds):
    """How long a keeper runs for a renewal, and what it writes."""
    cluster.restart(log_min_messages="debug1", log_line_prefix="%m ", snowflake__lease_ttl="1s")
    with contextlib.closing(cluster.connect()) as connection:
        execute(connection, "SELECT snowflake_nextval()")
        start = cluster.log.stat().st_size
        (renewed, wal), = execute(connection, RENEWED)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            execute(connection, "SELECT snowflake_nextval()")
            time.sleep(0.01)
        (renewed_then, wal_then), = execute(connection, RENEWED)
    with open(cluster.log, encoding="utf-8") as log:
        log.seek(start)
        lines = log.read().splitlines()
    lives, began = [], None
    for line in lines:
        if 'starting background worker process "snowflake keeper"' in line:
            began = when(line)
        elif re.search(r'background worker "snowflake keeper" .* exited with exit code 0', line) and began:
            lives.append((when(line) - began) * 1000)
            began = None
    cluster.restart(log_min_messages="warning", snowflake__lease_ttl="60s")
    count = renewed_then - renewed
    return {"renewals": count, "keeper_ms": median(lives), "wal_bytes": float(wal_then - wal) / count}


RENEWED = """SELECT renewals, pg_current_wal_insert_lsn() - '0/0'::pg_lsn FROM snowflake_stats"""


def registry(cluster, seconds):
    """Renewals a second that a registry of 10,000 leases serves, as keepers ask for them: each by
    a connection of its own; and by connections that stay open."""
    cluster.sql("""INSERT INTO snowflake_lease (generator, machine_id, instance, database, holder, layout,
                                                horizon, claimed_at, renewed_at, expires_at)
                   SELECT 'many', i, 1, 1, 'bench', 'epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m14,s8',
                          1, now(), now(), now() + '1 day' FROM generate_series(0, 9999) AS i""")
    script = cluster.directory / "renew.sql"
    script.write_text("\\set id random(0, 9999)\n"
                      "SELECT snowflake_renew_lease('many', :id, 1, 1, '60s', 2);\n", encoding="ascii")
    found = {}
    for name, options in (("a connection each", ["-C"]), ("connections that stay", [])):
        output = run("pgbench", "-n", "-c", 8, "-j", 2, "-T", seconds, "-f", script, *options,
                     env=cluster.environment())
        found[name] = next(float(line.split()[2]) for line in output.splitlines() if line.startswith("tps"))
    cluster.sql("DELETE FROM snowflake_lease WHERE generator = 'many'")
    return found


def memory(cluster):
    """Bytes of the extension's shared memory."""
    found = {}
    for connections in (100, 5000):
        cluster.restart(max_connections=connections, shared_preload_libraries="snowflake")
        found[connections] = int(cluster.sql(
            "SELECT sum(allocated_size) FROM pg_shmem_allocations WHERE name LIKE 'snowflake%'")[0][0])
    cluster.restart(max_connections=100, shared_preload_libraries="")
    return found


def measure(cluster, scale):
    times = max(3, int(10 * scale))
    result = {"not preloaded": first_ids(cluster, times)}
    cluster.restart(shared_preload_libraries="snowflake")
    result["preloaded"] = first_ids(cluster, times)
    cluster.restart(shared_preload_libraries="")
    result["renewal"] = renewals(cluster, max(4, int(20 * scale)))
    result["registry"] = registry(cluster, max(3, int(10 * scale)))
    result["memory"] = memory(cluster)
    return result
