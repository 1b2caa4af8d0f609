-- One session's part of the IDs drawn as fast as they come, for pgbench.
INSERT INTO drawn SELECT snowflake_nextval(), pg_backend_pid(), n FROM generate_series(1, 250000) n;
