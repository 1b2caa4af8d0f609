-- Named generators: layouts of their own, leases of their own, sequences of their own.

-- What a failing statement reports, without what differs from run to run.
\set VERBOSITY default

SELECT snowflake_create_generator('web', 'js_safe');
SELECT snowflake_create_generator('slow', 'epoch=2026-01-01T00:00:00Z unit=s fields=t33,m8,s12');
SELECT snowflake_create_generator('tens', 'epoch=2026-01-01T00:00:00Z unit=10ms fields=t40,s8,m10');
SELECT name, layout FROM snowflake_generators ORDER BY name COLLATE "C";

-- IDs of each are its own: of its layout, increasing, distinct
CREATE TABLE page (id bigint PRIMARY KEY DEFAULT snowflake_nextval('web'), url text);
INSERT INTO page (url) SELECT 'page ' || n FROM generate_series(1, 3000) n;
SELECT count(DISTINCT id), bool_and(id BETWEEN 0 AND 9007199254740991) AS fits,
       bool_and(snowflake_timestamp(id, 'js_safe')
                BETWEEN now() - interval '1 min' AND clock_timestamp()) AS shows_the_time
FROM page;

SELECT count(DISTINCT id), bool_and(id > before) AS increasing,
       bool_and(snowflake_timestamp(id, 'epoch=2026-01-01T00:00:00Z unit=s fields=t33,m8,s12')
                BETWEEN date_trunc('second', now()) AND clock_timestamp()) AS shows_the_time
FROM (SELECT id, lag(id, 1, 0) OVER (ORDER BY n) AS before
      FROM snowflake_nextvals(6000, 'slow') WITH ORDINALITY AS d(id, n)) AS drawn;

SELECT count(DISTINCT id), bool_and(id > before) AS increasing
FROM (SELECT id, lag(id, 1, 0) OVER (ORDER BY n) AS before
      FROM snowflake_nextvals(600, 'tens') WITH ORDINALITY AS d(id, n)) AS drawn;

-- the current value is that of each generator
SELECT snowflake_currval('web') = max(id) AS web, snowflake_currval('slow') <> max(id) AS slow
FROM page;
SELECT snowflake_nextval() > 0 AS built_in, snowflake_nextval('web') > 0 AS web,
       snowflake_nextval('default') > snowflake_currval() - 1 AS by_name;
SELECT snowflake_currval('tens') > 0 AS tens;

-- several in one statement, in turn
SELECT count(DISTINCT a), count(DISTINCT b), bool_and(a > pa AND b > pb) AS increasing
FROM (SELECT a, b, lag(a, 1, 0) OVER w AS pa, lag(b, 1, 0) OVER w AS pb
      FROM (SELECT n, snowflake_nextval() AS a, snowflake_nextval('web') AS b
            FROM generate_series(1, 2000) n OFFSET 0) AS pair
      WINDOW w AS (ORDER BY n)) AS drawn;

-- leases are apart
SELECT generator, count(*) > 0 AS leased, count(DISTINCT layout) AS layouts
FROM snowflake_lease WHERE generator IN ('web', 'slow', 'tens') GROUP BY generator ORDER BY 1;
SELECT name, machine_ids > 0 AS held, issued > 0 AS issued FROM snowflake_generators
WHERE name IN ('web', 'slow', 'tens') ORDER BY name;

-- names and layouts that cannot be
SELECT snowflake_create_generator('web', 'default');
SELECT snowflake_create_generator('default', 'twitter');
SELECT snowflake_create_generator('', 'default');
SELECT snowflake_create_generator(repeat('x', 64), 'default');
SELECT snowflake_create_generator('pixels', 'mastodon');
SELECT snowflake_create_generator('pixels', 'epoch=2026-01-01T00:00:00Z unit=ms fields=m10,t41,s12');
SELECT snowflake_create_generator('pixels', 'fields=t41,m10');
SELECT snowflake_create_generator('pixels', 'no such layout');
SELECT snowflake_nextval('pixels');
SELECT snowflake_nextval(''), snowflake_nextvals(1, 'pixels');
SELECT snowflake_currval('pixels');
SELECT snowflake_nextval(NULL) IS NULL AS null_gives_null;

-- one that a default uses is not dropped: of a column, in an expression, of a domain
SELECT snowflake_drop_generator('web');
ALTER TABLE page ALTER id SET DEFAULT 1 + snowflake_nextval('web');
SELECT snowflake_drop_generator('web');
ALTER TABLE page ALTER id DROP DEFAULT;
CREATE DOMAIN page_id AS bigint DEFAULT snowflake_nextval('web');
SELECT snowflake_drop_generator('web');
DROP DOMAIN page_id;
CREATE TABLE other (id bigint DEFAULT snowflake_nextval('slow'));
SELECT snowflake_drop_generator('web');
SELECT snowflake_nextval('web');
SELECT snowflake_drop_generator('web');
SELECT snowflake_drop_generator('default');
DROP TABLE other;

-- usable in the transaction that makes it; gone if that is rolled back
BEGIN;
SELECT snowflake_create_generator('brief', 'epoch=2026-01-01T00:00:00Z unit=s fields=t33,m8,s12');
CREATE TABLE brief (id bigint DEFAULT snowflake_nextval('brief'));
INSERT INTO brief DEFAULT VALUES;
INSERT INTO brief DEFAULT VALUES;
SELECT count(DISTINCT id) FROM brief;
ROLLBACK;
SELECT snowflake_nextval('brief');
SELECT count(*) AS leases_left FROM snowflake_lease WHERE generator = 'brief';
-- and free to be made again with another layout
BEGIN;
SELECT snowflake_create_generator('brief', 'twitter');
SAVEPOINT inner_one;
SELECT snowflake_nextval('brief') > 0 AS drawn;
ROLLBACK TO inner_one;
SELECT snowflake_nextval('brief') > 0 AS drawn;
COMMIT;
SELECT snowflake_nextval('brief') > 0 AS drawn;

-- dropped and made again under another layout: sessions notice
SELECT snowflake_drop_generator('brief');
SELECT snowflake_create_generator('brief', 'js_safe');
SELECT snowflake_nextval('brief') <= 9007199254740991 AS of_the_new_layout;

-- who may
CREATE ROLE snowflake_guest;
SET ROLE snowflake_guest;
SELECT snowflake_nextval('slow') > 0 AS may_draw;
SELECT snowflake_create_generator('mine', 'default');
SELECT snowflake_drop_generator('slow');
DELETE FROM snowflake_generator;
RESET ROLE;
DROP ROLE snowflake_guest;

DROP TABLE page;
SELECT snowflake_drop_generator('slow'), snowflake_drop_generator('tens'),
       snowflake_drop_generator('brief');
SELECT count(*) AS generators FROM snowflake_generator;
