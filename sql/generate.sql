-- Drawing IDs: all the ways in which a row gets its default, and the functions
-- themselves. IDs differ from run to run, so what is shown is what is true of them.

-- Judges the IDs of a table whose column n tells the order of drawing.
CREATE FUNCTION judge(t regclass,
    OUT rows bigint, OUT "distinct" boolean, OUT positive boolean, OUT increasing boolean)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'SELECT count(*), count(DISTINCT id) = count(*), bool_and(id > 0),
                coalesce(bool_and(id > before), true)
         FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM %s) AS drawn', t)
    INTO rows, "distinct", positive, increasing;
END $$;

CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int UNIQUE, note text);

--
-- Ways to make rows
--

-- one at a time
INSERT INTO orders (n) VALUES (1);
INSERT INTO orders (n) VALUES (2);
INSERT INTO orders VALUES (DEFAULT, 3);
SELECT * FROM judge('orders');

-- many at once
INSERT INTO orders (n) VALUES (4), (5), (6), (7), (8);
SELECT * FROM judge('orders');

-- INSERT ... SELECT
INSERT INTO orders (n) SELECT n FROM generate_series(9, 1000) AS n ORDER BY n;
SELECT * FROM judge('orders');

-- COPY
COPY orders (n, note) FROM stdin;
1001	copied
1002	copied
1003	copied
\.
SELECT * FROM judge('orders');

-- an ID of the user's own is left alone
INSERT INTO orders (id, n) VALUES (1, 0) RETURNING id;
SELECT * FROM judge('orders');

-- ON CONFLICT: a row that is there keeps its ID
SELECT id AS id_of_5 FROM orders WHERE n = 5 \gset
INSERT INTO orders (n) VALUES (5), (1004) ON CONFLICT DO NOTHING;
INSERT INTO orders (n, note) VALUES (5, 'updated'), (1005, 'inserted')
    ON CONFLICT (n) DO UPDATE SET note = excluded.note;
SELECT n, note, id = :id_of_5 AS kept FROM orders WHERE n = 5;
SELECT * FROM judge('orders');

-- MERGE
MERGE INTO orders AS o USING (VALUES (1005), (1006)) AS new (n) ON o.n = new.n
    WHEN MATCHED THEN UPDATE SET note = 'merged'
    WHEN NOT MATCHED THEN INSERT (n) VALUES (new.n);
SELECT n, note FROM orders WHERE n IN (1005, 1006) ORDER BY n;
SELECT * FROM judge('orders');

-- RETURNING gives the ID that was stored
INSERT INTO orders (n) VALUES (1007) RETURNING id AS returned \gset
SELECT n FROM orders WHERE id = :returned;
WITH made AS (INSERT INTO orders (n) VALUES (1008), (1009) RETURNING id, n)
SELECT n, id > :returned AS later FROM made ORDER BY n;

-- prepared statements, more often than it takes for a generic plan
PREPARE add_order (int) AS INSERT INTO orders (n) VALUES ($1);
EXECUTE add_order(1010);
EXECUTE add_order(1011);
EXECUTE add_order(1012);
EXECUTE add_order(1013);
EXECUTE add_order(1014);
EXECUTE add_order(1015);
EXECUTE add_order(1016);
SELECT generic_plans > 0 AS generic FROM pg_prepared_statements WHERE name = 'add_order';
SELECT * FROM judge('orders');

-- PL/pgSQL, also where rows are rolled back
DO $$
BEGIN
    FOR i IN 1017 .. 1026 LOOP
        BEGIN
            INSERT INTO orders (n) VALUES (i);
            IF i % 2 = 0 THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            INSERT INTO orders (n) VALUES (i);
        END;
    END LOOP;
END $$;
SELECT * FROM judge('orders');

-- new IDs for rows that are there
BEGIN;
UPDATE orders SET id = DEFAULT WHERE n <= 10;
SELECT count(DISTINCT id) FROM orders;
ROLLBACK;

-- a new column of a full table
ALTER TABLE orders ADD COLUMN public_id bigint DEFAULT snowflake_nextval();
SELECT count(*) = count(DISTINCT public_id) AS "distinct" FROM orders;

-- partitions
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)
    PARTITION BY HASH (id);
CREATE TABLE events_0 PARTITION OF events FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE events_1 PARTITION OF events FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE events_2 PARTITION OF events FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO events (n) SELECT n FROM generate_series(1, 300) AS n ORDER BY n;
COPY events (n) FROM stdin;
301
302
303
\.
SELECT * FROM judge('events');
SELECT count(DISTINCT tableoid) AS partitions FROM events;
MERGE INTO events AS e USING generate_series(301, 310) AS new (n) ON e.n = new.n
    WHEN NOT MATCHED THEN INSERT (n) VALUES (new.n);
SELECT rows, "distinct", positive FROM judge('events');

