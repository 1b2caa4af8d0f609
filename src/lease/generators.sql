CREATE OR REPLACE FUNCTION @extschema@.snowflake_create_generator(name text, layout text) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'snowflake_create_generator';
COMMENT ON FUNCTION @extschema@.snowflake_create_generator(text, text) IS
    'makes a generator, with leases and sequences of its own; its layout is fixed for life';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_drop_generator(name text) RETURNS void
LANGUAGE c VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'snowflake_drop_generator';
COMMENT ON FUNCTION @extschema@.snowflake_drop_generator(text) IS
    'drops a generator, unless the default of a column or domain draws on it';

/*
 * Internal: what snowflake_create_generator() and snowflake_drop_generator() write. These
 * bodies are bound to the tables, whatever may come to have their names.
 *
 * Leases of an earlier generator of the same name matter only if its IDs looked the same.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_store_generator(name text, layout text) RETURNS boolean
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

CREATE OR REPLACE FUNCTION @extschema@.snowflake_erase_generator(name text) RETURNS boolean
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
