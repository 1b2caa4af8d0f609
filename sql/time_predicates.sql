-- WHERE snowflake_timestamp(id) >= t and its relatives: index, partitions, estimates.

SET timezone = 'UTC';
-- one row a minute from 2026-01-01 on
CREATE TABLE event (id bigint PRIMARY KEY, kind int NOT NULL, at timestamptz NOT NULL);
INSERT INTO event
    SELECT snowflake_make(t, n % 1024, n % 4096), n % 100, t
    FROM generate_series(0, 19999) AS n, LATERAL (SELECT '2026-01-01Z'::timestamptz + n * interval '1 minute') AS at (t);
ANALYZE event;

CREATE FUNCTION plan_of(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan';
END $$;
-- The tables that a query's plan reads.
CREATE FUNCTION tables_of(query text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(name, ' ' ORDER BY name), 'none')
    FROM (SELECT DISTINCT trim(both '"' FROM t::text) AS name
          FROM jsonb_path_query(plan_of(query)::jsonb, 'strict $.**."Relation Name"') AS t) AS tables
$$;
-- The condition by which a plan reads a table.
CREATE FUNCTION condition_of(query text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(p ->> 'Index Cond', 'Filter: ' || (p ->> 'Filter'), p ->> 'One-Time Filter')
    FROM plan_of(query) AS p
$$;

--
-- Conditions
--

-- the first query of a session
\c
EXPLAIN (COSTS off) SELECT * FROM event WHERE snowflake_timestamp(id) >= '2026-01-14 20:00Z';
-- and a later one
EXPLAIN (COSTS off) SELECT * FROM event WHERE snowflake_timestamp(id) >= '2026-01-14 21:00Z';

SET timezone = 'UTC';
SET enable_bitmapscan = off;
SET enable_seqscan = off;

-- all operators, with the times of a millisecond's start and of the microseconds around
SELECT o.op, t.at, condition_of(format('SELECT * FROM event WHERE snowflake_timestamp(id) %s %L', o.op, t.at))
FROM unnest('{>=,>,<,<=,=}'::text[]) WITH ORDINALITY AS o (op, place),
     (VALUES ('2026-01-01 00:00:01.999999Z'), ('2026-01-01 00:00:02Z'), ('2026-01-01 00:00:02.000001Z')) AS t (at)
ORDER BY o.place, t.at;
-- operands the other way round
SELECT o.op, condition_of(format('SELECT * FROM event WHERE %L %s snowflake_timestamp(id)', '2026-01-01 00:00:02Z', o.op))
FROM unnest('{<=,<,>,>=,=}'::text[]) WITH ORDINALITY AS o (op, place)
ORDER BY o.place;

-- times that the layout does not reach
SELECT o.op, t.at, condition_of(format('SELECT * FROM event WHERE snowflake_timestamp(id) %s %L', o.op, t.at))
FROM unnest('{>=,>,<,<=,=}'::text[]) WITH ORDINALITY AS o (op, place),
     unnest('{-infinity,1000-01-01 BC,2025-12-31 23:59:59.999999Z,2095-09-06 15:47:35.552Z,infinity}'::text[])
         WITH ORDINALITY AS t (at, place)
ORDER BY o.place, t.place;

SELECT condition_of(q), q
FROM unnest(ARRAY[
    $$SELECT * FROM event WHERE snowflake_timestamp(id) BETWEEN '2026-01-14Z' AND '2026-01-15Z'$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id) >= '2026-01-14Z' AND snowflake_timestamp(id) < '2026-01-15Z'$$,
    $$SELECT * FROM event WHERE NOT snowflake_timestamp(id) < '2026-01-14Z'$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id) < '2026-01-02Z' OR snowflake_timestamp(id) = '2026-01-14Z'$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id) < '2025-01-01Z' OR id = 5$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id) = '2025-01-01Z' OR snowflake_timestamp(id) > 'infinity'$$,
    -- expressions that are the same for all rows
    $$SELECT * FROM event WHERE snowflake_timestamp(id) >= now() - interval '1 day'$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id) >= current_date$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id) >= localtimestamp - interval '1 hour'$$,
    -- another layout, by name and by its fields
    $$SELECT * FROM event WHERE snowflake_timestamp(id, 'twitter') >= '2026-01-14Z'$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id, 'epoch=2020-01-01T00:00:00Z unit=s fields=t31,s15,m10') = '2026-01-14Z'$$,
    -- one that does not use all bits: no larger number is an ID
    $$SELECT * FROM event WHERE snowflake_timestamp(id, 'js_safe') > '2026-01-14Z'$$
]) WITH ORDINALITY AS queries (q, place) ORDER BY place;

