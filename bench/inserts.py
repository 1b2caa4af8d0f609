"""Single-row inserts by pgbench: rate, latency, and the time that sessions wait."""

import contextlib
import threading
from statistics import median, quantiles

from cluster import execute, run
from loads import KEYS, make_table

CLIENTS = (1, 2, 8, 64)
COMPARED = ("bigserial", "snowflake", "uuid")


class Sampler(threading.Thread):
    """Looks at pg_stat_activity again and again: the share of busy sessions that waited."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.done = cluster, threading.Event()
        self.busy = self.waiting = 0

    def run(self):
        with contextlib.closing(self.cluster.connect()) as connection:
            while not self.done.wait(0.05):
                busy, waiting = execute(
                    connection, "SELECT count(*), count(wait_event) FROM pg_stat_activity "
                    "WHERE state = 'active' AND application_name = 'pgbench'")[0]
                self.busy += busy
                self.waiting += waiting

    def finish(self):
        self.done.set()
        self.join()
        return self.waiting / max(self.busy, 1)


def insert_once(cluster, script, clients, seconds):
    logs = cluster.directory / "pgbench_log"
    for old in cluster.directory.glob("pgbench_log*"):
        old.unlink()
    sampler = Sampler(cluster)
    sampler.start()
    before = cluster.sql("SELECT sequence_waited + clock_waited + lease_waited FROM snowflake_stats")
    output = run("pgbench", "-n", "-M", "prepared", "-c", clients, "-j", min(clients, 2), "-T", seconds,
                 "-f", script, "--log", f"--log-prefix={logs}", env=cluster.environment())
    after = cluster.sql("SELECT sequence_waited + clock_waited + lease_waited FROM snowflake_stats")
    waiting = sampler.finish()
    latencies = []
    for log in cluster.directory.glob("pgbench_log*"):
        with open(log, encoding="ascii") as lines:
            latencies += [int(line.split()[2]) / 1000 for line in lines]
    cuts = quantiles(latencies, n=100)
    tps = next(float(line.split()[2]) for line in output.splitlines() if line.startswith("tps"))
    return {"tps": tps, "p50_ms": cuts[49], "p99_ms": cuts[98], "waiting": waiting,
            "waiting_for_id": (after[0][0] - before[0][0]).total_seconds() / (clients * seconds)}


def measure(cluster, scale):
    seconds, rounds = max(2, int(4 * scale)), max(2, int(7 * scale))
    script = cluster.directory / "insert.sql"
    script.write_text("INSERT INTO t (payload) VALUES ('payload') RETURNING id;\n", encoding="ascii")
    result = {"seconds": seconds}
    for commit in ("on", "off"):
        cluster.restart(synchronous_commit=commit, snowflake__max_machine_ids="4")
        result[f"synchronous_commit = {commit}"] = by_clients = {}
        for clients in CLIENTS:
            found = {key: [] for key in COMPARED}
            for number in range(rounds):
                # by turns in either order, so that what comes after what evens out
                for key, runs in list(found.items())[::1 if number % 2 == 0 else -1]:
                    if key == "uuid" and number > 0:
                        continue # far off: once is enough
                    make_table(cluster, key)
                    runs.append(insert_once(cluster, script, clients, seconds))
            by_clients[clients] = {
                key: {figure: median(run[figure] for run in runs) for figure in runs[0]}
                for key, runs in found.items()}
    cluster.restart(synchronous_commit="on")
    assert set(COMPARED) <= set(KEYS)
    return result
