-- What is measured beside snowflake_nextval(): other sources of keys, and yardsticks.
CREATE EXTENSION snowflake;
CREATE EXTENSION pgstattuple;

CREATE FUNCTION noop() RETURNS bigint LANGUAGE c VOLATILE PARALLEL SAFE AS 'noop', 'noop';
CREATE FUNCTION noop(bigint) RETURNS bigint LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'noop', 'noop';
CREATE FUNCTION noop_row(bigint, OUT a timestamptz, OUT b int, OUT c int)
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'noop', 'noop_row';

CREATE SEQUENCE cache_1;
CREATE SEQUENCE cache_32 CACHE 32;
CREATE SEQUENCE cache_1000 CACHE 1000;

-- A shard ID of the kind that applications make for themselves: milliseconds, a number
-- for the shard, and the tail of a sequence.
CREATE SEQUENCE shard_sequence;
CREATE FUNCTION shard_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    since_epoch bigint := floor(extract(epoch FROM clock_timestamp()) * 1000) - 1767225600000;
BEGIN
    RETURN (since_epoch << 22) | (5 << 12) | (nextval('shard_sequence') % 4096);
END
$$;
