-- What the demo shows.
\pset footer off
\pset border 2
\pset linestyle unicode
SET timezone = 'UTC';

\echo
\echo 'The latest orders, and what their IDs say'
SELECT o.id, snowflake_friendly(o.id) AS friendly, p."timestamp", p.machine_id, p.sequence,
       c.name AS customer, o.quantity || ' x ' || product.name AS "order"
FROM (SELECT * FROM orders ORDER BY id DESC LIMIT 8) AS o
JOIN customers AS c ON c.id = o.customer_id
JOIN products AS product ON product.id = o.product_id
CROSS JOIN LATERAL snowflake_parse(o.id) AS p
ORDER BY o.id;

\echo 'The last of them in full'
\echo
\pset format unaligned
\pset tuples_only on
SELECT snowflake_describe(max(id)) FROM orders;
\pset tuples_only off
\pset format aligned
\echo

\echo 'All IDs of the shop, drawn by many sessions'
WITH ids AS (
    SELECT 'customers' AS "table", id, NULL::int AS session FROM customers
    UNION ALL SELECT 'products', id, NULL FROM products
    UNION ALL SELECT 'orders', id, NULL FROM orders
    UNION ALL SELECT 'events', id, session FROM events
)
SELECT coalesce("table", 'all tables') AS "table", count(*) AS ids,
       count(*) - count(DISTINCT id) AS duplicates,
       nullif(count(DISTINCT session), 0) AS sessions, min(id) AS first, max(id) AS last
FROM ids
GROUP BY ROLLUP ("table")
ORDER BY count(*);

\echo 'IDs drawn as fast as they come, by several sessions at once'
SELECT count(*) AS ids, count(*) - count(DISTINCT id) AS duplicates,
       count(*) FILTER (WHERE id <= before) AS "not increasing in their session",
       count(DISTINCT session) AS sessions,
       count(DISTINCT snowflake_machine_id(id)) AS "machine IDs",
       round(count(*) / extract(epoch FROM snowflake_timestamp(max(id))
                                           - snowflake_timestamp(min(id)))) AS "IDs per second"
FROM (SELECT id, session, lag(id) OVER (PARTITION BY session ORDER BY nth) AS before
      FROM drawn) AS d;

\echo 'The machine IDs held, and until when their IDs may be drawn'
SELECT generator, machine_id, holder, mine, free, horizon, expires_at FROM snowflake_lease_status
ORDER BY machine_id;
