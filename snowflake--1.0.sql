/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

-- Nothing that a user has made in any schema may be found in place of what is meant here.
SET LOCAL search_path = pg_catalog, pg_temp;

------------------------------------------------------------------------
-- Layouts and decoders
------------------------------------------------------------------------

/*
 * A layout says how an ID's bits are divided: a name from the view
 * snowflake_layouts, or a spec such as
 * 'epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10,s12'. The short forms of
 * these functions mean the layout of the built-in generator.
 */

CREATE FUNCTION @extschema@.snowflake_parse(
    id bigint, OUT "timestamp" timestamptz, OUT machine_id int, OUT sequence int)
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_parse';
COMMENT ON FUNCTION @extschema@.snowflake_parse(bigint) IS 'the fields of an ID';

CREATE FUNCTION @extschema@.snowflake_parse(
    id bigint, layout text, OUT "timestamp" timestamptz, OUT machine_id int, OUT sequence int)
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_parse';
COMMENT ON FUNCTION @extschema@.snowflake_parse(bigint, text) IS
    'the fields of an ID with the given layout';

-- Internal: lets the planner take a comparison of snowflake_timestamp(id) for a range of IDs.
CREATE FUNCTION @extschema@.snowflake_timestamp_support(internal) RETURNS internal
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_timestamp_support';
COMMENT ON FUNCTION @extschema@.snowflake_timestamp_support(internal) IS
    'planner support of snowflake_timestamp()';

CREATE FUNCTION @extschema@.snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT @extschema@.snowflake_timestamp_support
    AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION @extschema@.snowflake_timestamp(bigint) IS 'when an ID was made';

CREATE FUNCTION @extschema@.snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT @extschema@.snowflake_timestamp_support
    AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION @extschema@.snowflake_timestamp(bigint, text) IS
    'when an ID with the given layout was made';

CREATE FUNCTION @extschema@.snowflake_machine_id(id bigint) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_machine_id';
COMMENT ON FUNCTION @extschema@.snowflake_machine_id(bigint) IS 'the machine ID in an ID';

CREATE FUNCTION @extschema@.snowflake_machine_id(id bigint, layout text) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_machine_id';
COMMENT ON FUNCTION @extschema@.snowflake_machine_id(bigint, text) IS
    'the machine ID in an ID with the given layout';

CREATE FUNCTION @extschema@.snowflake_sequence(id bigint) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_sequence';
COMMENT ON FUNCTION @extschema@.snowflake_sequence(bigint) IS 'the sequence in an ID';

CREATE FUNCTION @extschema@.snowflake_sequence(id bigint, layout text) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_sequence';
COMMENT ON FUNCTION @extschema@.snowflake_sequence(bigint, text) IS
    'the sequence in an ID with the given layout';

CREATE FUNCTION @extschema@.snowflake_make("timestamp" timestamptz, machine_id int, sequence int)
    RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_make';
COMMENT ON FUNCTION @extschema@.snowflake_make(timestamptz, int, int) IS
    'the ID with these fields; the timestamp is rounded down to a millisecond';

CREATE FUNCTION @extschema@.snowflake_make(
    "timestamp" timestamptz, machine_id int, sequence int, layout text)
    RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_make';
COMMENT ON FUNCTION @extschema@.snowflake_make(timestamptz, int, int, text) IS
    'the ID with these fields in the given layout; the timestamp is rounded down to its unit';

CREATE FUNCTION @extschema@.snowflake_min_id("timestamp" timestamptz) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION @extschema@.snowflake_min_id(timestamptz) IS
    'the least ID that can be made in the millisecond that a time is in';

