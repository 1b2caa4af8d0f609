CREATE OR REPLACE FUNCTION @extschema@.snowflake_backends(
    OUT pid int, OUT database oid, OUT generator text,
    OUT machine_id int, OUT last_id bigint,
    OUT run_left bigint, OUT issued bigint,
    OUT clock_waits bigint, OUT clock_waited interval,
    OUT sequence_waits bigint, OUT sequence_waited interval,
    OUT lease_waits bigint, OUT lease_waited interval)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_backends';
COMMENT ON FUNCTION @extschema@.snowflake_backends() IS
    'generator state of each backend slot of the server that has been used';

CREATE OR REPLACE VIEW @extschema@.snowflake_backends AS
    SELECT b.pid, d.datname AS database, b.generator, b.machine_id, b.last_id, b.run_left,
           b.issued, b.clock_waits, b.clock_waited, b.sequence_waits, b.sequence_waited,
           b.lease_waits, b.lease_waited
    FROM @extschema@.snowflake_backends() AS b
    LEFT JOIN pg_database AS d ON d.oid = b.database;
COMMENT ON VIEW @extschema@.snowflake_backends IS
    'generator state of each backend; others'' IDs are shown to pg_monitor only';
COMMENT ON COLUMN @extschema@.snowflake_backends.pid IS
    'process ID; null where no process is, but one has been';
COMMENT ON COLUMN @extschema@.snowflake_backends.database IS
    'its database';
COMMENT ON COLUMN @extschema@.snowflake_backends.generator IS
    'the generator that it has drawn on last';
COMMENT ON COLUMN @extschema@.snowflake_backends.machine_id IS
    'the machine ID that it draws on';
COMMENT ON COLUMN @extschema@.snowflake_backends.last_id IS
    'its last ID; others'' are shown to pg_monitor only';
COMMENT ON COLUMN @extschema@.snowflake_backends.run_left IS
    'IDs taken from the lease and not drawn yet; what is left when their unit of time ends is dropped';
COMMENT ON COLUMN @extschema@.snowflake_backends.issued IS
    'IDs drawn in this slot since the server started';
COMMENT ON COLUMN @extschema@.snowflake_backends.clock_waits IS
    'waits for a clock that had stepped back';
COMMENT ON COLUMN @extschema@.snowflake_backends.clock_waited IS
    'time waited so';
COMMENT ON COLUMN @extschema@.snowflake_backends.sequence_waits IS
    'waits for the next unit of time, all sequences of one being used up';
COMMENT ON COLUMN @extschema@.snowflake_backends.sequence_waited IS
    'time waited so';
COMMENT ON COLUMN @extschema@.snowflake_backends.lease_waits IS
    'waits for a lease';
COMMENT ON COLUMN @extschema@.snowflake_backends.lease_waited IS
    'time waited so';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_instance() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_instance';
COMMENT ON FUNCTION @extschema@.snowflake_instance() IS
    'number of this running server: another after each start';