-- what is left as it is
SELECT condition_of(q), q
FROM unnest(ARRAY[
    -- IDs that do not sort by time; layouts that only a row tells, or nobody knows
    $$SELECT * FROM event WHERE snowflake_timestamp(id, 'epoch=2026-01-01T00:00:00Z unit=ms fields=m10,t41,s12') >= '2026-01-14Z'$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id, CASE kind WHEN 1 THEN 'twitter' ELSE 'default' END) >= '2026-01-14Z'$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id, 'nonsense') >= '2026-01-14Z'$$,
    -- a time that differs from row to row
    $$SELECT * FROM event WHERE snowflake_timestamp(id) >= clock_timestamp()$$,
    $$SELECT * FROM event WHERE snowflake_timestamp(id) >= at$$,
    -- no bare column
    $$SELECT * FROM event WHERE snowflake_timestamp(id + 1) >= '2026-01-14Z'$$,
    -- a question whose answer may be null
    $$SELECT * FROM event WHERE (snowflake_timestamp(id) >= '2026-01-14Z') IS NOT TRUE$$
]) WITH ORDINALITY AS queries (q, place) ORDER BY place;
SELECT * FROM event WHERE snowflake_timestamp(id, 'nonsense') >= '2026-01-14Z';

-- a null time finds nothing
SELECT count(*) FROM event WHERE snowflake_timestamp(id) >= NULL;

-- parameters, known or not when the plan is made
PREPARE since(timestamptz) AS SELECT count(*) FROM event WHERE snowflake_timestamp(id) >= $1;
EXPLAIN (COSTS off) EXECUTE since('2026-01-14Z');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS off) EXECUTE since('2026-01-14Z');
EXECUTE since('2026-01-14Z');
EXECUTE since('1000-01-01Z');
EXECUTE since('infinity');
EXECUTE since(NULL);
PREPARE until(timestamptz) AS SELECT count(*) FROM event WHERE snowflake_timestamp(id) <= $1;
EXECUTE until('2026-01-01Z');
EXECUTE until('1000-01-01Z');
EXECUTE until('infinity');
EXECUTE until(NULL);
RESET plan_cache_mode;

-- joins: the ID on the left is looked up by the time on the right
CREATE TABLE span (name text, began timestamptz, ended timestamptz);
INSERT INTO span VALUES ('first', '2026-01-01Z', '2026-01-01 00:09:59Z'), ('none', '2020-01-01Z', '2020-02-01Z'),
    ('open', '2026-01-14 21:00Z', 'infinity');
ANALYZE span;
RESET enable_seqscan;
SET enable_material = off;
EXPLAIN (COSTS off)
SELECT * FROM span JOIN event ON snowflake_timestamp(id) BETWEEN began AND ended;
SELECT name, count(id) FROM span LEFT JOIN event ON snowflake_timestamp(id) BETWEEN began AND ended
GROUP BY name ORDER BY name;
EXPLAIN (COSTS off)
SELECT * FROM event AS e JOIN event AS f
    ON snowflake_timestamp(f.id) > snowflake_timestamp(e.id)
    AND snowflake_timestamp(f.id) < snowflake_timestamp(e.id) + interval '10 s';
-- a join that nothing meets keeps the other side's rows
SELECT name, count(id) FROM span LEFT JOIN event ON snowflake_timestamp(id) > 'infinity'
GROUP BY name ORDER BY name;
SELECT count(*), count(name) FROM event LEFT JOIN span ON snowflake_timestamp(id) <= ended AND snowflake_timestamp(id) < '2025-01-01Z';
-- an equality can still be hashed
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS off)
SELECT * FROM event JOIN span ON snowflake_timestamp(id) = began;
RESET enable_material;
RESET enable_nestloop;
RESET enable_mergejoin;

-- a time as a column of a view, behind a security barrier, and in a policy
SET enable_seqscan = off;
CREATE VIEW event_time AS SELECT *, snowflake_timestamp(id) AS created_at FROM event;
SELECT condition_of($$SELECT * FROM event_time WHERE created_at > '2026-01-14Z'$$);
CREATE VIEW event_barrier WITH (security_barrier) AS
    SELECT * FROM event_time WHERE created_at > '2026-01-14Z';
