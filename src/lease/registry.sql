/*
 * Claims a machine ID: one never used, at random, so that two copies of one
 * registry hardly choose the same; else, at random, one of those free for
 * longest. Null if another claim was faster, none is free, or the registry knows
 * the generator under another layout: snowflake_lease_outlook() tells.
 *
 * id_time is the claimer's clock and horizon how far it wants to go, both in ID
 * time. A machine ID whose old horizon the clock has not passed is not given.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_claim_lease(
    generator text, layout text,
    instance bigint, database oid, holder text,
    ttl interval, id_time bigint, horizon bigint,
    machine_ids int4multirange, avoid int[],
    OUT machine_id int, OUT old_horizon bigint)
RETURNS record
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH start AS MATERIALIZED (
        SELECT (random() * (upper($9) - 1))::int AS at, upper($9)::bigint AS size
    ), known AS MATERIALIZED (
        SELECT l.machine_id, l.expires_at, l.horizon, l.layout
        FROM @extschema@.snowflake_lease l
        WHERE l.generator = $1
    ), refused AS MATERIALIZED (
        SELECT 1 FROM known WHERE known.layout <> $2 LIMIT 1
    ), unused AS MATERIALIZED (
        -- The first unused machine ID at or after the start, in a circle: it is the
        -- start, or follows one that cannot be had, or begins a range.
        SELECT c.id
        FROM (SELECT at FROM start
              UNION SELECT known.machine_id + 1 FROM known
                  WHERE known.machine_id < 2147483647
              UNION SELECT a + 1 FROM unnest($10) AS a WHERE a < 2147483647
              UNION SELECT lower(r) FROM unnest($9) AS r) AS c(id), start
        WHERE c.id <@ $9
          AND c.id <> ALL ($10)
          AND NOT EXISTS (SELECT 1 FROM known WHERE known.machine_id = c.id)
          AND NOT EXISTS (SELECT 1 FROM refused)
        ORDER BY (c.id - start.at + start.size) % start.size
        LIMIT 1
    ), free AS MATERIALIZED (
        SELECT known.machine_id,
               row_number() OVER (ORDER BY known.expires_at, known.machine_id) AS place,
               count(*) OVER () AS total
        FROM known
        WHERE known.expires_at <= clock_timestamp()
          AND known.horizon <= $7
          AND known.machine_id <@ $9
          AND known.machine_id <> ALL ($10)
          AND NOT EXISTS (SELECT 1 FROM unused)
          AND NOT EXISTS (SELECT 1 FROM refused)
    ), longest_free AS MATERIALIZED (
        SELECT free.machine_id FROM free WHERE free.place <= (free.total + 1) / 2
        ORDER BY random() LIMIT 1
    ), made AS (
        INSERT INTO @extschema@.snowflake_lease AS l
               (generator, machine_id, layout, horizon, instance, database, holder,
                claimed_at, renewed_at, expires_at)
        SELECT $1, unused.id, $2, $8, $3, $4, $5,
               clock_timestamp(), clock_timestamp(), clock_timestamp() + $6
        FROM unused
        ON CONFLICT DO NOTHING
        RETURNING l.machine_id, $7 AS old_horizon
    ), reused AS (
        UPDATE @extschema@.snowflake_lease AS l
        SET horizon = greatest(l.horizon, $8), instance = $3, database = $4, holder = $5,
            claimed_at = clock_timestamp(), renewed_at = clock_timestamp(),
            expires_at = clock_timestamp() + $6
        FROM longest_free, known
        WHERE l.generator = $1
          AND l.machine_id = longest_free.machine_id
          AND known.machine_id = longest_free.machine_id
          AND l.expires_at <= clock_timestamp()
          AND l.horizon = known.horizon
        RETURNING l.machine_id, known.horizon AS old_horizon
    )
    SELECT * FROM made UNION ALL SELECT * FROM reused;
END;
COMMENT ON FUNCTION @extschema@.snowflake_claim_lease(text, text,
    bigint, oid, text, interval, bigint,
    bigint, int4multirange, int[]) IS
    'claims a machine ID for a server; null if none could be had';

/*
 * Raises the horizon of a lease that this instance and database still hold, and
 * puts its expiry off. Returns the horizon; null if the lease is another's now.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_renew_lease(
    generator text, machine_id int,
    instance bigint, database oid,
    ttl interval, horizon bigint)
RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE @extschema@.snowflake_lease AS l
    SET horizon = greatest(l.horizon, $6),
        renewed_at = clock_timestamp(),
        expires_at = greatest(l.expires_at, clock_timestamp() + $5)
    WHERE l.generator = $1 AND l.machine_id = $2 AND l.instance = $3 AND l.database = $4
    RETURNING l.horizon;
END;
COMMENT ON FUNCTION @extschema@.snowflake_renew_lease(text, int,
    bigint, oid, interval, bigint) IS
    'renews a lease and returns its horizon; null if it is held by another';

/*
 * Makes the lease of a former run of a server that of its present one: only if
 * the row is as that run left it. Returns the horizon; null if it is not.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_resume_lease(
    generator text, machine_id int,
    old_instance bigint, old_horizon bigint,
    instance bigint, database oid,
    ttl interval, horizon bigint)
RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE @extschema@.snowflake_lease AS l
    SET instance = $5,
        horizon = greatest(l.horizon, $8),
        renewed_at = clock_timestamp(),
        expires_at = greatest(l.expires_at, clock_timestamp() + $7)
    WHERE l.generator = $1 AND l.machine_id = $2
      AND l.instance = $3 AND l.database = $6 AND l.horizon = $4
    RETURNING l.horizon;
END;
COMMENT ON FUNCTION @extschema@.snowflake_resume_lease(text, int, bigint, bigint, bigint, oid,
    interval, bigint) IS
    'goes on with a lease after a clean restart; null if it is not as the server left it';

/*
 * Ends a lease that nobody will renew. The horizon stays: the machine ID can be
 * claimed as soon as the claimer's clock has passed it.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_release_lease(
    generator text, machine_id int)
RETURNS boolean
LANGUAGE sql VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH released AS (
        UPDATE @extschema@.snowflake_lease AS l
        SET instance = NULL, expires_at = least(l.expires_at, clock_timestamp())
        WHERE l.generator = $1 AND l.machine_id = $2 AND l.instance IS NOT NULL
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM released);
END;
COMMENT ON FUNCTION @extschema@.snowflake_release_lease(text, int) IS
    'ends a lease that nobody will renew; false if there was none; its horizon stays';

/*
 * Why a claim found nothing: the layout under which the registry knows the
 * generator, and which of the machine IDs is free soonest, for a claimer whose
 * clock shows id_time: its lease has to expire by the registry's clock, and its
 * horizon to be passed by the claimer's.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_lease_outlook(
    generator text, machine_ids int4multirange, id_time bigint,
    OUT layout text, OUT machine_id int, OUT holder text,
    OUT free_at timestamptz, OUT free_in_us bigint)
RETURNS record
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT w.layout, w.machine_id, w.holder,
           CASE WHEN w.seconds < 1e10 THEN w.now + make_interval(secs => w.seconds::float8)
                ELSE 'infinity' END,
           CASE WHEN w.seconds < 1e10 THEN (w.seconds * 1000000)::bigint END
    FROM (SELECT l.layout, l.machine_id, l.holder, c.now, l.machine_id <@ $2 AS allowed,
                 greatest(extract(epoch FROM l.expires_at) - extract(epoch FROM c.now),
                          CASE WHEN l.horizon > $3
                               THEN extract(epoch FROM @extschema@.snowflake_id_time(l.horizon, l.layout))
                                    - extract(epoch FROM @extschema@.snowflake_id_time($3, l.layout))
                               ELSE 0 END) AS seconds
          FROM @extschema@.snowflake_lease l,
               (SELECT clock_timestamp() AS now) AS c
          WHERE l.generator = $1) AS w
    ORDER BY w.allowed DESC, w.seconds, w.machine_id
    LIMIT 1;
END;
COMMENT ON FUNCTION @extschema@.snowflake_lease_outlook(text, int4multirange, bigint) IS
    'which machine ID of a generator is free soonest, and its layout in the registry';