CREATE OR REPLACE VIEW @extschema@.snowflake_lease_status AS
    SELECT l.generator, l.machine_id, l.holder,
           l.instance IS NOT DISTINCT FROM i.instance
               AND l.database IN (0, i.database) AS mine,
           l.expires_at <= i.now
               AND @extschema@.snowflake_id_time(l.horizon, l.layout)
                   <= i.now AS free,
           @extschema@.snowflake_id_time(l.horizon, l.layout) AS horizon,
           l.claimed_at, l.renewed_at, l.expires_at
    FROM @extschema@.snowflake_lease AS l,
         (SELECT @extschema@.snowflake_instance() AS instance,
                 (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
                     AS database,
                 clock_timestamp() AS now) AS i;
COMMENT ON VIEW @extschema@.snowflake_lease_status IS
    'leases, readable: holder, horizon as a time, mine or not, free or not';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.generator IS
    'name of the generator';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.machine_id IS
    'the machine ID leased';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.holder IS
    'host name and port of the holder, and its database if the lease is for one alone';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.mine IS
    'whether this server holds it, for this database or for all';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.free IS
    'whether a server whose clock is as this one''s may claim it';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.horizon IS
    'no ID of this machine ID has been or may be made at or past this time';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.claimed_at IS
    'when the holder claimed it';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.renewed_at IS
    'when the holder last renewed it';
COMMENT ON COLUMN @extschema@.snowflake_lease_status.expires_at IS
    'when another server may claim it';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_last_id_time(layout text) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_last_id_time';
COMMENT ON FUNCTION @extschema@.snowflake_last_id_time(text) IS
    'the last ID time (units since the epoch) that a layout can show';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_pools(
    OUT database oid, OUT generator text, OUT issued bigint, OUT machine_ids int,
    OUT claims bigint, OUT renewals bigint, OUT failures bigint, OUT switches bigint,
    OUT lost bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_pools';
COMMENT ON FUNCTION @extschema@.snowflake_pools() IS
    'the generators that this server draws on, in all its databases';

CREATE OR REPLACE VIEW @extschema@.snowflake_generators AS
    SELECT g.name, g.layout,
           @extschema@.snowflake_id_time(0, g.layout) AS epoch,
           @extschema@.snowflake_id_time(t.last, g.layout) AS last_timestamp,
           round((100 * extract(epoch FROM now() - @extschema@.snowflake_id_time(0, g.layout))
                  / nullif(extract(epoch FROM @extschema@.snowflake_id_time(t.last, g.layout)
                                              - @extschema@.snowflake_id_time(0, g.layout)), 0)
                 )::numeric, 3) AS percent_used,
           coalesce(p.machine_ids, 0) AS machine_ids,
           coalesce(p.issued, 0) AS issued
    FROM (SELECT 'default' AS name, l.spec AS layout
          FROM @extschema@.snowflake_layouts() AS l WHERE l.name = 'default'
          UNION ALL
          SELECT n.name, n.layout FROM @extschema@.snowflake_generator AS n) AS g
    CROSS JOIN LATERAL (SELECT @extschema@.snowflake_last_id_time(g.layout) AS last) AS t
    LEFT JOIN (SELECT q.generator, sum(q.machine_ids)::int AS machine_ids,
                      sum(q.issued)::bigint AS issued
               FROM @extschema@.snowflake_pools() AS q
               WHERE q.database IN (0, (SELECT d.oid FROM pg_database AS d
                                        WHERE d.datname = current_database()))
               GROUP BY q.generator) AS p ON p.generator = g.name;
COMMENT ON VIEW @extschema@.snowflake_generators IS
    'generators: layout, last representable time, share of its life used, IDs issued';
COMMENT ON COLUMN @extschema@.snowflake_generators.name IS 'name of the generator';
COMMENT ON COLUMN @extschema@.snowflake_generators.layout IS 'layout of its IDs, spelled out';
COMMENT ON COLUMN @extschema@.snowflake_generators.epoch IS 'the first time that an ID can show';
COMMENT ON COLUMN @extschema@.snowflake_generators.last_timestamp IS
    'the last time that an ID can show; after it there are no more IDs';
COMMENT ON COLUMN @extschema@.snowflake_generators.percent_used IS
    'how much of the time between the two has passed';
COMMENT ON COLUMN @extschema@.snowflake_generators.machine_ids IS
    'how many machine IDs this server holds for it now';
COMMENT ON COLUMN @extschema@.snowflake_generators.issued IS
    'IDs that this server has issued since it started';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_stats(
    OUT issued bigint,
    OUT clock_waits bigint, OUT clock_waited interval,
    OUT sequence_waits bigint, OUT sequence_waited interval,
    OUT lease_waits bigint, OUT lease_waited interval,
    OUT clock_steps bigint, OUT largest_clock_step interval, OUT last_clock_step interval,
    OUT last_clock_step_at timestamptz,
    OUT claims bigint, OUT renewals bigint, OUT failures bigint, OUT switches bigint,
    OUT lost bigint, OUT registry_skew interval, OUT registry_skew_at timestamptz,
    OUT stats_reset timestamptz)
RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_stats';
COMMENT ON FUNCTION @extschema@.snowflake_stats() IS
    'sums over all sessions and keepers of this server since it started or they were reset';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_stats_reset() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_stats_reset';
COMMENT ON FUNCTION @extschema@.snowflake_stats_reset() IS 'sets the sums of snowflake_stats to 0';

CREATE OR REPLACE VIEW @extschema@.snowflake_stats AS SELECT * FROM @extschema@.snowflake_stats();
COMMENT ON VIEW @extschema@.snowflake_stats IS
    'IDs, waits by cause, clock steps and what keepers did, for the whole server';
COMMENT ON COLUMN @extschema@.snowflake_stats.issued IS 'IDs issued';
COMMENT ON COLUMN @extschema@.snowflake_stats.clock_waits IS
    'waits for a clock that had stepped back';
COMMENT ON COLUMN @extschema@.snowflake_stats.clock_waited IS 'time waited so';
COMMENT ON COLUMN @extschema@.snowflake_stats.sequence_waits IS
    'waits for the next unit of time, all sequences of one being used up';
COMMENT ON COLUMN @extschema@.snowflake_stats.sequence_waited IS 'time waited so';
COMMENT ON COLUMN @extschema@.snowflake_stats.lease_waits IS 'waits for a lease';
COMMENT ON COLUMN @extschema@.snowflake_stats.lease_waited IS 'time waited so';
COMMENT ON COLUMN @extschema@.snowflake_stats.clock_steps IS
    'times that a session saw the clock show less than before';
COMMENT ON COLUMN @extschema@.snowflake_stats.largest_clock_step IS 'the largest of them';
COMMENT ON COLUMN @extschema@.snowflake_stats.last_clock_step IS 'the last of them';
COMMENT ON COLUMN @extschema@.snowflake_stats.last_clock_step_at IS 'what the clock showed then';
COMMENT ON COLUMN @extschema@.snowflake_stats.claims IS 'machine IDs claimed';
COMMENT ON COLUMN @extschema@.snowflake_stats.renewals IS 'leases renewed';
COMMENT ON COLUMN @extschema@.snowflake_stats.failures IS 'keepers'' failures';
COMMENT ON COLUMN @extschema@.snowflake_stats.switches IS
    'machine IDs claimed because the clock had stepped far back';
COMMENT ON COLUMN @extschema@.snowflake_stats.lost IS
    'leases that ran out and that another server has now';
COMMENT ON COLUMN @extschema@.snowflake_stats.registry_skew IS
    'the shared registry''s clock less this server''s, as last measured';
COMMENT ON COLUMN @extschema@.snowflake_stats.registry_skew_at IS 'when that was measured';
COMMENT ON COLUMN @extschema@.snowflake_stats.stats_reset IS 'since when this counts';
