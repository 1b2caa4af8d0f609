/*
 * A layout says how an ID's bits are divided: a name from the view
 * snowflake_layouts, or a spec such as
 * 'epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10,s12'. The short forms of
 * these functions mean the layout of the built-in generator.
 */

CREATE OR REPLACE FUNCTION @extschema@.snowflake_parse(
    id bigint, OUT "timestamp" timestamptz, OUT machine_id int, OUT sequence int)
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_parse';
COMMENT ON FUNCTION @extschema@.snowflake_parse(bigint) IS 'the fields of an ID';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_parse(
    id bigint, layout text, OUT "timestamp" timestamptz, OUT machine_id int, OUT sequence int)
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_parse';
COMMENT ON FUNCTION @extschema@.snowflake_parse(bigint, text) IS
    'the fields of an ID with the given layout';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT @extschema@.snowflake_timestamp_support
    AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION @extschema@.snowflake_timestamp(bigint) IS 'when an ID was made';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT @extschema@.snowflake_timestamp_support
    AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION @extschema@.snowflake_timestamp(bigint, text) IS
    'when an ID with the given layout was made';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_machine_id(id bigint) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_machine_id';
COMMENT ON FUNCTION @extschema@.snowflake_machine_id(bigint) IS 'the machine ID in an ID';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_machine_id(id bigint, layout text) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_machine_id';
COMMENT ON FUNCTION @extschema@.snowflake_machine_id(bigint, text) IS
    'the machine ID in an ID with the given layout';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_sequence(id bigint) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_sequence';
COMMENT ON FUNCTION @extschema@.snowflake_sequence(bigint) IS 'the sequence in an ID';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_sequence(id bigint, layout text) RETURNS int
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_sequence';
COMMENT ON FUNCTION @extschema@.snowflake_sequence(bigint, text) IS
    'the sequence in an ID with the given layout';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_make("timestamp" timestamptz, machine_id int, sequence int)
    RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_make';
COMMENT ON FUNCTION @extschema@.snowflake_make(timestamptz, int, int) IS
    'the ID with these fields; the timestamp is rounded down to a millisecond';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_make(
    "timestamp" timestamptz, machine_id int, sequence int, layout text)
    RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_make';
COMMENT ON FUNCTION @extschema@.snowflake_make(timestamptz, int, int, text) IS
    'the ID with these fields in the given layout; the timestamp is rounded down to its unit';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_min_id("timestamp" timestamptz) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION @extschema@.snowflake_min_id(timestamptz) IS
    'the least ID that can be made in the millisecond that a time is in';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_min_id("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION @extschema@.snowflake_min_id(timestamptz, text) IS
    'the least ID with the given layout that can be made in the unit that a time is in';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_max_id("timestamp" timestamptz) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION @extschema@.snowflake_max_id(timestamptz) IS
    'the greatest ID that can be made in the millisecond that a time is in';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_max_id("timestamp" timestamptz, layout text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION @extschema@.snowflake_max_id(timestamptz, text) IS
    'the greatest ID with the given layout that can be made in the unit that a time is in';

-- Internal: what the views show of ID time.
CREATE OR REPLACE FUNCTION @extschema@.snowflake_id_time(id_time bigint, layout text) RETURNS timestamptz
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_id_time';
COMMENT ON FUNCTION @extschema@.snowflake_id_time(bigint, text) IS
    'ID time (units since the layout''s epoch) as a timestamp; infinity if it is past the last one';
