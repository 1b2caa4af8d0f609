-- The layouts that have a name, and specs of all others.
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
SET intervalstyle = 'postgres';

SELECT name, spec FROM snowflake_layouts;
SELECT name, epoch, last_timestamp, unit FROM snowflake_layouts;
SELECT name, timestamp_bits AS t, machine_id_bits AS m, sequence_bits AS s, max_id, can_generate
    FROM snowflake_layouts;
SELECT name, source FROM snowflake_layouts;

-- The view and the function say the same; a spec means the same as its name.
SELECT count(*) FROM (SELECT * FROM snowflake_layouts EXCEPT SELECT * FROM snowflake_layouts()) x;
SELECT name FROM snowflake_layouts
    WHERE snowflake_timestamp(max_id / 2, name) <> snowflake_timestamp(max_id / 2, spec)
       OR snowflake_machine_id(max_id / 2, name) <> snowflake_machine_id(max_id / 2, spec)
       OR snowflake_sequence(max_id / 2, name) <> snowflake_sequence(max_id / 2, spec);

-- The first and the last time of a layout have IDs.
SELECT name, snowflake_min_id(epoch, name) AS first,
       snowflake_max_id(last_timestamp, name) = max_id AS last_is_max
    FROM snowflake_layouts;

-- Anyone may look.
CREATE ROLE regress_snowflake_reader;
SET ROLE regress_snowflake_reader;
SELECT count(*) FROM snowflake_layouts;
SELECT snowflake_timestamp(0);
RESET ROLE;
DROP ROLE regress_snowflake_reader;

-- An ID for people. Its age changes from day to day.
\pset tuples_only
\pset format unaligned
SELECT regexp_replace(snowflake_describe(id, layout), '\(.* (ago|from now)\)', '(...)')
    FROM (VALUES (295913926632165376, 'cosid'),
                 (2959139266321, 'sonyflake'),
                 (110000000000000001, 'mastodon'),
                 (9007199254740991, 'js_safe'),
                 (180363646902239241,
                  'unit=s fields=t29,m21,s13 epoch=2016-09-20T00:00:00+08:00')) v(id, layout);
SELECT regexp_replace(snowflake_describe(0), '\(.* (ago|from now)\)', '(...)');
SELECT substring(snowflake_describe(snowflake_make(now() - interval '1 day 01:02:03', 1, 1)) FROM '\(.*\)');
SELECT substring(snowflake_describe(snowflake_make(now() + interval '90 minutes', 1, 1)) FROM '\(.*\)');
SELECT snowflake_describe(NULL) IS NULL;
