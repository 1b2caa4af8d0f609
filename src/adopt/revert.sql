/*
 * Gives a column that draws on a generator a sequence for its default, which begins above
 * the highest key, and returns the statements that this took or, with dry_run, would take.
 * Roles that may insert may use the sequence.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_revert(
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
