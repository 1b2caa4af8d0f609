-- What the extension is made of, and who may use it.

-- Objects, whatever their kind and name
CREATE TEMP VIEW member AS
    SELECT classid, objid FROM pg_depend
    WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
      AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake');
CREATE TEMP VIEW member_function AS
    SELECT p.* FROM pg_proc AS p
    JOIN member ON classid = 'pg_proc'::regclass AND objid = p.oid;
CREATE TEMP VIEW member_relation AS
    SELECT c.* FROM pg_class AS c
    JOIN member ON classid = 'pg_class'::regclass AND objid = c.oid;

-- functions: decoders are immutable, and what draws IDs may do so in a parallel worker
SELECT oid::regprocedure AS function,
       CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END
           AS volatility,
       proisstrict AS strict,
       CASE proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END
           AS parallel
FROM member_function ORDER BY oid::regprocedure::text COLLATE "C";

SELECT oid::regclass AS relation, relkind FROM member_relation
WHERE relkind <> 'i' ORDER BY oid::regclass::text COLLATE "C";

-- everything has a comment (no rows)
SELECT oid::regprocedure AS no_comment FROM member_function
WHERE obj_description(oid, 'pg_proc') IS NULL;
SELECT oid::regclass AS no_comment FROM member_relation
WHERE relkind <> 'i' AND obj_description(oid, 'pg_class') IS NULL;
SELECT a.attrelid::regclass AS no_comment, a.attname
FROM pg_attribute AS a JOIN member_relation AS r ON r.oid = a.attrelid
WHERE a.attnum > 0 AND r.relkind <> 'i' AND col_description(a.attrelid, a.attnum) IS NULL;

-- functions with their owner's rights: all with a search_path of their own, none for PUBLIC (no rows)
SELECT count(*) > 0 AS some FROM member_function WHERE prosecdef;
SELECT oid::regprocedure AS can_be_steered FROM member_function
WHERE prosecdef AND proconfig IS DISTINCT FROM '{"search_path=pg_catalog, pg_temp"}';
SELECT oid::regprocedure AS open_to_all FROM member_function
WHERE prosecdef AND EXISTS (SELECT 1 FROM aclexplode(coalesce(proacl, acldefault('f', proowner)))
                            WHERE grantee = 0);
-- bodies that find names when they run have a search_path for it, and those in SQL find none then (no rows)
SELECT p.oid::regprocedure AS finds_names FROM member_function AS p
JOIN pg_language AS l ON l.oid = p.prolang
WHERE l.lanname <> 'c'
  AND (NOT 'search_path=pg_catalog, pg_temp' = ANY (coalesce(p.proconfig, '{}'))
       OR (l.lanname = 'sql' AND p.prosqlbody IS NULL));
-- no C function is called with a null (no rows)
SELECT p.oid::regprocedure AS not_strict FROM member_function AS p
JOIN pg_language AS l ON l.oid = p.prolang
WHERE l.lanname = 'c' AND NOT proisstrict;

-- what a role without any rights may do
CREATE ROLE regress_snowflake_nobody;
SELECT oid::regprocedure AS may_not_call FROM member_function
WHERE NOT has_function_privilege('regress_snowflake_nobody', oid, 'EXECUTE')
ORDER BY oid::regprocedure::text COLLATE "C";
SELECT r.oid::regclass AS relation, string_agg(privilege, ', ' ORDER BY place) AS privileges
FROM member_relation AS r
LEFT JOIN unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[])
    WITH ORDINALITY AS p (privilege, place)
    ON has_table_privilege('regress_snowflake_nobody', r.oid, privilege)
WHERE r.relkind <> 'i'
GROUP BY r.oid ORDER BY r.oid::regclass::text COLLATE "C";
DROP ROLE regress_snowflake_nobody;

-- leases go along with a dump
SELECT extconfig::regclass[], extcondition FROM pg_extension WHERE extname = 'snowflake';
