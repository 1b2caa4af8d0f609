"""Runs the groups of measurements that are named, and writes the results and their page.

main.py DIRECTORY RESULTS [GROUP]...   GROUP: calls loads inserts costs core, or
report, which makes the page anew and measures nothing

DIRECTORY is for the server; RESULTS is where results.json is read, if it is there, and
written. $SCALE scales rows and rounds, $CORE_JSON is what Google Benchmark found."""

import json
import os
import platform
import sys
from datetime import date
from pathlib import Path

import calls
import costs
import inserts
import loads
import report
from cluster import Cluster, run

GROUPS = {"calls": calls, "loads": loads, "inserts": inserts, "costs": costs}


def machine(scale):
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")),
                     platform.machine())
    with open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
              encoding="utf-8") as source:
        clock = source.read().strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"processor": f"{model}, {os.cpu_count()} threads", "memory": f"{memory:.0f} GiB",
            "kernel": f"{platform.system()} {platform.release()}, clock source {clock}",
            "PostgreSQL": run("postgres", "--version").split()[2],
            "load before": f"{os.getloadavg()[0]:.1f}", "date": str(date.today()),
            "scale": f"{scale:g}"}


def core_results(path):
    found = {}
    with open(path, encoding="utf-8") as file:
        for run_ in json.load(file)["benchmarks"]:
            name = run_["name"].split("/")[0]
            found.setdefault(name, {})[str(run_["threads"])] = {"cpu_ns": run_["cpu_time"]}
    return found


def main():
    directory, output = Path(sys.argv[1]), Path(sys.argv[2])
    groups = sys.argv[3:] or [*GROUPS, "core"]
    scale = float(os.environ.get("SCALE") or 1)
    saved = output / "results.json"
    results = json.loads(saved.read_text(encoding="utf-8")) if saved.exists() else {}
    if groups != ["report"]:
        results["machine"] = machine(scale)
    if set(groups) & set(GROUPS):
        cluster = Cluster(directory / "server")
        cluster.start()
        try:
            cluster.run_file(Path(__file__).parent / "objects.sql")
            for group in groups:
                if group in GROUPS:
                    print(f"== {group}", flush=True)
                    results[group] = GROUPS[group].measure(cluster, scale)
                    saved.write_text(json.dumps(results), encoding="utf-8")
        finally:
            cluster.stop()
    if "core" in groups:
        results["core"] = core_results(os.environ["CORE_JSON"])
    # as it will be read again: with keys that are text
    saved.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    report.write(json.loads(saved.read_text(encoding="utf-8")), output)


main()
