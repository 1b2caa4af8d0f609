"""A throw-away server, and what the measurements do with it."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import psycopg2

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "2GB",
    "max_wal_size": "16GB",
    "min_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "max_connections": "100",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A server in a directory of its own, reached by a Unix socket."""

    def __init__(self, directory, **settings):
        self.directory = Path(directory)
        self.data = self.directory / "data"
        self.log = self.directory / "server.log"
        self.port = free_port()
        shutil.rmtree(self.data, ignore_errors=True)
        run("initdb", "--auth=trust", "--no-sync", "-D", self.data)
        self.set(**{**SETTINGS, "unix_socket_directories": self.directory, "port": self.port,
                    **settings})

    def set(self, **settings):
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            for name, value in settings.items():
                file.write(f"{name.replace('__', '.')} = '{value}'\n")

    def start(self):
        run("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "120", "start")

    def stop(self):
        run("pg_ctl", "-D", self.data, "-w", "-t", "300", "-m", "fast", "stop")

    def restart(self, **settings):
        self.stop()
        self.set(**settings)
        self.start()

    def connect(self, database="postgres"):
        connection = psycopg2.connect(host=str(self.directory), port=self.port, dbname=database,
                                      user=os.environ.get("USER", "postgres"))
        connection.autocommit = True
        return connection

    def sql(self, statement, *arguments):
        """Runs a statement in a session of its own; the rows, or none."""
        with contextlib.closing(self.connect()) as connection:
            return execute(connection, statement, *arguments)

    def run_file(self, path):
        run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path, *self.psql_options())

    def psql_options(self):
        return ["-h", str(self.directory), "-p", str(self.port), "-d", "postgres"]

    def environment(self):
        return {**os.environ, "PGHOST": str(self.directory), "PGPORT": str(self.port),
                "PGDATABASE": "postgres"}


def run(*command, **options):
    """Runs a program; what it printed. Its own words if it fails."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}")
    return done.stdout


def execute(connection, statement, *arguments):
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments or None)
        return cursor.fetchall() if cursor.description else []


def cpu_seconds(connection):
    """The CPU time of a session's server process so far."""
    with open(f"/proc/{connection.info.backend_pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def timed(connection, statement):
    """Wall and CPU seconds of a statement."""
    cpu, wall = cpu_seconds(connection), time.perf_counter()
    execute(connection, statement)
    return time.perf_counter() - wall, cpu_seconds(connection) - cpu
