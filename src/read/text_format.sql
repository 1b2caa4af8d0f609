-- The zone and the layout have defaults, so that either can be given without the other.
CREATE OR REPLACE FUNCTION @extschema@.snowflake_friendly(
    id bigint, zone text DEFAULT 'UTC', layout text DEFAULT 'default')
    RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_friendly';
COMMENT ON FUNCTION @extschema@.snowflake_friendly(bigint, text, text) IS
    'an ID as local time in a time zone, machine ID and sequence: yyyyMMddHHmmssSSS-m-s';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_from_friendly(
    friendly text, zone text DEFAULT 'UTC', layout text DEFAULT 'default')
    RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_from_friendly';
COMMENT ON FUNCTION @extschema@.snowflake_from_friendly(text, text, text) IS
    'the ID of a friendly form; refuses a local time that clocks skipped or showed more than once';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_to_base62(id bigint) RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_to_base62';
COMMENT ON FUNCTION @extschema@.snowflake_to_base62(bigint) IS
    'an ID as 11 digits of 0-9A-Za-z, which sort like the ID under COLLATE "C"';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_from_base62(base62 text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_from_base62';
COMMENT ON FUNCTION @extschema@.snowflake_from_base62(text) IS
    'the ID of up to 11 digits of 0-9A-Za-z';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_to_base36(id bigint) RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_to_base36';
COMMENT ON FUNCTION @extschema@.snowflake_to_base36(bigint) IS
    'an ID as 13 digits of 0-9A-Z, which sort like the ID under COLLATE "C"';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_from_base36(base36 text) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_from_base36';
COMMENT ON FUNCTION @extschema@.snowflake_from_base36(text) IS
    'the ID of up to 13 digits of 0-9A-Z';

-- Not immutable: it tells the ID's age, and the time in the session's time zone.
CREATE OR REPLACE FUNCTION @extschema@.snowflake_describe(id bigint) RETURNS text
    LANGUAGE C STABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_describe';
COMMENT ON FUNCTION @extschema@.snowflake_describe(bigint) IS
    'an ID for people: its bits field by field, time and age, spellings';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_describe(id bigint, layout text) RETURNS text
    LANGUAGE C STABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_describe';
COMMENT ON FUNCTION @extschema@.snowflake_describe(bigint, text) IS
    'an ID with the given layout for people: its bits field by field, time and age, spellings';
