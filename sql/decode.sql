-- IDs to their fields and back.
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
\pset null '(null)'

-- Known answers from other systems, both ways.
\set known `cat "$PG_ABS_SRCDIR/test/vectors/known_ids.tsv"`
CREATE TEMP TABLE known AS
    SELECT col[1] AS layout, col[2]::bigint AS id, col[3]::timestamptz AS "timestamp",
           col[4]::int AS machine_id, col[5]::int AS sequence
    FROM regexp_split_to_table(:'known', '\n') AS line,
         regexp_split_to_array(line, '\t') AS col
    WHERE line !~ '^(#|$)';
SELECT k.layout, k.id, p."timestamp", p.machine_id, p.sequence
    FROM known k, snowflake_parse(k.id, k.layout) p
    ORDER BY k.layout, k.id;
SELECT count(*) AS known,
       count(*) FILTER (WHERE (k."timestamp", k.machine_id, k.sequence)
                              = (p."timestamp", p.machine_id, p.sequence)) AS parsed,
       count(*) FILTER (WHERE snowflake_make(k."timestamp", k.machine_id, k.sequence, k.layout)
                              = k.id) AS made,
       count(*) FILTER (WHERE (snowflake_timestamp(k.id, k.layout),
                               snowflake_machine_id(k.id, k.layout),
                               snowflake_sequence(k.id, k.layout))
                              = (k."timestamp", k.machine_id, k.sequence)) AS by_field,
       count(*) FILTER (WHERE k.id BETWEEN snowflake_min_id(k."timestamp", k.layout)
                                       AND snowflake_max_id(k."timestamp", k.layout)) AS in_range
    FROM known k, snowflake_parse(k.id, k.layout) p;

-- The built-in layout, with and without its name.
SELECT snowflake_make('2026-01-01 00:00:00.001+00', 1, 2) AS id;
SELECT * FROM snowflake_parse(4198402);
SELECT * FROM snowflake_parse(4198402, 'default');
SELECT snowflake_timestamp(4198402), snowflake_machine_id(4198402), snowflake_sequence(4198402);
SELECT (snowflake_parse(0)).*, (snowflake_parse(9223372036854775807)).*;
SELECT snowflake_make('2095-09-07 15:47:35.551+00', 1023, 4095);

-- A time is rounded down to the unit, and never up into the next.
SELECT t, snowflake_timestamp(snowflake_make(t, 0, 0)) AS ms,
       snowflake_timestamp(snowflake_make(t, 0, 0, 'sonyflake'), 'sonyflake') AS "10ms",
       snowflake_timestamp(snowflake_make(t, 0, 0, 'cosid_second'), 'cosid_second') AS s
    FROM (VALUES ('2026-06-01 12:00:00.123456+00'::timestamptz), ('2026-06-01 12:00:00.999999+00'),
                 ('2026-06-01 12:00:01+00')) v(t);

-- First and last ID of a unit of time.
SELECT snowflake_min_id(t) AS min, snowflake_max_id(t) AS max,
       snowflake_parse(snowflake_min_id(t)) AS min_fields,
       snowflake_parse(snowflake_max_id(t)) AS max_fields,
       snowflake_max_id(t) + 1 = snowflake_min_id(t + interval '1 ms') AS adjacent
    FROM (SELECT '2026-06-01 12:00:00.1239+00'::timestamptz) v(t);
SELECT snowflake_min_id(t, 'cosid_second') AS min, snowflake_max_id(t, 'cosid_second') AS max
    FROM (SELECT '2026-06-01 12:00:00.9+00'::timestamptz) v(t);
SELECT snowflake_min_id('2026-01-01 00:00:00+00'), snowflake_max_id('2095-09-07 15:47:35.551999+00');

-- Layouts with the fields in another order, and without machine IDs.
SELECT id, p.*
    FROM (VALUES ('epoch=2026-01-01T00:00:00Z unit=ms fields=m10,s12,t41')) v(layout),
         snowflake_make('2026-06-01 12:00:00.123+00', 5, 6, layout) id,
         snowflake_parse(id, layout) p;
SELECT * FROM snowflake_parse(110000000000000001, 'mastodon');

-- A layout that is not constant is looked up for each row.
SELECT layout, snowflake_timestamp(1541815603606036480, layout)
    FROM unnest(ARRAY['twitter', 'discord', 'twitter', 'cosid', 'cosid',
                      'epoch=2010-11-04T01:42:54.657Z unit=ms fields=t41,m10,s12']) layout;

-- Where timestamptz ends before the layout does.
SELECT snowflake_id_time(0, 'twitter'), snowflake_id_time(1500, 'cosid_second'),
       snowflake_id_time(-1, 'default');
SELECT snowflake_id_time(9223372036854775807, layout),
       snowflake_max_id('294276-12-31 23:59:59+00', layout) AS last_day
    FROM (VALUES ('epoch=2026-01-01T00:00:00Z unit=s fields=t63,m0,s0')) v(layout);

-- NULL in, NULL out.
SELECT snowflake_parse(NULL), snowflake_timestamp(NULL), snowflake_machine_id(NULL),
       snowflake_sequence(NULL), snowflake_min_id(NULL), snowflake_max_id(NULL);
SELECT snowflake_parse(1, NULL), snowflake_timestamp(1, NULL), snowflake_make(NULL, 1, 1),
       snowflake_make('2026-01-01', NULL, 1), snowflake_make('2026-01-01', 1, NULL),
       snowflake_make('2026-01-01', 1, 1, NULL), snowflake_id_time(NULL, 'default');

-- What a planner may assume of these functions.
SELECT p.proname, p.provolatile, p.proisstrict, p.proparallel, count(*)
    FROM pg_proc p
    WHERE p.proname ~ ('^snowflake_(parse|timestamp|machine_id|sequence|make|min_id|max_id|id_time'
                       || '|friendly|from_friendly|(to|from)_base(62|36)|describe|layouts)$')
    GROUP BY 1, 2, 3, 4
    ORDER BY 1;

-- So an ID's time can be indexed, generated, partitioned by.
CREATE TEMP TABLE event (
    id bigint PRIMARY KEY,
    made timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
CREATE INDEX ON event (snowflake_machine_id(id));
INSERT INTO event SELECT snowflake_make('2026-06-01 12:00:00+00'::timestamptz + n * interval '1 s', n % 8, 0)
    FROM generate_series(0, 99) n;
SELECT count(*), min(made), max(made) FROM event
    WHERE id >= snowflake_min_id('2026-06-01 12:00:10+00')
      AND id < snowflake_min_id('2026-06-01 12:00:20+00');
