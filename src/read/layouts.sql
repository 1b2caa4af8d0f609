CREATE OR REPLACE FUNCTION @extschema@.snowflake_layouts(
    OUT name text, OUT spec text, OUT epoch timestamptz, OUT last_timestamp timestamptz,
    OUT unit text, OUT timestamp_bits int, OUT machine_id_bits int, OUT sequence_bits int,
    OUT max_id bigint, OUT can_generate boolean, OUT source text)
    RETURNS SETOF record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 13
    AS 'MODULE_PATHNAME', 'snowflake_layouts';
COMMENT ON FUNCTION @extschema@.snowflake_layouts() IS 'the layouts that have a name';

CREATE OR REPLACE VIEW @extschema@.snowflake_layouts AS
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
