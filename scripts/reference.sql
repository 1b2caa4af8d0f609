-- Writes doc/reference.md from the catalog: psql -XAtq -f scripts/reference.sql
LOAD 'snowflake';
\pset footer off
\echo '# Reference'
\echo
\echo 'Everything that the extension has, in the words of its own comments. Made from the catalog by `make reference`:'
\echo 'change `src/*/*.sql` or `src/server/settings.cpp`, not this page.'
\echo
\echo '[Functions](#functions) · [Views](#views) · [Tables](#tables) · [Settings](#settings)'

CREATE TEMP VIEW member AS
    SELECT d.classid, d.objid FROM pg_depend AS d
    JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'snowflake'
    WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass;

\echo
\echo '## Functions'
\echo
\echo 'None is called with a null but where it says so. *For administrators* means that `PUBLIC` may not call it.'

SELECT CASE WHEN row_number() OVER (PARTITION BY proname ORDER BY pronargs, p.oid) = 1
            THEN E'\n### ' || proname || E'\n' ELSE '' END
    || E'\n```\n' || proname || '(' || pg_get_function_arguments(p.oid) || ') → '
    || pg_get_function_result(p.oid) || E'\n```\n\n'
    || coalesce(upper(left(d.description, 1)) || substr(d.description, 2), 'NO COMMENT') || '. *'
    || CASE provolatile WHEN 'i' THEN 'Immutable' WHEN 's' THEN 'Stable' ELSE 'Volatile' END
    || CASE proparallel WHEN 's' THEN ', parallel safe' WHEN 'r' THEN ', parallel restricted'
                        ELSE ', parallel unsafe' END
    || CASE WHEN proisstrict THEN '' ELSE ', called with nulls too' END
    || CASE WHEN prosecdef THEN ', with its owner''s rights' ELSE '' END || '.*'
    || CASE WHEN EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner)))
                         WHERE grantee = 0) THEN '' ELSE ' *For administrators.*' END
FROM pg_proc AS p JOIN member AS m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
LEFT JOIN pg_description AS d ON d.classoid = 'pg_proc'::regclass AND d.objoid = p.oid
ORDER BY proname COLLATE "C", pronargs, p.oid;

CREATE TEMP VIEW relation AS
    SELECT c.oid, c.relname, c.relkind,
           E'\n### ' || CASE c.relkind WHEN 'v' THEN 'View ' ELSE 'Table ' END || c.relname || E'\n\n'
        || coalesce(upper(left(d.description, 1)) || substr(d.description, 2), 'NO COMMENT') || E'.\n\n'
        || E'| column | type | what |\n|---|---|---|\n'
        || (SELECT string_agg('| `' || a.attname || '` | ' || format_type(a.atttypid, a.atttypmod) || ' | '
                              || coalesce(replace(col_description(c.oid, a.attnum), '|', '\|'), 'NO COMMENT')
                              || ' |', E'\n' ORDER BY a.attnum)
            FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS text
    FROM pg_class AS c JOIN member AS m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
    LEFT JOIN pg_description AS d
        ON d.classoid = 'pg_class'::regclass AND d.objoid = c.oid AND d.objsubid = 0;

\echo
\echo '## Views'
SELECT text FROM relation WHERE relkind = 'v' ORDER BY relname COLLATE "C";
\echo
\echo '## Tables'
SELECT text FROM relation WHERE relkind = 'r' ORDER BY relname COLLATE "C";

\echo
\echo '## Settings'
\echo
\echo '| setting | default | range | set by | what |'
\echo '|---|---|---|---|---|'
SELECT '| `' || name || '` | '
    || CASE WHEN boot_val = '' THEN 'empty' ELSE boot_val || coalesce(' ' || unit, '') END || ' | '
    || coalesce(min_val || ' to ' || max_val || coalesce(' ' || unit, ''), '') || ' | '
    || CASE context WHEN 'user' THEN 'anyone, in a session too'
                    ELSE '`postgresql.conf`, `ALTER SYSTEM`; a reload' END || ' | '
    || short_desc || ' ' || extra_desc || ' |'
FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name COLLATE "C";
