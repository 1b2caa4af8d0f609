"""What one call costs, row by row: alternating runs of every function."""

import contextlib
import threading
import time
from statistics import median

from cluster import execute, timed

FUNCTIONS = {
    "no function": "i",
    "no-op C function": "noop()",
    "snowflake_nextval()": "snowflake_nextval()",
    "nextval, CACHE 1": "nextval('cache_1')",
    "nextval, CACHE 32": "nextval('cache_32')",
    "nextval, CACHE 1000": "nextval('cache_1000')",
    "gen_random_uuid()": "gen_random_uuid()",
    "PL/pgSQL shard ID": "shard_id()",
}

DECODERS = {
    "no-op C function": "noop(i)",
    "no-op C function that returns a row": "noop_row(i)",
    "snowflake_timestamp(id)": "snowflake_timestamp(i)",
    "snowflake_machine_id(id)": "snowflake_machine_id(i)",
    "snowflake_parse(id)": "snowflake_parse(i)",
    "snowflake_timestamp(id, layout)": "snowflake_timestamp(i, 'twitter')",
    "snowflake_to_base62(id)": "snowflake_to_base62(i)",
    "snowflake_friendly(id)": "snowflake_friendly(i)",
}


def per_row(call, rows):
    return f"SELECT count({call}) FROM generate_series({2**50}::bigint, {2**50 + rows - 1}) AS i"


def stream(call, rows):
    """The same without a table of the rows in between: all of the time goes into calls."""
    return f"SELECT count({call}) FROM (SELECT generate_series(1, {rows})) AS s (i)"


def alternate(connection, calls, rows, rounds):
    """Medians of wall and CPU time, in ns a row, of each call."""
    wall, cpu = {name: [] for name in calls}, {name: [] for name in calls}
    for statement in calls.values():
        execute(connection, per_row(statement, rows // 10))
    for _ in range(rounds):
        for name, call in calls.items():
            wall_s, cpu_s = timed(connection, per_row(call, rows))
            wall[name].append(wall_s / rows * 1e9)
            cpu[name].append(cpu_s / rows * 1e9)
    return {name: {"wall_ns": median(wall[name]), "cpu_ns": median(cpu[name])} for name in calls}


def together(cluster, sessions, statement):
    """Wall seconds until all of several sessions have run a statement that they began at once,
    and their CPU seconds."""
    barrier = threading.Barrier(sessions + 1)
    failures, cpu = [], []

    def one():
        try:
            with contextlib.closing(cluster.connect()) as connection:
                # not the first ID of a session, and the extension loaded
                execute(connection, "SELECT snowflake_nextval(), nextval('cache_1')")
                barrier.wait()
                cpu.append(timed(connection, statement)[1])
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=one) for _ in range(sessions)]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.perf_counter() - began, sum(cpu)


def rates(cluster, calls, rows, rounds, sessions):
    """Million rows a second, all sessions together."""
    found = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            seconds, _ = together(cluster, sessions, stream(call, rows))
            found[name].append(sessions * rows / seconds / 1e6)
    return {name: median(values) for name, values in found.items()}


def share_of_cap(cluster, rows, rounds):
    """IDs drawn of those that one machine ID has, and processors kept busy, by each way."""
    ways = {
        "one session, snowflake_nextvals()": (1, f"SELECT count(*) FROM (SELECT snowflake_nextvals({rows})) AS i"),
        "one session, snowflake_nextval()": (1, stream("snowflake_nextval()", rows)),
        "two sessions, snowflake_nextval()": (2, stream("snowflake_nextval()", rows // 2)),
        "eight sessions, snowflake_nextval()": (8, stream("snowflake_nextval()", rows // 8)),
    }
    found = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (sessions, statement) in ways.items():
            seconds, cpu = together(cluster, sessions, statement)
            found[name].append((rows / (seconds * 4096000), cpu / seconds))
    return {name: {"share": median(share for share, _ in pairs), "busy": median(busy for _, busy in pairs)}
            for name, pairs in found.items()}


def measure(cluster, scale):
    rows, rounds = max(100000, int(1000000 * scale)), max(3, int(11 * scale))
    one_each = {name: FUNCTIONS[name] for name in FUNCTIONS if name != "no function"}
    cluster.restart(snowflake__max_machine_ids="1")
    result = {"cap": share_of_cap(cluster, rows * 8, rounds)}
    with contextlib.closing(cluster.connect()) as connection:
        result["one machine ID"] = alternate(
            connection, {"no-op C function": "noop()", "snowflake_nextval()": "snowflake_nextval()"},
            rows, rounds)
    cluster.restart(snowflake__max_machine_ids="4")
    with contextlib.closing(cluster.connect()) as connection:
        result["calls"] = alternate(connection, FUNCTIONS, rows, rounds)
        result["decoders"] = alternate(connection, DECODERS, rows, rounds)
    # for the processors to be the limit, not the machine IDs
    cluster.restart(snowflake__max_machine_ids="16")
    result["sessions"] = {sessions: rates(cluster, one_each, rows * 2, max(3, rounds // 2), sessions)
                          for sessions in (1, 2, 4)}
    return result
