-- IDs as text and back.
SET timezone = 'America/New_York';
SET datestyle = 'ISO, YMD';
\pset null '(null)'

-- Known answers, both ways.
\set known `cat "$PG_ABS_SRCDIR/test/vectors/radix.tsv"`
CREATE TEMP TABLE known AS
    SELECT col[1]::int AS radix, col[2] AS text, nullif(col[3], '!')::bigint AS id
    FROM regexp_split_to_table(:'known', '\n') AS line,
         regexp_split_to_array(line, '\t') AS col
    WHERE line !~ '^(#|$)';
SELECT radix, text, id,
       CASE radix WHEN 62 THEN snowflake_from_base62(text) ELSE snowflake_from_base36(text) END = id AS read,
       ltrim(CASE radix WHEN 62 THEN snowflake_to_base62(id) ELSE snowflake_to_base36(id) END, '0')
           = ltrim(text, '0') AS written
    FROM known WHERE id IS NOT NULL;

SELECT snowflake_to_base62(id), snowflake_to_base36(id)
    FROM (VALUES (0), (1), (61), (62), (295913926632165376), (9223372036854775807)) v(id);

-- Texts come back, are of one width, and sort like the IDs.
CREATE TEMP TABLE ids AS
    SELECT id FROM (SELECT (random() * 2 ^ (n % 63))::bigint AS id FROM generate_series(1, 5000) n) x
    UNION SELECT 0 UNION SELECT 9223372036854775807;
SELECT count(*) FROM ids
    WHERE snowflake_from_base62(snowflake_to_base62(id)) <> id
       OR snowflake_from_base36(snowflake_to_base36(id)) <> id
       OR length(snowflake_to_base62(id)) <> 11 OR length(snowflake_to_base36(id)) <> 13;
SELECT count(*) FROM (
    SELECT rank() OVER (ORDER BY id) AS by_id,
           rank() OVER (ORDER BY snowflake_to_base62(id) COLLATE "C") AS by_base62,
           rank() OVER (ORDER BY snowflake_to_base36(id) COLLATE "C") AS by_base36
    FROM ids) ranks
    WHERE by_id <> by_base62 OR by_id <> by_base36;

-- The friendly form, in UTC whatever the session's time zone, or in any zone.
SELECT snowflake_friendly(198185268824510464, layout => 'cosid'),
       snowflake_friendly(198064472869310464, 'Asia/Shanghai', 'cosid'),
       snowflake_friendly(198064472869310464, 'UTC', 'cosid');
SELECT snowflake_from_friendly('20210623131730192-1-0', layout => 'cosid'),
       snowflake_from_friendly('20210623131730192-1-0', 'Asia/Shanghai', 'cosid');
SELECT snowflake_friendly(id), snowflake_from_friendly(snowflake_friendly(id)) = id AS same
    FROM (VALUES (0), (4198402), (9223372036854775807)) v(id);

-- As precise as the unit.
SELECT name, friendly, snowflake_from_friendly(friendly, 'Asia/Kathmandu', name) = id AS same
    FROM snowflake_layouts, snowflake_min_id('2024-06-01 12:34:56.789+00', name) id,
         snowflake_friendly(id, 'Asia/Kathmandu', name) friendly
    WHERE name IN ('twitter', 'sonyflake', 'cosid_second', 'mastodon');

-- Zones that the server knows: names in any case, POSIX rules. UTC has no rules at all.
SELECT zone, snowflake_friendly(0, zone)
    FROM unnest(ARRAY['utc', 'UTC', 'Etc/UTC', 'asia/tokyo', 'Asia/Kolkata', 'America/St_Johns',
                      'Pacific/Kiritimati', 'Pacific/Pago_Pago', 'EST5EDT', '<+03>-3']) zone;