SELECT condition_of($$SELECT * FROM event_barrier$$);
CREATE ROLE regress_snowflake_reader;
GRANT SELECT ON event TO regress_snowflake_reader;
GRANT CREATE ON SCHEMA public TO regress_snowflake_reader;
ALTER TABLE event ENABLE ROW LEVEL SECURITY;
CREATE POLICY recent ON event USING (snowflake_timestamp(id) >= '2026-01-14Z');
SET ROLE regress_snowflake_reader;
SELECT condition_of($$SELECT * FROM event WHERE snowflake_timestamp(id) < '2026-01-14 01:00Z'$$);
SELECT count(*), min(at), max(at) FROM event WHERE snowflake_timestamp(id) < '2026-01-14 01:00Z';
RESET ROLE;
ALTER TABLE event DISABLE ROW LEVEL SECURITY;
-- who may not call the functions that stand for the bounds gets the plan without them
REVOKE EXECUTE ON FUNCTION snowflake_first_id_from(timestamptz, text) FROM PUBLIC;
SET ROLE regress_snowflake_reader;
SELECT condition_of($$SELECT * FROM event WHERE snowflake_timestamp(id) >= '2026-01-14Z'$$);
SELECT count(*) FROM event WHERE snowflake_timestamp(id) >= '2026-01-14 21:00Z';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_first_id_from(timestamptz, text) TO PUBLIC;
REVOKE ALL ON event FROM regress_snowflake_reader;
REVOKE ALL ON SCHEMA public FROM regress_snowflake_reader;
DROP ROLE regress_snowflake_reader;

-- changes, too
EXPLAIN (COSTS off) DELETE FROM event WHERE snowflake_timestamp(id) < '2026-01-01 00:10Z';

--
-- Estimates come from the statistics on the ID
--

