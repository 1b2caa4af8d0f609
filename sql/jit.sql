-- Functions that are called from compiled expressions, and inlined into them where
-- PostgreSQL does so, are the same functions. Without LLVM this is one more plain run.
SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
SET max_parallel_workers_per_gather = 0;

SELECT count(DISTINCT id) AS ids, bool_and(id > 0) AS positive
FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 1000)) AS drawn;
SELECT count(DISTINCT id) AS ids
FROM (SELECT snowflake_nextval('default') AS id FROM generate_series(1, 1000)) AS drawn;

SELECT bool_and(id = snowflake_make(snowflake_timestamp(id), snowflake_machine_id(id),
                                    snowflake_sequence(id))) AS back_again,
       bool_and(snowflake_parse(id)
                = ROW (snowflake_timestamp(id), snowflake_machine_id(id), snowflake_sequence(id)))
           AS parsed,
       bool_and(id = snowflake_from_friendly(snowflake_friendly(id))) AS friendly,
       bool_and(id = snowflake_from_base62(snowflake_to_base62(id))) AS base62,
       bool_and(id = snowflake_from_base36(snowflake_to_base36(id))) AS base36,
       bool_and(id BETWEEN snowflake_min_id(snowflake_timestamp(id))
                       AND snowflake_max_id(snowflake_timestamp(id))) AS between_bounds,
       bool_and(id = snowflake_make(snowflake_timestamp(id, layout), snowflake_machine_id(id, layout),
                                    snowflake_sequence(id, layout), layout)) AS with_layout
FROM (SELECT 120858081176326146 + i * 7919 AS id,
             (ARRAY['default', 'twitter', 'discord', 'cosid'])[i % 4 + 1] AS layout
      FROM generate_series(0, 999) AS i) AS ids;

-- errors leave compiled code as they leave any other
SELECT snowflake_parse(i - 1) FROM generate_series(0, 1) AS i;
SELECT snowflake_timestamp(i, 'no such layout') FROM generate_series(0, 1) AS i;
SELECT count(snowflake_nextval()) FROM generate_series(1, 10);
