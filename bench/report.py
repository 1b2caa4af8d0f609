"""The results as a page in Markdown, with plots by gnuplot."""

import subprocess

from targets import all_targets, over

PREAMBLE = """\
set terminal svg size 760,{height} font 'sans-serif,13' noenhanced background '#ffffff'
set output '{output}'
set border 3 lc rgb '#888888'
set tics nomirror textcolor rgb '#333333'
set grid {grid} lc rgb '#dddddd'
set title '{title}'
set key {key}
"""
OURS = "#1f6feb"
OTHERS = ("#999999", "#d29922", "#8250df", "#2da44e", "#cf222e", "#57606a")


def gnuplot(script):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def bars(output, title, unit, figures):
    """One bar a name, ours in colour."""
    height = 90 + 32 * len(figures)
    script = PREAMBLE.format(height=height, output=output, grid="x", title=title, key="off")
    script += f"set xlabel '{unit}'\nset yrange [{len(figures) - 0.4}:-0.6]\nset xrange [0:*]\n"
    script += "set ytics (" + ", ".join(
        f"'{name}' {number}" for number, name in enumerate(figures)) + ")\n"
    script += "set style fill solid\nset boxwidth 0.6\n"
    script += ("plot '-' using ($2/2):1:($2/2):(0.3):3 with boxxyerrorbars lc rgb variable, "
               "'' using 2:1:(sprintf('  %.4g', $2)) with labels left font ',11'\n")
    data = "".join(
        f"{number} {value} {0x1f6feb if 'snowflake' in name else 0xaaaaaa}\n"
        for number, (name, value) in enumerate(figures.items()))
    gnuplot(script + data + "e\n" + data + "e\n")


def lines(output, title, x_title, y_title, series):
    """One line a name over the same x, which doubles."""
    script = PREAMBLE.format(height=380, output=output, grid="x y", title=title,
                             key="outside right top")
    script += f"set xlabel '{x_title}'\nset ylabel '{y_title}'\nset logscale x 2\nset yrange [0:*]\n"
    places = [int(x) for x in next(iter(series.values()))]
    script += f"set xrange [{places[0] * 0.9}:{places[-1] * 1.1}]\nset xtics ({', '.join(map(str, places))})\n"
    others = iter(OTHERS)
    colours = {name: OURS if name in ("snowflake", "OneWord") else next(others) for name in series}
    script += "plot " + ", ".join(
        f"'-' using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb '{colour}' title '{name}'"
        for name, colour in colours.items()) + "\n"
    for points in series.values():
        script += "".join(f"{x} {y}\n" for x, y in points.items()) + "e\n"
    gnuplot(script)


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|--:" * (len(head) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def megabytes(size):
    return f"{size / 1e6:,.0f} MB"


def call_pages(calls, directory):
    found = calls["calls"]
    bars(directory / "calls.svg", "one row with one ID, one session", "ns a row",
         {name: figures["wall_ns"] for name, figures in found.items()})
    yield "## One call\n"
    yield ("`SELECT count(f()) FROM generate_series(…)`, one session, up to four machine IDs; medians "
           "of alternating runs. CPU is the time of the session's process.\n")
    yield "![ns a row](calls.svg)\n"
    yield from table(["function", "ns a row", "over the no-op", "CPU ns a row", "CPU over the no-op"],
                     ([f"`{name}`" if "(" in name else name, f"{figures['wall_ns']:.0f}",
                       f"{over(found, name):.0f}", f"{figures['cpu_ns']:.0f}",
                       f"{over(found, name, 'cpu_ns'):.0f}"] for name, figures in found.items()))
    decoders = calls["decoders"]
    yield from table(["decoder", "ns a row", "over the no-op", "CPU over the no-op"],
                     ([f"`{name}`" if "snowflake" in name else name, f"{figures['wall_ns']:.0f}",
                       f"{over(decoders, name):.0f}", f"{over(decoders, name, 'cpu_ns'):.0f}"]
                      for name, figures in decoders.items()))
    sessions = calls["sessions"]
    names = list(sessions["1"])
    yield ("Several sessions at once, million rows a second together, up to 16 machine IDs "
           "(`SELECT count(f()) FROM (SELECT generate_series(…))`):\n")
    yield from table(["function"] + [f"{count}" for count in sessions] + ["2 of 1"],
                     ([name] + [f"{sessions[count][name]:.2f}" for count in sessions]
                      + [f"{sessions['2'][name] / sessions['1'][name]:.2f}"] for name in names))
    yield ("With one machine ID, the share of its 4096 IDs a millisecond that was drawn, and how many "
           "processors that kept busy:\n")
    yield from table(["by", "share", "processors"],
                     ([way, f"{found['share']:.3f}", f"{found['busy']:.2f}"]
                      for way, found in calls["cap"].items()))