CREATE FUNCTION estimate_fits(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    estimate float8 := plan_of(query) ->> 'Plan Rows';
    rows float8;
BEGIN
    EXECUTE format('SELECT count(*) FROM (%s) AS rows', query) INTO rows;
    RETURN abs(estimate - rows) <= 0.1 * rows + 20;
END $$;
SELECT o.op, n.minutes, estimate_fits(format(
    $$SELECT * FROM event WHERE snowflake_timestamp(id) %s timestamptz '2026-01-01Z' + interval '%s minutes'$$, o.op, n.minutes))
FROM unnest('{>=,<,=}'::text[]) AS o (op), unnest('{0,100,5000,19900}'::int[]) AS n (minutes)
ORDER BY o.op, n.minutes;
SELECT estimate_fits($$SELECT * FROM event WHERE snowflake_timestamp(id) BETWEEN '2026-01-05Z' AND '2026-01-08Z'$$);

--
-- Partitions
--

CREATE TABLE log (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE log_2026_01 PARTITION OF log
    FOR VALUES FROM (snowflake_min_id('2026-01-01Z')) TO (snowflake_min_id('2026-02-01Z'));
CREATE TABLE log_2026_02 PARTITION OF log
    FOR VALUES FROM (snowflake_min_id('2026-02-01Z')) TO (snowflake_min_id('2026-03-01Z'));
CREATE TABLE log_2026_03 PARTITION OF log
    FOR VALUES FROM (snowflake_min_id('2026-03-01Z')) TO (snowflake_min_id('2026-04-01Z'));
INSERT INTO log SELECT snowflake_make('2026-01-01Z'::timestamptz + n * interval '1 hour', 1, 0) FROM generate_series(0, 2159) AS n;
-- the first query of a session
\c
SELECT tables_of($$SELECT * FROM log WHERE snowflake_timestamp(id) >= '2026-03-01Z'$$);
SET timezone = 'UTC';
-- the edges
SELECT o.op, t.at, tables_of(format('SELECT * FROM log WHERE snowflake_timestamp(id) %s %L', o.op, t.at))
FROM unnest('{>=,>,<,<=,=}'::text[]) WITH ORDINALITY AS o (op, place),
     (VALUES ('2026-01-31 23:59:59.999Z'), ('2026-01-31 23:59:59.999001Z'), ('2026-02-01Z'), ('2026-02-01 00:00:00.000001Z'))
         AS t (at)
ORDER BY o.place, t.at;
SELECT tables_of($$SELECT * FROM log WHERE snowflake_timestamp(id) BETWEEN '2026-02-10Z' AND '2026-02-20Z'$$);
SELECT tables_of($$SELECT * FROM log WHERE snowflake_timestamp(id) < '2026-01-10Z' OR snowflake_timestamp(id) >= '2026-03-30Z'$$);
SELECT tables_of($$DELETE FROM log WHERE snowflake_timestamp(id) < '2026-02-01Z'$$);
SELECT tables_of($$SELECT * FROM log WHERE snowflake_timestamp(id) < '2025-01-01Z'$$);
-- as the plan is run: what is not known before
PREPARE log_since(timestamptz) AS SELECT count(*) FROM log WHERE snowflake_timestamp(id) >= $1;
SET plan_cache_mode = force_generic_plan;
SET enable_bitmapscan = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS off) EXECUTE log_since('2026-03-01Z');
EXECUTE log_since('2026-03-01Z');
-- The tables that a query really reads.
CREATE FUNCTION tables_read(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
    tables text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING off, FORMAT json) ' || query INTO plan;
    SELECT string_agg(DISTINCT trim(both '"' FROM t::text), ' ') INTO tables
    FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Actual Loops" > 0)."Relation Name"') AS t;
    RETURN tables;
END $$;
SELECT tables_read($$SELECT * FROM log WHERE snowflake_timestamp(id) >= (SELECT '2026-03-01Z'::timestamptz)$$);
CREATE TABLE day (began timestamptz);
INSERT INTO day VALUES ('2026-02-02Z'), ('2026-02-20Z'), ('infinity');
ANALYZE day;
RESET ALL;
SET timezone = 'UTC';
SET enable_seqscan = off;
SET enable_material = off;
SELECT tables_read($$SELECT * FROM day JOIN log ON snowflake_timestamp(id) >= began AND snowflake_timestamp(id) < began + interval '1 day'$$);
RESET enable_material;
RESET enable_seqscan;
-- UNION ALL hands the predicate down
SELECT tables_of($$SELECT * FROM (SELECT id FROM log UNION ALL SELECT id FROM event) AS u
    WHERE snowflake_timestamp(id) >= '2026-03-01Z'$$);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT id FROM (SELECT id FROM log UNION ALL SELECT id FROM event) AS u
    WHERE snowflake_timestamp(id) BETWEEN '2026-03-01Z' AND '2026-03-02Z';

--
-- Generated columns, and indexes on the expression
--

CREATE TABLE stamped (
    id bigint PRIMARY KEY,
    created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED,
    name text CHECK (snowflake_timestamp(id) < '2027-01-01Z')
);
INSERT INTO stamped SELECT id FROM event;
ANALYZE stamped;
SELECT count(*) FROM stamped WHERE created_at = snowflake_timestamp(id);
INSERT INTO stamped VALUES (snowflake_make('2027-01-01Z', 0, 0));
-- an index that was made for the expression is preferred to the one on the ID
CREATE INDEX stamped_time ON stamped (snowflake_timestamp(id));
ANALYZE stamped;
EXPLAIN (COSTS off) SELECT * FROM stamped WHERE snowflake_timestamp(id) > '2026-01-14 21:00Z';
EXPLAIN (COSTS off) SELECT * FROM stamped ORDER BY snowflake_timestamp(id) LIMIT 1;
SELECT estimate_fits($$SELECT * FROM stamped WHERE snowflake_timestamp(id) > '2026-01-12Z'$$);
DROP INDEX stamped_time;
EXPLAIN (COSTS off) SELECT * FROM stamped WHERE snowflake_timestamp(id) > '2026-01-14 21:00Z';
-- unless it is partial and does not hold what the query asks for
CREATE INDEX stamped_time ON stamped (snowflake_timestamp(id)) WHERE name = 'x';
EXPLAIN (COSTS off) SELECT * FROM stamped WHERE snowflake_timestamp(id) > '2026-01-14 21:00Z';
EXPLAIN (COSTS off) SELECT * FROM stamped WHERE snowflake_timestamp(id) > '2026-01-14 21:00Z' AND name = 'x';
DROP INDEX stamped_time;
-- partial indexes are still found to hold what a query asks for
CREATE INDEX stamped_recent ON stamped (name) WHERE snowflake_timestamp(id) >= '2026-01-14Z';
EXPLAIN (COSTS off) SELECT * FROM stamped WHERE name = 'x' AND snowflake_timestamp(id) >= '2026-01-14 12:00Z';
EXPLAIN (COSTS off) SELECT * FROM stamped WHERE name = 'x' AND snowflake_timestamp(id) >= '2026-01-13Z';

--
-- A predicate and the comparison that it stands for always agree
--

/*
 * For IDs and times around the edges of units and of the layout: finds the IDs by WHERE, with a
 * time that the planner knows and one that it does not, and compares with what the comparison
 * says of each ID. Returns how many were compared, and what differed.
 */
CREATE FUNCTION disagreements(layout text, OUT compared bigint, OUT differ text[]) LANGUAGE plpgsql AS $$
DECLARE
    epoch timestamptz := snowflake_id_time(0, layout);
    unit interval := snowflake_id_time(1, layout) - epoch;
    last_id bigint := snowflake_last_id_until('infinity', layout);
    op text;
    t timestamptz;
    expected bigint[];
    found bigint[];
BEGIN
    compared := 0;
    differ := '{}';
    CREATE TEMP TABLE sample AS
        SELECT DISTINCT id FROM (
            SELECT greatest(0, least(last_id, base + d)) AS id
            FROM (SELECT 0 AS base UNION ALL SELECT last_id
                  UNION ALL SELECT snowflake_first_id_from(epoch + n * unit, layout)
                      FROM generate_series(1, 10) AS n
                  UNION ALL SELECT (random() * last_id::numeric)::bigint FROM generate_series(1, 20)) AS b (base),
                 generate_series(-2, 1) AS d
            WHERE base + d::numeric BETWEEN 0 AND 9223372036854775807) AS ids;
    INSERT INTO sample VALUES (NULL);
    CREATE INDEX ON sample (id);
    FOR t IN
        SELECT DISTINCT at FROM (
            SELECT snowflake_timestamp(id, layout) + d * interval '1 us' AS at
            FROM sample, unnest('{-1000,-1,0,1,999}'::int[]) AS d WHERE id IS NOT NULL
              AND snowflake_timestamp(id, layout) < '294276-12-31Z'
            UNION ALL VALUES (timestamptz '-infinity'), ('infinity'), ('4000-01-01 BC'), ('290000-01-01'),
                (epoch - interval '1 us'), (NULL)) AS times
    LOOP
        FOREACH op IN ARRAY '{>=,>,<,<=,=}'::text[] LOOP
            EXECUTE format('SELECT array_agg(id ORDER BY id) FILTER (WHERE snowflake_timestamp(id, %L) %s %L::timestamptz) FROM sample',
                           layout, op, t) INTO expected;
            PERFORM set_config('enable_seqscan', 'on', true);
            EXECUTE format('SELECT array_agg(id ORDER BY id) FROM sample WHERE snowflake_timestamp(id, %L) %s %L::timestamptz',
                           layout, op, t) INTO found;
            IF found IS DISTINCT FROM expected THEN
                differ := differ || format('%s %s: %s, not %s', op, t, found, expected);
            END IF;
            PERFORM set_config('enable_seqscan', 'off', true);
            EXECUTE format('SELECT array_agg(id ORDER BY id) FROM sample WHERE (SELECT %L::timestamptz) %s snowflake_timestamp(id, %L)',
                           t, translate(op, '<>', '><'), layout) INTO found;
            IF found IS DISTINCT FROM expected THEN
                differ := differ || format('unknown %s %s: %s, not %s', op, t, found, expected);
            END IF;
            compared := compared + 2;
        END LOOP;
    END LOOP;
    DROP TABLE sample;
END $$;
SELECT layout, compared > 500 AS enough, differ
FROM unnest(ARRAY['default', 'twitter', 'js_safe', 'sonyflake', 'baidu', 'cosid_second',
                  'epoch=1970-01-01T00:00:00Z unit=s fields=t40,m10,s12',
                  'epoch=0001-01-01T00:00:00Z unit=10ms fields=t63,m0,s0',
                  'epoch=2026-01-01T00:00:00Z unit=ms fields=t7,m2,s2']) AS layout,
     LATERAL disagreements(layout);

DROP TABLE event, span, log, day, stamped CASCADE;
DROP FUNCTION plan_of, tables_of, tables_read, condition_of, estimate_fits, disagreements;
