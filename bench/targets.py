"""What is aimed at, each as a ratio or difference within one run."""


def over(calls, name, figure="wall_ns"):
    return calls[name][figure] - calls["no-op C function"][figure]


def call_targets(results):
    calls = results["calls"]["calls"]
    ours, cached = calls["snowflake_nextval()"], calls["nextval, CACHE 1000"]
    sequence = calls["nextval, CACHE 1"]
    yield ("`snowflake_nextval()` over the no-op, several machine IDs allowed", "at most 40 ns",
           over(calls, "snowflake_nextval()"), "{:.0f} ns", lambda found: found <= 40)
    yield ("`snowflake_nextval()` per row in all, of `nextval()` CACHE 1", "at most 0.5",
           ours["wall_ns"] / sequence["wall_ns"], "{:.2f}", lambda found: found <= 0.5)
    yield ("the same of the cost over the no-op", "at most 0.25",
           over(calls, "snowflake_nextval()") / over(calls, "nextval, CACHE 1"), "{:.2f}",
           lambda found: found <= 0.25)
    yield ("`snowflake_nextval()` per row in all, of `nextval()` CACHE 1000", "below 1",
           ours["wall_ns"] / cached["wall_ns"], "{:.2f}", lambda found: found < 1)
    for way, found in results["calls"]["cap"].items():
        yield (f"share of one machine ID's 4096 IDs a millisecond: {way}", "at least 0.97", found["share"],
               "{:.3f}", lambda share: share >= 0.97)
    sessions = results["calls"]["sessions"]
    yield ("two sessions' rate of one's", "at least 1.8",
           sessions["2"]["snowflake_nextval()"] / sessions["1"]["snowflake_nextval()"], "{:.2f}",
           lambda found: found >= 1.8)
    yield ("the same of the no-op", "(what the machine gives)",
           sessions["2"]["no-op C function"] / sessions["1"]["no-op C function"], "{:.2f}", None)
    yield ("dearest decoder of one field over the no-op", "at most 20 ns",
           max(over(results["calls"]["decoders"], name) for name in
               ("snowflake_timestamp(id)", "snowflake_machine_id(id)", "snowflake_timestamp(id, layout)")),
           "{:.0f} ns", lambda found: found <= 20)
    row = "no-op C function that returns a row"
    yield ("`snowflake_parse()` over a no-op that returns a row", "at most 20 ns",
           over(results["calls"]["decoders"], "snowflake_parse(id)")
           - over(results["calls"]["decoders"], row), "{:.0f} ns", lambda found: found <= 20)


def load_targets(results):
    for way, title in (("insert", "`INSERT … SELECT`"), ("copy", "`COPY`, several sessions")):
        ours, serial = results["loads"][way]["snowflake"], results["loads"][way]["bigserial"]
        yield (f"{title}: rows a second, of bigserial", "at least 1",
               ours["rows_per_s"] / serial["rows_per_s"], "{:.2f}", lambda found: found >= 1)
        yield (f"{title}: WAL, of bigserial", "at most 1",
               ours["wal_bytes"] / serial["wal_bytes"], "{:.3f}", lambda found: found <= 1)
        yield (f"{title}: size of the index, of bigserial", "at most 1",
               ours["index_bytes"] / serial["index_bytes"], "{:.3f}", lambda found: found <= 1)


def insert_targets(results):
    for commit in ("synchronous_commit = on", "synchronous_commit = off"):
        for clients, found in results["inserts"][commit].items():
            yield (f"pgbench, {clients} clients, `{commit}`: tps of bigserial", "at least 1",
                   found["snowflake"]["tps"] / found["bigserial"]["tps"], "{:.2f}",
                   lambda ratio: ratio >= 1)


def cost_targets(results):
    yield ("first ID after a start", "below 50 ms",
           results["costs"]["not preloaded"]["first ID of the server"], "{:.0f} ms",
           lambda found: found < 50)


def all_targets(results):
    """(what, aim, found as text, met)"""
    for group, of_group in (("calls", call_targets), ("loads", load_targets),
                            ("inserts", insert_targets), ("costs", cost_targets)):
        if group in results:
            for what, aim, found, form, is_met in of_group(results):
                yield what, aim, form.format(found), is_met and is_met(found)