-- parallel workers draw IDs: the leader takes no part here
CREATE FUNCTION drawn_by() RETURNS int LANGUAGE plpgsql VOLATILE PARALLEL SAFE
    AS 'BEGIN RETURN pg_backend_pid(); END';
CREATE TABLE source AS SELECT n FROM generate_series(1, 20000) AS n;
ANALYZE source;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF, VERBOSE)
    CREATE TABLE made AS SELECT snowflake_nextval() AS id, n, drawn_by() AS pid FROM source;
CREATE TABLE made AS SELECT snowflake_nextval() AS id, n, drawn_by() AS pid FROM source;
SELECT rows, "distinct", positive FROM judge('made');
SELECT bool_and(pid <> pg_backend_pid()) AS by_workers FROM made;
-- each of the workers drew in increasing order
SELECT bool_and(id > before) AS increasing
    FROM (SELECT id, lag(id) OVER (PARTITION BY pid ORDER BY ctid) AS before FROM made) AS drawn;
SELECT bool_and(snowflake_nextval() > id) AS later FROM (SELECT max(id) AS id FROM made) AS last;
RESET parallel_leader_participation;

-- READ ONLY transactions
BEGIN READ ONLY;
SELECT snowflake_nextval() > 0 AS drawn;
COMMIT;

--
-- What an ID says
--

SELECT clock_timestamp() AS before \gset
SELECT snowflake_nextval() AS id \gset
SELECT clock_timestamp() AS after \gset
SELECT snowflake_timestamp(:id) BETWEEN date_trunc('milliseconds', :'before'::timestamptz)
                                AND :'after' AS in_time,
       snowflake_machine_id(:id) IN
           (SELECT machine_id FROM snowflake_lease_status WHERE generator = 'default' AND mine)
           AS on_a_lease;

--
-- snowflake_nextvals
--

SELECT count(*) FROM snowflake_nextvals(0);
SELECT count(*), bool_and(id > 0) AS positive FROM snowflake_nextvals(1) AS id;
SELECT * FROM snowflake_nextvals(NULL);
SELECT snowflake_nextvals(-1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_nextvals(-2147483648);

-- ascending in the order in which they come, over many milliseconds
SELECT count(*), count(DISTINCT id) AS "distinct", bool_and(id > before) AS ascending,
       count(DISTINCT snowflake_timestamp(id)) > 1 AS milliseconds
FROM (SELECT id, lag(id) OVER (ORDER BY place) AS before
      FROM snowflake_nextvals(20000) WITH ORDINALITY AS v (id, place)) AS drawn;

-- what a LIMIT cuts off is not drawn, and the next one is greater
SELECT max(id) AS last FROM (SELECT snowflake_nextvals(2147483647) AS id LIMIT 3) AS drawn \gset
SELECT snowflake_nextval() > :last AS later;

-- two at a time in one query
SELECT count(*), count(DISTINCT id) AS "distinct"
FROM (SELECT unnest(ARRAY[a, b]) AS id
      FROM (SELECT snowflake_nextvals(1000) AS a, snowflake_nextvals(1000) AS b) AS pairs) AS drawn;

--
-- snowflake_currval
--

\c -
SELECT snowflake_currval();
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_nextval() AS id \gset
SELECT snowflake_currval() = :id AS is_last, snowflake_currval() = :id AS again;
SELECT max(id) AS id FROM snowflake_nextvals(10) AS id \gset
SELECT snowflake_currval() = :id AS is_last;

-- like a sequence's, it does not roll back
BEGIN;
SELECT snowflake_nextval() AS id \gset
ROLLBACK;
SELECT snowflake_currval() = :id AS is_last;

DISCARD PLANS;
DISCARD TEMP;
SELECT snowflake_currval() = :id AS is_last;
DISCARD SEQUENCES;
SELECT snowflake_currval();
SELECT snowflake_nextval() > :id AS later, snowflake_currval() > :id AS known;
DISCARD ALL;
SELECT snowflake_currval();
SELECT snowflake_nextval() > :id AS later;

--
-- The first ID of all
--

DROP TABLE orders, events, made;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;

-- may be a worker's
CREATE TABLE made AS SELECT snowflake_nextval() AS id, n FROM source;
SELECT rows, "distinct", positive FROM judge('made');
DROP TABLE made;

-- but not in the transaction that makes the extension, where the session has to claim
BEGIN;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SAVEPOINT nothing_drawn;
CREATE TABLE made AS SELECT snowflake_nextval() AS id, n FROM source;
ROLLBACK TO nothing_drawn;
SELECT snowflake_nextval() > 0 AS drawn;
CREATE TABLE made AS SELECT snowflake_nextval() AS id, n FROM source;
SELECT rows, "distinct", positive FROM judge('made');
COMMIT;

DROP TABLE made, source;
DROP FUNCTION judge, drawn_by;