def load_pages(loads, directory):
    for way, title in (("insert", "INSERT … SELECT"), ("copy", f"COPY, {loads['sessions']} sessions")):
        found = loads[way]
        bars(directory / f"{way}.svg", f"{title}, {loads['rows']:,} rows", "million rows a second",
             {key: figures["rows_per_s"] / 1e6 for key, figures in found.items() if figures})
        yield f"## {title}, {loads['rows']:,} rows\n"
        yield f"![rows a second]({way}.svg)\n"
        yield from table(
            ["key", "rows a second", "WAL", "table", "index", "density of its leaves", "scan of a tenth"],
            ([key, f"{figures['rows_per_s']:,.0f}", megabytes(figures["wal_bytes"]),
              megabytes(figures["table_bytes"]), megabytes(figures["index_bytes"]),
              f"{figures['density']:.0f}%", f"{figures['scan_s'] * 1000:.0f} ms"]
             if figures else [key, "**duplicate key**", "", "", "", "", ""]
             for key, figures in found.items()))


def insert_pages(inserts, directory):
    for number, commit in enumerate(("synchronous_commit = on", "synchronous_commit = off")):
        found = inserts[commit]
        lines(directory / f"inserts_{number + 1}.svg", f"single-row inserts, {commit}", "clients", "tps",
              {key: {clients: figures[key]["tps"] for clients, figures in found.items()}
               for key in found["1"]})
        yield f"## pgbench, single-row inserts, `{commit}`\n"
        yield f"![tps](inserts_{number + 1}.svg)\n"
        yield from table(
            ["clients, key", "tps", "p50", "p99", "time waited", "time waited for IDs"],
            ([f"{clients}, {key}", f"{figures['tps']:,.0f}", f"{figures['p50_ms']:.2f} ms",
              f"{figures['p99_ms']:.2f} ms", f"{figures['waiting']:.0%}",
              f"{figures['waiting_for_id']:.2%}" if key == "snowflake" else ""]
             for clients, keys in found.items() for key, figures in keys.items()))


def cost_pages(costs, _):
    yield "## Besides the call\n"
    for mode in ("not preloaded", "preloaded"):
        yield from table([f"library {mode}", "ms"],
                         ([what, f"{ms:.1f}"] for what, ms in costs[mode].items()))
    renewal = costs["renewal"]
    yield from table(["a renewal", ""], [["keeper runs", f"{renewal['keeper_ms']:.0f} ms"],
                                         ["WAL", f"{renewal['wal_bytes']:.0f} bytes"],
                                         ["measured", f"{renewal['renewals']} renewals"]])
    yield from table(["renewals that a registry of 10,000 leases serves", "a second"],
                     ([how, f"{rate:,.0f}"] for how, rate in costs["registry"].items()))
    yield from table(["`max_connections`", "shared memory"],
                     ([count, f"{size / 2**20:.2f} MiB"] for count, size in costs["memory"].items()))


def core_pages(core, directory):
    lines(directory / "core.svg", "the core alone, wide sequence", "threads",
          "CPU ns an ID",
          {name: {threads: point["cpu_ns"] for threads, point in points.items()}
           for name, points in core.items() if name != "CapOfOneMachineId"})
    yield "## The core without a server\n"
    yield ("Google Benchmark. `ClockAlone` and `ClockAndSharedCounter` are yardsticks: every ID reads the "
           "clock. More threads than cores share these.\n")
    yield "![CPU ns an ID](core.svg)\n"
    threads = list(next(iter(core.values())))
    yield from table(["CPU ns an ID, by threads"] + threads,
                     ([name] + [f"{point['cpu_ns']:.0f}" for point in points.values()]
                      for name, points in core.items()))


def pages(results, directory):
    yield "# Benchmark results\n"
    yield "Made by `make bench`; [how and why](../../doc/performance.md).\n"
    yield from table(["machine", ""], results["machine"].items())
    yield "## Targets\n"
    yield from table(["what", "aim", "found", ""],
                     ([what, aim, found, "" if met is None else "met" if met else "**missed**"]
                      for what, aim, found, met in all_targets(results)))
    for group, of_group in (("calls", call_pages), ("loads", load_pages), ("inserts", insert_pages),
                            ("costs", cost_pages), ("core", core_pages)):
        if group in results:
            yield from of_group(results[group], directory)


def write(results, directory):
    page = "\n".join(pages(results, directory))
    (directory / "README.md").write_text(page.rstrip("\n") + "\n", encoding="utf-8")
