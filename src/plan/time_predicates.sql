-- Internal: lets the planner take a comparison of snowflake_timestamp(id) for a range of IDs.
CREATE OR REPLACE FUNCTION @extschema@.snowflake_timestamp_support(internal) RETURNS internal
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_timestamp_support';
COMMENT ON FUNCTION @extschema@.snowflake_timestamp_support(internal) IS
    'planner support of snowflake_timestamp()';

/*
 * Internal: what a comparison of snowflake_timestamp(id) with a time is replaced by in a
 * query's plan. Any time will do, also one that the layout cannot hold.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_first_id_from("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_first_id_from';
COMMENT ON FUNCTION @extschema@.snowflake_first_id_from(timestamptz, text) IS
    'the least ID of this time or a later one; null if there is none';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_first_id_after("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_first_id_after';
COMMENT ON FUNCTION @extschema@.snowflake_first_id_after(timestamptz, text) IS
    'the least ID of a later time; null if there is none';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_last_id_before("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_last_id_before';
COMMENT ON FUNCTION @extschema@.snowflake_last_id_before(timestamptz, text) IS
    'the greatest ID of an earlier time; null if there is none';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_last_id_until("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_last_id_until';
COMMENT ON FUNCTION @extschema@.snowflake_last_id_until(timestamptz, text) IS
    'the greatest ID of this time or an earlier one; null if there is none';
