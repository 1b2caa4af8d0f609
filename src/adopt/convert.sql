-- Internal: a column whose keys the caller may have drawn from elsewhere; else an error.
CREATE OR REPLACE FUNCTION @extschema@.snowflake_key_column("table" regclass, "column" name)
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
CREATE OR REPLACE FUNCTION @extschema@.snowflake_is_drawn(relation oid, attnum int2) RETURNS boolean
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
CREATE OR REPLACE FUNCTION @extschema@.snowflake_convert(
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