-- Local times that a clock change makes ambiguous or skips, and those just beside them.
CREATE FUNCTION pg_temp.read(friendly text, zone text, layout text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_timestamp(snowflake_from_friendly(friendly, zone, layout), layout)
           AT TIME ZONE 'UTC';
EXCEPTION WHEN invalid_datetime_format THEN
    RETURN substring(sqlerrm FROM 'ambiguous|does not exist');
END $$;
SELECT zone, local, pg_temp.read(local || '-1-2', zone,
                                 'epoch=1970-01-01T00:00:00Z unit=ms fields=t43,m10,s10') AS utc
    FROM (VALUES
        ('America/New_York',    '20260308015959999'),
        ('America/New_York',    '20260308020000000'),
        ('America/New_York',    '20260308025959999'),
        ('America/New_York',    '20260308030000000'),
        ('America/New_York',    '20261101005959999'),
        ('America/New_York',    '20261101010000000'),
        ('America/New_York',    '20261101015959999'),
        ('America/New_York',    '20261101020000000'),
        ('Europe/London',       '20260329013000000'),
        ('Europe/London',       '20261025013000000'),
        ('Europe/Dublin',       '20261025013000000'),
        ('Australia/Lord_Howe', '20260405013000000'),
        ('Australia/Lord_Howe', '20260405012959999'),
        ('Australia/Lord_Howe', '20261004021500000'),
        ('Antarctica/Troll',    '20260329023000000'),
        ('America/Sao_Paulo',   '20181104003000000'),
        ('America/Sao_Paulo',   '20180217233000000'),
        ('Pacific/Apia',        '20111229235959999'),
        ('Pacific/Apia',        '20111230120000000'),
        ('Pacific/Apia',        '20111231000000000'),
        ('Asia/Kathmandu',      '19860101001000000'),
        ('Asia/Pyongyang',      '20150814234500000'),
        ('Asia/Pyongyang',      '20180504234500000')) v(zone, local);

/*
 * Random times of a century in awkward zones: each friendly ID comes back, or is
 * refused because another time looks the same there. What looks the same is
 * found without our own code, from the offsets of the hours around.
 */
SELECT setseed(0.5);
CREATE TEMP TABLE sample AS
    SELECT zone, layout, snowflake_min_id(t, layout) + 7 AS id
    FROM (SELECT zone, layout,
                 '1940-01-01 00:00:00+00'::timestamptz + random() * interval '36525 days' AS t
          FROM unnest(ARRAY['Africa/Casablanca', 'Africa/Monrovia', 'America/Caracas',
                            'America/Danmarkshavn', 'America/New_York', 'America/Sao_Paulo',
                            'America/St_Johns', 'Antarctica/Casey', 'Antarctica/Troll',
                            'Asia/Gaza', 'Asia/Kathmandu', 'Asia/Pyongyang', 'Asia/Singapore',
                            'Asia/Tehran', 'Australia/Lord_Howe', 'Europe/Dublin',
                            'Europe/London', 'Europe/Volgograd', 'Pacific/Apia',
                            'Pacific/Chatham', 'Pacific/Kwajalein']) zone,
               unnest(ARRAY['epoch=1940-01-01T00:00:00Z unit=ms fields=t42,m10,s11',
                            'epoch=1940-01-01T00:00:00Z unit=10ms fields=t39,m10,s11',
                            'epoch=1940-01-01T00:00:00Z unit=s fields=t32,m10,s11']) layout,
               generate_series(1, 50)) random_times;
-- and the hours around clock changes, which random times seldom meet
INSERT INTO sample
    SELECT DISTINCT zone, layout, snowflake_min_id(change + step * interval '10 minutes', layout) + 7
    FROM (SELECT DISTINCT zone, layout FROM sample) z,
         generate_series('1970-01-01 00:00:00+00'::timestamptz, '2026-12-31', '1 day') AS change,
         generate_series(-12, 12, 3) AS step
    WHERE layout LIKE '%unit=ms%'
      AND change AT TIME ZONE zone - (change - interval '1 day') AT TIME ZONE zone <> interval '1 day'
      AND extract(year FROM change)::int % 7 = 0;
CREATE FUNCTION pg_temp.back(friendly text, zone text, layout text) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_from_friendly(friendly, zone, layout);
EXCEPTION WHEN invalid_datetime_format THEN
    RETURN NULL;
END $$;
CREATE FUNCTION pg_temp.is_ambiguous(t timestamptz, zone text) RETURNS boolean
LANGUAGE sql AS $$
    SELECT count(DISTINCT other) > 1
    FROM (SELECT t + hour * interval '1 hour' FROM generate_series(-30, 30) hour) h(near),
         LATERAL (SELECT (t AT TIME ZONE zone
                          - (near AT TIME ZONE zone - near AT TIME ZONE 'UTC')) AT TIME ZONE 'UTC') o(other)
    WHERE other AT TIME ZONE zone = t AT TIME ZONE zone
$$;
SELECT count(DISTINCT id) > 3000 AS enough,
       count(*) FILTER (WHERE back IS NULL) > 20 AS some_are_ambiguous,
       count(*) FILTER (WHERE back <> id) AS wrong,
       count(*) FILTER (WHERE (back IS NULL)
                              <> pg_temp.is_ambiguous(snowflake_timestamp(id, layout), zone))
           AS refused_wrongly
    FROM (SELECT *, pg_temp.back(snowflake_friendly(id, zone, layout), zone, layout) AS back
          FROM sample) s;

-- NULL in, NULL out.
SELECT snowflake_friendly(NULL), snowflake_friendly(1, NULL), snowflake_from_friendly(NULL),
       snowflake_to_base62(NULL), snowflake_from_base62(NULL), snowflake_to_base36(NULL),
       snowflake_from_base36(NULL);