CREATE FUNCTION @extschema@.snowflake_min_id("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION @extschema@.snowflake_min_id(timestamptz, text) IS
    'the least ID with the given layout that can be made in the unit that a time is in';

CREATE FUNCTION @extschema@.snowflake_max_id("timestamp" timestamptz) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION @extschema@.snowflake_max_id(timestamptz) IS
    'the greatest ID that can be made in the millisecond that a time is in';

CREATE FUNCTION @extschema@.snowflake_max_id("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION @extschema@.snowflake_max_id(timestamptz, text) IS
    'the greatest ID with the given layout that can be made in the unit that a time is in';

/*
 * Internal: what a comparison of snowflake_timestamp(id) with a time is replaced by in a
 * query's plan. Any time will do, also one that the layout can not hold.
 */
CREATE FUNCTION @extschema@.snowflake_first_id_from("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_first_id_from';
COMMENT ON FUNCTION @extschema@.snowflake_first_id_from(timestamptz, text) IS
    'the least ID of this time or a later one; null if there is none';

CREATE FUNCTION @extschema@.snowflake_first_id_after("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_first_id_after';
COMMENT ON FUNCTION @extschema@.snowflake_first_id_after(timestamptz, text) IS
    'the least ID of a later time; null if there is none';

CREATE FUNCTION @extschema@.snowflake_last_id_before("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_last_id_before';
COMMENT ON FUNCTION @extschema@.snowflake_last_id_before(timestamptz, text) IS
    'the greatest ID of an earlier time; null if there is none';

CREATE FUNCTION @extschema@.snowflake_last_id_until("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_last_id_until';
COMMENT ON FUNCTION @extschema@.snowflake_last_id_until(timestamptz, text) IS
    'the greatest ID of this time or an earlier one; null if there is none';

-- Internal: what the views show of ID time.
CREATE FUNCTION @extschema@.snowflake_id_time(id_time bigint, layout text) RETURNS timestamptz
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_id_time';
COMMENT ON FUNCTION @extschema@.snowflake_id_time(bigint, text) IS
    'ID time (units since the layout''s epoch) as a timestamp; infinity if it is past the last one';

-- The zone and the layout have defaults, so that either can be given without the other.
CREATE FUNCTION @extschema@.snowflake_friendly(
    id bigint, zone text DEFAULT 'UTC', layout text DEFAULT 'default')
    RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_friendly';
COMMENT ON FUNCTION @extschema@.snowflake_friendly(bigint, text, text) IS
    'an ID as local time in a time zone, machine ID and sequence: yyyyMMddHHmmssSSS-m-s';

CREATE FUNCTION @extschema@.snowflake_from_friendly(
    friendly text, zone text DEFAULT 'UTC', layout text DEFAULT 'default')
    RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_from_friendly';
COMMENT ON FUNCTION @extschema@.snowflake_from_friendly(text, text, text) IS
    'the ID of a friendly form; refuses a local time that clocks skipped or showed more than once';

CREATE FUNCTION @extschema@.snowflake_to_base62(id bigint) RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_to_base62';
COMMENT ON FUNCTION @extschema@.snowflake_to_base62(bigint) IS
    'an ID as 11 digits of 0-9A-Za-z, which sort like the ID under COLLATE "C"';

CREATE FUNCTION @extschema@.snowflake_from_base62(base62 text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_from_base62';
COMMENT ON FUNCTION @extschema@.snowflake_from_base62(text) IS
    'the ID of up to 11 digits of 0-9A-Za-z';

CREATE FUNCTION @extschema@.snowflake_to_base36(id bigint) RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_to_base36';
COMMENT ON FUNCTION @extschema@.snowflake_to_base36(bigint) IS
    'an ID as 13 digits of 0-9A-Z, which sort like the ID under COLLATE "C"';

CREATE FUNCTION @extschema@.snowflake_from_base36(base36 text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_from_base36';
COMMENT ON FUNCTION @extschema@.snowflake_from_base36(text) IS
    'the ID of up to 13 digits of 0-9A-Z';

-- Not immutable: it tells the ID's age, and the time in the session's time zone.
CREATE FUNCTION @extschema@.snowflake_describe(id bigint) RETURNS text
    LANGUAGE C STABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_describe';
COMMENT ON FUNCTION @extschema@.snowflake_describe(bigint) IS
    'an ID for people: its bits field by field, time and age, spellings';

CREATE FUNCTION @extschema@.snowflake_describe(id bigint, layout text) RETURNS text
    LANGUAGE C STABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_describe';
COMMENT ON FUNCTION @extschema@.snowflake_describe(bigint, text) IS
    'an ID with the given layout for people: its bits field by field, time and age, spellings';

CREATE FUNCTION @extschema@.snowflake_layouts(
    OUT name text, OUT spec text, OUT epoch timestamptz, OUT last_timestamp timestamptz,
    OUT unit text, OUT timestamp_bits int, OUT machine_id_bits int, OUT sequence_bits int,
    OUT max_id bigint, OUT can_generate boolean, OUT source text)
    RETURNS SETOF record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 13
    AS 'MODULE_PATHNAME', 'snowflake_layouts';
COMMENT ON FUNCTION @extschema@.snowflake_layouts() IS 'the layouts that have a name';

CREATE VIEW @extschema@.snowflake_layouts AS
    SELECT name, spec, epoch, last_timestamp, unit, timestamp_bits, machine_id_bits,
           sequence_bits, max_id, can_generate, source
    FROM @extschema@.snowflake_layouts();
COMMENT ON VIEW @extschema@.snowflake_layouts IS 'the layouts that have a name';
COMMENT ON COLUMN @extschema@.snowflake_layouts.name IS 'name, as given for a layout argument';
COMMENT ON COLUMN @extschema@.snowflake_layouts.spec IS 'the same layout spelled out';
COMMENT ON COLUMN @extschema@.snowflake_layouts.epoch IS 'the first time that an ID can hold';
COMMENT ON COLUMN @extschema@.snowflake_layouts.last_timestamp IS
    'the last time that an ID can hold; infinity if it is past the last timestamp';
COMMENT ON COLUMN @extschema@.snowflake_layouts.unit IS 'the precision of an ID''s time';
COMMENT ON COLUMN @extschema@.snowflake_layouts.timestamp_bits IS 'width of the time in an ID';
COMMENT ON COLUMN @extschema@.snowflake_layouts.machine_id_bits IS
    'width of the machine ID in an ID';
COMMENT ON COLUMN @extschema@.snowflake_layouts.sequence_bits IS 'width of the sequence in an ID';
COMMENT ON COLUMN @extschema@.snowflake_layouts.max_id IS 'the greatest ID';
COMMENT ON COLUMN @extschema@.snowflake_layouts.can_generate IS
    'whether a generator can have this layout; others can only be read and made by hand';
COMMENT ON COLUMN @extschema@.snowflake_layouts.source IS
    'where its epoch and fields are written down';

GRANT SELECT ON @extschema@.snowflake_layouts TO PUBLIC;

------------------------------------------------------------------------
-- The registry: generators and leases
------------------------------------------------------------------------

/*
 * Named generators: ID spaces of their own. The built-in one, default, is not in
 * the table. A layout never changes once it is made.
 */
CREATE TABLE @extschema@.snowflake_generator (
    name    text NOT NULL PRIMARY KEY CHECK (name <> '' AND name <> 'default' AND octet_length(name) < 64),
    layout  text NOT NULL
) USING heap;
COMMENT ON TABLE @extschema@.snowflake_generator IS
    'named generators; written only by snowflake_create_generator() and snowflake_drop_generator()';
COMMENT ON COLUMN @extschema@.snowflake_generator.name IS 'name of the generator';
COMMENT ON COLUMN @extschema@.snowflake_generator.layout IS 'layout of its IDs, spelled out';

SELECT pg_extension_config_dump('@extschema@.snowflake_generator', '');

GRANT SELECT ON @extschema@.snowflake_generator TO PUBLIC;
-- For the rows in a dump. A row that is there can not be changed so.
GRANT INSERT ON @extschema@.snowflake_generator TO @extowner@;

CREATE FUNCTION @extschema@.snowflake_create_generator(name text, layout text) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'snowflake_create_generator';
COMMENT ON FUNCTION @extschema@.snowflake_create_generator(text, text) IS
    'makes a generator, with leases and sequences of its own; its layout is fixed for life';

CREATE FUNCTION @extschema@.snowflake_drop_generator(name text) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'snowflake_drop_generator';
COMMENT ON FUNCTION @extschema@.snowflake_drop_generator(text) IS
    'drops a generator, unless the default of a column or domain draws on it';

REVOKE EXECUTE ON FUNCTION
    @extschema@.snowflake_create_generator(text, text),
    @extschema@.snowflake_drop_generator(text)
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    @extschema@.snowflake_create_generator(text, text),
    @extschema@.snowflake_drop_generator(text)
TO @extowner@;


/*
 * A generator's leases: which server and database may use which machine ID.
 * The primary key is what says no to a second holder.
 */
CREATE TABLE @extschema@.snowflake_lease (
    generator   text NOT NULL,
    machine_id  int NOT NULL CHECK (machine_id >= 0),
    layout      text NOT NULL,
    horizon     bigint NOT NULL,
    instance    bigint,
    database    oid,
    holder      text NOT NULL,
    claimed_at  timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (generator, machine_id)
) USING heap;
COMMENT ON TABLE @extschema@.snowflake_lease IS
    'leases of machine IDs; written only by snowflake''s keeper';
COMMENT ON COLUMN @extschema@.snowflake_lease.generator IS 'name of the generator';
COMMENT ON COLUMN @extschema@.snowflake_lease.machine_id IS 'the machine ID leased';
COMMENT ON COLUMN @extschema@.snowflake_lease.layout IS 'layout of the generator''s IDs';
COMMENT ON COLUMN @extschema@.snowflake_lease.horizon IS
    'no ID of this machine ID has been or may be issued at or past this ID time; never goes down';
COMMENT ON COLUMN @extschema@.snowflake_lease.instance IS
    'number of the running server that holds the lease; null if released';
COMMENT ON COLUMN @extschema@.snowflake_lease.database IS
    'OID of the database that the lease is for; 0 if for the whole server';
COMMENT ON COLUMN @extschema@.snowflake_lease.holder IS 'the holder, for people';
COMMENT ON COLUMN @extschema@.snowflake_lease.claimed_at IS 'when the holder claimed it';
COMMENT ON COLUMN @extschema@.snowflake_lease.renewed_at IS 'when the holder last renewed it';
COMMENT ON COLUMN @extschema@.snowflake_lease.expires_at IS
    'by the registry''s clock, when another server may claim it';

-- Horizons travel with a dump. An instance number in it never matches a running server's.
SELECT pg_extension_config_dump('@extschema@.snowflake_lease', '');

/*
 * A publication FOR ALL TABLES has these tables too. Leases of the registry that they come
 * from mean nothing in the subscriber's, and must not lower a horizon there; generators are
 * made in each database that uses them, and would meet there.
 */
CREATE FUNCTION @extschema@.snowflake_skip_replicated() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $skip$ BEGIN RETURN NULL; END $skip$;
COMMENT ON FUNCTION @extschema@.snowflake_skip_replicated() IS
    'keeps what replication brings out of the tables of leases and generators';
REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_skip_replicated() FROM PUBLIC;

CREATE TRIGGER snowflake_skip_replicated
    BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.snowflake_lease
    FOR EACH ROW EXECUTE FUNCTION @extschema@.snowflake_skip_replicated();
ALTER TABLE @extschema@.snowflake_lease ENABLE REPLICA TRIGGER snowflake_skip_replicated;
CREATE TRIGGER snowflake_skip_replicated
    BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.snowflake_generator
    FOR EACH ROW EXECUTE FUNCTION @extschema@.snowflake_skip_replicated();
ALTER TABLE @extschema@.snowflake_generator ENABLE REPLICA TRIGGER snowflake_skip_replicated;

GRANT SELECT ON @extschema@.snowflake_lease TO PUBLIC;
-- For the rows in a dump. A row that is there can not be changed so, and one for a machine ID
-- that is not leased can only keep it from being claimed.
GRANT INSERT ON @extschema@.snowflake_lease TO @extowner@;

/*
 * Internal: what snowflake_create_generator() and snowflake_drop_generator() write. These
 * bodies are bound to the tables, whatever may come to have their names.
 *
 * Leases of an earlier generator of the same name matter only if its IDs looked the same.
 */
CREATE FUNCTION @extschema@.snowflake_store_generator(name text, layout text) RETURNS boolean
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH made AS (
        INSERT INTO @extschema@.snowflake_generator (name, layout) VALUES ($1, $2)
        ON CONFLICT DO NOTHING
        RETURNING 1
    ), forgotten AS (
        DELETE FROM @extschema@.snowflake_lease AS l
        WHERE l.generator = $1 AND l.layout <> $2 AND EXISTS (SELECT 1 FROM made)
    )
    SELECT EXISTS (SELECT 1 FROM made);
END;
COMMENT ON FUNCTION @extschema@.snowflake_store_generator(text, text) IS
    'writes the row of a generator; false if there is one';

CREATE FUNCTION @extschema@.snowflake_erase_generator(name text) RETURNS boolean
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH gone AS (
        DELETE FROM @extschema@.snowflake_generator AS g WHERE g.name = $1 RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM gone);
END;
COMMENT ON FUNCTION @extschema@.snowflake_erase_generator(text) IS
    'deletes the row of a generator; false if there is none';

REVOKE EXECUTE ON FUNCTION
    @extschema@.snowflake_store_generator(text, text),
    @extschema@.snowflake_erase_generator(text)
FROM PUBLIC;

/*
 * Claims a machine ID: one never used, at random, so that two copies of one
 * registry hardly choose the same; else, at random, one of those free for
 * longest. Null if another claim was faster, none is free, or the registry knows
 * the generator under another layout: snowflake_lease_outlook() tells.
 *
 * id_time is the claimer's clock and horizon how far it wants to go, both in ID
 * time. A machine ID whose old horizon the clock has not passed is not given.
 */
CREATE FUNCTION @extschema@.snowflake_claim_lease(
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
        -- start, or follows one that can not be had, or begins a range.
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
CREATE FUNCTION @extschema@.snowflake_renew_lease(
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
CREATE FUNCTION @extschema@.snowflake_resume_lease(
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
CREATE FUNCTION @extschema@.snowflake_release_lease(
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
CREATE FUNCTION @extschema@.snowflake_lease_outlook(
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

REVOKE EXECUTE ON FUNCTION
    @extschema@.snowflake_claim_lease(text, text, bigint,
        oid, text, interval, bigint, bigint,
        int4multirange, int[]),
    @extschema@.snowflake_renew_lease(text, int, bigint,
        oid, interval, bigint),
    @extschema@.snowflake_resume_lease(text, int, bigint, bigint, bigint, oid, interval, bigint),
    @extschema@.snowflake_release_lease(text, int),
    @extschema@.snowflake_lease_outlook(text, int4multirange, bigint)
FROM PUBLIC;


------------------------------------------------------------------------
-- Generating
------------------------------------------------------------------------

CREATE FUNCTION @extschema@.snowflake_nextval_support(internal) RETURNS internal
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_support';
COMMENT ON FUNCTION @extschema@.snowflake_nextval_support(internal) IS
    'planner support of snowflake_nextval(): lets COPY write rows in batches';

-- Nobody can call these, for want of a value of type internal.
CREATE FUNCTION @extschema@.snowflake_nextval_in_copy(internal) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_id_in_copy';
COMMENT ON FUNCTION @extschema@.snowflake_nextval_in_copy(internal) IS
    'stands for snowflake_nextval() in a default while COPY runs';
CREATE FUNCTION @extschema@.snowflake_nextval_in_copy(internal, generator text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_id_in_copy';
COMMENT ON FUNCTION @extschema@.snowflake_nextval_in_copy(internal, text) IS
    'stands for snowflake_nextval(generator) in a default while COPY runs';

CREATE FUNCTION @extschema@.snowflake_nextval() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
SUPPORT @extschema@.snowflake_nextval_support
AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION @extschema@.snowflake_nextval() IS
    'next ID of the default generator: unique, positive, increasing in a session';

CREATE FUNCTION @extschema@.snowflake_nextvals(count int)
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION @extschema@.snowflake_nextvals(int) IS
    'next IDs of the default generator, ascending';

CREATE FUNCTION @extschema@.snowflake_currval() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_current_id';
COMMENT ON FUNCTION @extschema@.snowflake_currval() IS
    'this session''s last ID of the default generator; an error before the first';


CREATE FUNCTION @extschema@.snowflake_nextval(generator text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
SUPPORT @extschema@.snowflake_nextval_support
AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION @extschema@.snowflake_nextval(text) IS
    'next ID of a generator: unique, positive, increasing in a session';

CREATE FUNCTION @extschema@.snowflake_nextvals(count int, generator text)
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION @extschema@.snowflake_nextvals(int, text) IS
    'next IDs of a generator, ascending';

CREATE FUNCTION @extschema@.snowflake_currval(generator text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_current_id';
COMMENT ON FUNCTION @extschema@.snowflake_currval(text) IS
    'this session''s last ID of a generator; an error before the first';

------------------------------------------------------------------------
-- Adopting
------------------------------------------------------------------------

-- Internal: a column whose keys the caller may have drawn from elsewhere; else an error.
CREATE FUNCTION @extschema@.snowflake_key_column("table" regclass, "column" name)
RETURNS pg_attribute
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $key_column$
DECLARE
    relation pg_class;
    attribute pg_attribute;
BEGIN
    SELECT * INTO relation FROM pg_class AS c WHERE c.oid = $1;
    IF relation.relkind IS NULL THEN
        RAISE undefined_table USING MESSAGE = format('table with OID %s does not exist', $1::oid);
    ELSIF relation.relkind NOT IN ('r', 'p') THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s is not a table', $1),
            HINT = 'Give the table that the keys are stored in.';
    END IF;
    SELECT * INTO attribute FROM pg_attribute AS a
    WHERE a.attrelid = $1 AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE undefined_column USING
            MESSAGE = format('column "%s" of table %s does not exist', $2, $1);
    ELSIF NOT pg_has_role(relation.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of table %s', $1);
    ELSIF attribute.attinhcount > 0 THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column "%s" of table %s is inherited', $2, $1),
            HINT = format('Give the table that it comes from: %s.',
                          (SELECT i.inhparent::regclass FROM pg_inherits AS i
                           WHERE i.inhrelid = $1 ORDER BY i.inhseqno LIMIT 1));
    ELSIF attribute.atttypid NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column "%s" of table %s is of type %s', $2, $1,
                             format_type(attribute.atttypid, attribute.atttypmod)),
            HINT = 'Only columns of type bigint, integer and smallint can be converted.';
    END IF;
    RETURN attribute;
END $key_column$;
COMMENT ON FUNCTION @extschema@.snowflake_key_column(regclass, name) IS
    'a column that snowflake_convert() and snowflake_revert() can work on; else an error';

-- Internal: does the default of a column call snowflake_nextval()?
CREATE FUNCTION @extschema@.snowflake_is_drawn(relation oid, attnum int2) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT EXISTS (
        SELECT FROM pg_attrdef AS e
        JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
        WHERE e.adrelid = $1 AND e.adnum = $2
          AND d.refclassid = 'pg_proc'::regclass
          AND d.refobjid IN ('@extschema@.snowflake_nextval()'::regprocedure,
                             '@extschema@.snowflake_nextval(text)'::regprocedure));
END;
COMMENT ON FUNCTION @extschema@.snowflake_is_drawn(oid, int2) IS
    'whether the default of a column calls snowflake_nextval()';

/*
 * Gives a column that draws its keys from a sequence snowflake_nextval() instead, and
 * returns the statements that this took: with dry_run, those that it would take.
 *
 * They run with the caller's rights, in the caller's transaction. All that may take long
 * is looked at before the table is locked; the lock itself is short, unless an integer
 * column has to be widened, for which PostgreSQL writes the table anew.
 */
CREATE FUNCTION @extschema@.snowflake_convert(
    "table" regclass, "column" name, generator text DEFAULT 'default',
    dry_run boolean DEFAULT false)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $convert$
DECLARE
    target ALIAS FOR $1;
    key ALIAS FOR $2;
    -- where the extension is now: its schema may have another name than when it was made
    home text := (SELECT quote_ident(n.nspname) FROM pg_extension AS e
                  JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'snowflake');
    attribute pg_attribute;
    is_drawn boolean;
    layout text;
    default_id oid;
    default_text text;
    source oid;
    source_is_owned boolean;
    source_users text;
    highest bigint;
    next_id bigint;
    -- what has to be widened: columns that refer to the key, and the key itself
    narrow record;
    narrow_tables regclass[] := '{}';
    narrow_columns name[] := '{}';
    listed text;
    actions text[] := '{}';
    statements text[];
    statement text;
BEGIN
    IF target IS NULL OR key IS NULL OR generator IS NULL OR dry_run IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'table, column, generator and dry_run must not be null';
    END IF;
    EXECUTE format('SELECT * FROM %s.snowflake_key_column($1, $2)', home)
    INTO attribute USING target, key;
    EXECUTE format('SELECT %s.snowflake_is_drawn($1, $2)', home)
    INTO is_drawn USING target::oid, attribute.attnum;

    -- what the column has now
    IF attribute.attgenerated <> '' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of table %s is a generated column', key, target),
            HINT = 'Only a column with an identity or a sequence for its default can be converted.';
    END IF;
    SELECT d.oid, pg_get_expr(d.adbin, d.adrelid) INTO default_id, default_text
    FROM pg_attrdef AS d WHERE d.adrelid = target AND d.adnum = attribute.attnum;
    IF is_drawn THEN
        RAISE NOTICE 'column "%" of table % has the default % already', key, target, default_text;
        RETURN;
    END IF;
    IF attribute.attidentity <> '' THEN
        actions := actions || format('ALTER COLUMN %I DROP IDENTITY', key);
    ELSIF default_text IS NULL OR default_text !~ '^nextval\(''.*''::regclass\)$' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of table %s draws on no sequence', key, target),
            DETAIL = CASE WHEN default_text IS NULL THEN 'It has no default.'
                          ELSE format('Its default is %s.', default_text) END,
            HINT = format('If that is meant to be, use ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval().', target, key, home);
    ELSE
        SELECT d.refobjid INTO source
        FROM pg_depend AS d JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
        WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = default_id
          AND d.refclassid = 'pg_class'::regclass;
        source_is_owned := EXISTS (
            SELECT FROM pg_depend AS d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = source AND d.deptype = 'a'
              AND d.refclassid = 'pg_class'::regclass AND d.refobjid = target
              AND d.refobjsubid = attribute.attnum);
    END IF;

    -- the generator, and its next ID
    layout := 'default';
    IF generator <> 'default' THEN
        EXECUTE format('SELECT g.layout FROM %s.snowflake_generator AS g WHERE g.name = $1', home)
        INTO layout USING generator;
    END IF;
    IF layout IS NULL THEN
        RAISE undefined_object USING
            MESSAGE = format('generator "%s" does not exist', generator),
            HINT = 'Use snowflake_create_generator() to make it.';
    END IF;
    EXECUTE format('SELECT max(%I) FROM %s', key, target) INTO highest;
    EXECUTE format('SELECT %s.snowflake_min_id(clock_timestamp(), $1)', home)
    INTO next_id USING layout;
    IF highest >= next_id THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('key %s in column "%s" of table %s is not below the next ID',
                             highest, key, target),
            DETAIL = format('The next ID of generator "%s" is about %s.', generator, next_id),
            HINT = 'A generator whose layout has an earlier epoch has greater IDs.';
    END IF;

    -- what refers to the column and would be too narrow for an ID
    FOR narrow IN
        WITH RECURSIVE referring (relid, attnum) AS (
            SELECT target::oid, attribute.attnum
            UNION
            SELECT c.conrelid, k.conkey
            FROM referring AS r
            JOIN pg_constraint AS c
                ON c.contype = 'f' AND c.confrelid = r.relid AND c.conparentid = 0
            CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS k (conkey, confkey)
            WHERE k.confkey = r.attnum
        )
        SELECT r.relid::regclass AS relation, a.attname AS name
        FROM referring AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relid AND a.attnum = r.attnum
        WHERE a.atttypid IN ('smallint'::regtype, 'integer'::regtype)
        ORDER BY r.relid <> target, r.relid::regclass::text, a.attnum
    LOOP
        narrow_tables := narrow_tables || narrow.relation;
        narrow_columns := narrow_columns || narrow.name;
    END LOOP;
    SELECT string_agg(DISTINCT c.oid::regclass::text, ', ') INTO listed
    FROM unnest(narrow_tables) AS n (relation) JOIN pg_class AS c ON c.oid = n.relation
    WHERE NOT pg_has_role(c.relowner, 'USAGE');
    IF listed IS NOT NULL THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of the tables that refer to column "%s" of table %s',
                             key, target),
            DETAIL = format('Columns of these would have to become bigint: %s.', listed),
            HINT = 'Let their owner widen them, or a role that is a member of both owners call this.';
    END IF;
    WITH RECURSIVE touched (relid, name) AS (
        SELECT n.relation::oid, n.name
        FROM unnest(narrow_tables, narrow_columns) AS n (relation, name)
        UNION
        SELECT i.inhrelid, t.name FROM touched AS t JOIN pg_inherits AS i ON i.inhparent = t.relid
    ), used AS (
        SELECT t.relid, a.attnum
        FROM touched AS t JOIN pg_attribute AS a ON a.attrelid = t.relid AND a.attname = t.name
    ), user_of AS (
        SELECT CASE WHEN w.oid IS NULL
                    THEN pg_describe_object(d.classid, d.objid, d.objsubid)
                    ELSE pg_describe_object('pg_class'::regclass, w.ev_class, 0) END AS name
        FROM used AS u
        JOIN pg_depend AS d
            ON d.refclassid = 'pg_class'::regclass AND d.refobjid = u.relid AND d.refobjsubid = u.attnum
        LEFT JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
        LEFT JOIN pg_attrdef AS e ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid
        WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_policy'::regclass,
                            'pg_trigger'::regclass, 'pg_publication_rel'::regclass)
           OR (e.adrelid = u.relid AND e.adnum <> u.attnum)
        UNION
        SELECT format('partition key of table %s', p.partrelid::regclass)
        FROM used AS u JOIN pg_partitioned_table AS p
            ON p.partrelid = u.relid AND u.attnum = ANY (p.partattrs::int2[])
    )
    SELECT string_agg(u.name, ', ' ORDER BY u.name) INTO listed FROM user_of AS u;
    IF listed IS NOT NULL THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('cannot make column "%s" of table %s a bigint because other objects depend on it', key, target),
            DETAIL = format('These depend on its type or on that of a column that refers to it: %s.', listed),
            HINT = 'Drop them, convert the column, and make them again.';
    END IF;

    -- one statement for each table, so that each is locked and written once
    SELECT actions || coalesce(array_agg(format('ALTER COLUMN %I TYPE bigint', n.name)), '{}')
    INTO actions
    FROM unnest(narrow_tables, narrow_columns) AS n (relation, name) WHERE n.relation = target;
    actions := actions || format('ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval(%s)',
        key, home, CASE WHEN generator <> 'default' THEN quote_literal(generator) END);
    statements := ARRAY[format('ALTER TABLE %s %s', target, array_to_string(actions, ', '))];
    SELECT statements || coalesce(array_agg(format('ALTER TABLE %s %s', a.relation, a.actions)), '{}')
    INTO statements
    FROM (SELECT n.relation,
                 string_agg(format('ALTER COLUMN %I TYPE bigint', n.name), ', ') AS actions
          FROM unnest(narrow_tables, narrow_columns) AS n (relation, name)
          WHERE n.relation <> target
          GROUP BY n.relation ORDER BY n.relation::text) AS a;

    -- the sequence goes along with the default that it was made for
    IF source_is_owned THEN
        WITH RECURSIVE heir (relid) AS (
            SELECT target::oid
            UNION
            SELECT i.inhrelid FROM heir AS h JOIN pg_inherits AS i ON i.inhparent = h.relid
        )
        SELECT string_agg(pg_describe_object(d.classid, d.objid, d.objsubid), ', ')
        INTO source_users
        FROM pg_depend AS d
        LEFT JOIN pg_attrdef AS e ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = source AND d.deptype = 'n'
          AND (e.adrelid IN (SELECT h.relid FROM heir AS h)
               AND (SELECT a.attname FROM pg_attribute AS a
                    WHERE a.attrelid = e.adrelid AND a.attnum = e.adnum) = key) IS NOT TRUE;
        IF source_users IS NULL THEN
            statements := statements || format('DROP SEQUENCE %s', source::regclass);
        ELSE
            RAISE NOTICE 'sequence % is kept, since it is used by %', source::regclass, source_users;
        END IF;
    END IF;

    FOREACH statement IN ARRAY statements LOOP
        IF NOT dry_run THEN
            EXECUTE statement;
        END IF;
        RETURN NEXT statement;
    END LOOP;
END $convert$;
COMMENT ON FUNCTION @extschema@.snowflake_convert(regclass, name, text, boolean) IS
    'gives a serial, identity or sequence column IDs for its default; returns the statements for it';

/*
 * Gives a column that draws on a generator a sequence for its default, which begins above
 * the highest key, and returns the statements that this took or, with dry_run, would take.
 * Roles that may insert may use the sequence.
 */
CREATE FUNCTION @extschema@.snowflake_revert(
    "table" regclass, "column" name, dry_run boolean DEFAULT false)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $revert$
DECLARE
    target ALIAS FOR $1;
    key ALIAS FOR $2;
    -- where the extension is now: its schema may have another name than when it was made
    home text := (SELECT quote_ident(n.nspname) FROM pg_extension AS e
                  JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'snowflake');
    attribute pg_attribute;
    is_drawn boolean;
    schema_name name;
    table_name name;
    base text;
    sequence_name text;
    copies int := 0;
    highest bigint;
    owner name;
    grantees text;
    statements text[];
    statement text;
BEGIN
    IF target IS NULL OR key IS NULL OR dry_run IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'table, column and dry_run must not be null';
    END IF;
    EXECUTE format('SELECT * FROM %s.snowflake_key_column($1, $2)', home)
    INTO attribute USING target, key;
    EXECUTE format('SELECT %s.snowflake_is_drawn($1, $2)', home)
    INTO is_drawn USING target::oid, attribute.attnum;
    IF NOT is_drawn THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of table %s does not draw on a generator', key, target),
            HINT = 'Only a column that has snowflake_nextval() for its default can be reverted.';
    END IF;

    -- Whoever is inserting commits first: a later key would be above the sequence.
    statement := format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', target);
    IF NOT dry_run THEN
        EXECUTE statement;
    END IF;
    RETURN NEXT statement;
    EXECUTE format('SELECT greatest(max(%I), 0) FROM %s', key, target) INTO highest;
    IF highest = 9223372036854775807 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('key %s in column "%s" of table %s is the greatest bigint',
                             highest, key, target),
            HINT = 'Change or delete its row first.';
    END IF;

    -- named as for a serial column
    SELECT n.nspname, c.relname INTO schema_name, table_name
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = target;
    base := table_name || '_' || key;
    WHILE octet_length(base) > 55 LOOP
        base := left(base, -1);
    END LOOP;
    LOOP
        sequence_name := format('%I.%I', schema_name,
                                base || '_seq' || CASE WHEN copies > 0 THEN copies::text ELSE '' END);
        EXIT WHEN to_regclass(sequence_name) IS NULL;
        copies := copies + 1;
    END LOOP;
    SELECT string_agg(DISTINCT CASE WHEN x.grantee = 0 THEN 'PUBLIC'
                                    ELSE quote_ident(pg_get_userbyid(x.grantee)) END, ', ')
    INTO grantees
    FROM pg_class AS c
    CROSS JOIN LATERAL (SELECT c.relacl AS acl
                        UNION ALL
                        SELECT a.attacl FROM pg_attribute AS a WHERE a.attrelid = c.oid) AS l
    CROSS JOIN LATERAL aclexplode(l.acl) AS x
    WHERE c.oid = target AND x.privilege_type = 'INSERT' AND x.grantee <> c.relowner;

    SELECT pg_get_userbyid(c.relowner) INTO owner FROM pg_class AS c WHERE c.oid = target;
    IF owner = current_user THEN
        statements := ARRAY[format('CREATE SEQUENCE %s START WITH %s OWNED BY %s.%I',
                                   sequence_name, highest + 1, target, key)];
    ELSE
        statements := ARRAY[
            format('CREATE SEQUENCE %s START WITH %s', sequence_name, highest + 1),
            format('ALTER SEQUENCE %s OWNER TO %I', sequence_name, owner),
            format('ALTER SEQUENCE %s OWNED BY %s.%I', sequence_name, target, key)];
    END IF;
    statements := statements || format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT pg_catalog.nextval(%L)',
                                       target, key, sequence_name);
    IF grantees IS NOT NULL THEN
        statements := statements || format('GRANT USAGE ON SEQUENCE %s TO %s', sequence_name, grantees);
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        IF NOT dry_run THEN
            EXECUTE statement;
        END IF;
        RETURN NEXT statement;
    END LOOP;
END $revert$;
COMMENT ON FUNCTION @extschema@.snowflake_revert(regclass, name, boolean) IS
    'gives a column that draws on a generator a sequence above its highest key; returns the statements for it';

------------------------------------------------------------------------
-- Watching
------------------------------------------------------------------------

CREATE FUNCTION @extschema@.snowflake_backends(
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
    'generator state of each backend place of the server that has been used';

CREATE VIEW @extschema@.snowflake_backends AS
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
    'IDs drawn in this place since the server started';
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

CREATE FUNCTION @extschema@.snowflake_instance() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_instance';
COMMENT ON FUNCTION @extschema@.snowflake_instance() IS
    'number of this running server: another after each start';

CREATE VIEW @extschema@.snowflake_lease_status AS
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
GRANT SELECT ON @extschema@.snowflake_backends, @extschema@.snowflake_lease_status TO PUBLIC;

CREATE FUNCTION @extschema@.snowflake_last_id_time(layout text) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_last_id_time';
COMMENT ON FUNCTION @extschema@.snowflake_last_id_time(text) IS
    'the last ID time (units since the epoch) that a layout can show';

CREATE FUNCTION @extschema@.snowflake_pools(
    OUT database oid, OUT generator text, OUT issued bigint, OUT machine_ids int,
    OUT claims bigint, OUT renewals bigint, OUT failures bigint, OUT switches bigint,
    OUT lost bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_pools';
COMMENT ON FUNCTION @extschema@.snowflake_pools() IS
    'the generators that this server draws on, in all its databases';

CREATE VIEW @extschema@.snowflake_generators AS
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

CREATE FUNCTION @extschema@.snowflake_stats(
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

CREATE FUNCTION @extschema@.snowflake_stats_reset() RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_stats_reset';
COMMENT ON FUNCTION @extschema@.snowflake_stats_reset() IS 'sets the sums of snowflake_stats to 0';
REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_stats_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.snowflake_stats_reset() TO @extowner@;

CREATE VIEW @extschema@.snowflake_stats AS SELECT * FROM @extschema@.snowflake_stats();
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

GRANT SELECT ON @extschema@.snowflake_generators, @extschema@.snowflake_stats TO PUBLIC;
