-- Bad input: an error with SQLSTATE, detail and hint, never a wrong value.
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
\pset tuples_only
\pset format unaligned

-- Runs each statement and shows it and its error.
CREATE FUNCTION pg_temp.fail(VARIADIC statements text[]) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    statement text;
    result text;
    detail text;
    hint text;
BEGIN
    FOREACH statement IN ARRAY statements LOOP
        RETURN NEXT statement;
        BEGIN
            EXECUTE 'SELECT ' || statement INTO result;
            RETURN NEXT '    NO ERROR: ' || coalesce(result, 'NULL');
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
            RETURN NEXT format('    %s: %s', sqlstate, sqlerrm);
            IF detail <> '' THEN
                RETURN NEXT '    DETAIL: ' || detail;
            END IF;
            IF hint <> '' THEN
                RETURN NEXT '    HINT: ' || hint;
            END IF;
        END;
    END LOOP;
END $$;

-- IDs that the layout cannot have.
SELECT pg_temp.fail(
    'snowflake_parse(-1)',
    'snowflake_parse(-9223372036854775808)',
    'snowflake_timestamp(-1)',
    'snowflake_machine_id(-1)',
    'snowflake_sequence(-1)',
    'snowflake_friendly(-1)',
    'snowflake_describe(-1)',
    'snowflake_to_base62(-1)',
    'snowflake_to_base36(-9223372036854775808)',
    'snowflake_parse(9007199254740992, ''js_safe'')',
    'snowflake_timestamp(9007199254740992, ''js_safe'')',
    'snowflake_machine_id(-5, ''js_safe'')',
    'snowflake_sequence(9223372036854775807, ''js_safe'')',
    'snowflake_friendly(9223372036854775807, ''UTC'', ''js_safe'')',
    'snowflake_describe(9007199254740992, ''js_safe'')');

-- Times that timestamptz cannot hold.
SELECT pg_temp.fail(
    'snowflake_parse(9223372036854775807, ''epoch=2026-01-01T00:00:00Z unit=s fields=t63,m0,s0'')',
    'snowflake_timestamp(9223372036854775807, ''epoch=2026-01-01T00:00:00Z unit=ms fields=t63,m0,s0'')',
    'snowflake_friendly(9223372036854775807, ''UTC'', ''epoch=9999-01-01T00:00:00Z unit=10ms fields=t63,m0,s0'')',
    'snowflake_describe(9223372036854775807, ''epoch=2026-01-01T00:00:00Z unit=s fields=t63,m0,s0'')',
    'snowflake_id_time(-9223372036854775808, ''default'')',
    'snowflake_make(''294276-12-31 23:59:59.999999+00'', 0, 0, ''epoch=2026-01-01T00:00:00Z unit=s fields=t42,m10,s11'')');

-- Times outside the layout.
SELECT pg_temp.fail(
    'snowflake_make(''2025-12-31 23:59:59.999999+00'', 0, 0)',
    'snowflake_make(''2095-09-07 15:47:35.552+00'', 0, 0)',
    'snowflake_make(''4713-01-01 00:00:00+00 BC'', 0, 0)',
    'snowflake_make(''294276-12-31 23:59:59.999999+00'', 0, 0)',
    'snowflake_make(''infinity'', 0, 0)',
    'snowflake_make(''-infinity'', 0, 0, ''twitter'')',
    'snowflake_make(''2019-12-24 15:59:59.999+00'', 0, 0, ''cosid_second'')',
    'snowflake_make(''2088-01-11 19:14:08+00'', 0, 0, ''cosid_second'')',
    'snowflake_make(''2014-08-31 23:59:59.9999+00'', 0, 0, ''sonyflake'')',
    'snowflake_min_id(''2025-12-31 23:59:59.999+00'')',
    'snowflake_min_id(''infinity'')',
    'snowflake_min_id(''2188-11-16 03:28:58.88+00'', ''sonyflake'')',
    'snowflake_max_id(''-infinity'')',
    'snowflake_max_id(''2095-09-07 15:47:35.552+00'')',
    'snowflake_max_id(''2010-11-04 01:42:54.656+00'', ''twitter'')');

-- Machine IDs and sequences outside the layout.
SELECT pg_temp.fail(
    'snowflake_make(''2026-06-01'', -1, 0)',
    'snowflake_make(''2026-06-01'', 1024, 0)',
    'snowflake_make(''2026-06-01'', 2147483647, 0)',
    'snowflake_make(''2026-06-01'', 0, -2147483648)',
    'snowflake_make(''2026-06-01'', 0, 4096)',
    'snowflake_make(''2026-06-01'', 8, 0, ''js_safe'')',
    'snowflake_make(''2026-06-01'', 0, 512, ''js_safe'')',
    'snowflake_make(''2026-06-01'', 1, 0, ''mastodon'')');

-- Layouts.
SELECT pg_temp.fail(
    'snowflake_parse(1, '''')',
    'snowflake_parse(1, ''Twitter'')',
    'snowflake_timestamp(1, ''no_such_layout'')',
    'snowflake_machine_id(1, ''epoch=2024-01-01T00:00:00Z unit=us fields=t41,m10,s12'')',
    'snowflake_sequence(1, ''epoch=2024-01-01 unit=ms fields=t41,m10,s12'')',
    'snowflake_make(now(), 1, 1, ''epoch=2024-01-01T00:00:00Z unit=ms fields=t41,x10,s12'')',
    'snowflake_min_id(now(), ''epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10'')',
    'snowflake_max_id(now(), ''epoch=2024-01-01T00:00:00Z unit=ms fields=t42,m10,s12'')',
    'snowflake_friendly(1, ''UTC'', ''unit=ms fields=t41,m10,s12'')',
    'snowflake_from_friendly(''20260101000000000-0-0'', ''UTC'', ''epoch=2010-11-04T01:42:54.657Z unit=s fields=t31,m10,s22'')',
    'snowflake_describe(1, ''epoch=2024-01-01T00:00:00Z unit=ms unit=s fields=t41,m10,s12'')',
    'snowflake_id_time(1, ''epoch=2024-01-01T00:00:00Z colour=red unit=ms fields=t41,m10,s12'')',
    'snowflake_parse(1, ''epoch=2024-01-01T00:00:00Z unit=ms fields=t0,m10,s12'')',
    'snowflake_parse(1, ''epoch=2024-01-01T00:00:00Z unit=ms fields=t10,m32,s12'')');

-- Friendly IDs.
SELECT pg_temp.fail(
    'snowflake_from_friendly('''')',
    'snowflake_from_friendly(''20260623131730192'')',
    'snowflake_from_friendly(''20260623131730192--0'')',
    'snowflake_from_friendly(''20260623131730192-1-'')',
    'snowflake_from_friendly(''20260623131730192-1-0-0'')',
    'snowflake_from_friendly(''20260623131730192-+1-0'')',
    'snowflake_from_friendly(''20260623131730192-1--1'')',
    'snowflake_from_friendly('' 20260623131730192-1-0'')',
    'snowflake_from_friendly(''20260623131730192-01-0'')',
    'snowflake_from_friendly(''20260623131730-1-0'')',
    'snowflake_from_friendly(''20260631131730192-1-0'')',
    'snowflake_from_friendly(''20260623241730192-1-0'')',
    'snowflake_from_friendly(''20260623131760192-1-0'')',
    'snowflake_from_friendly(''20260623131730192-1024-0'')',
    'snowflake_from_friendly(''20260623131730192-1-4096'')',
    'snowflake_from_friendly(''20260623131730192-99999999999999999999-0'')',
    'snowflake_from_friendly(''20251231235959999-0-0'')',
    'snowflake_from_friendly(''20950907154735552-0-0'')',
    'snowflake_from_friendly(''99991231235959999-0-0'')',
    'snowflake_from_friendly(''00000101000000000-0-0'')',
    'snowflake_from_friendly(''120260623131730192-1-0'')',
    'snowflake_friendly(9223372036854775807, ''UTC'', ''epoch=2026-01-01T00:00:00Z unit=s fields=t40,m11,s12'')',
    'snowflake_from_friendly(''20260623131730192-1-0'', ''UTC'', ''sonyflake'')',
    'snowflake_from_friendly(''20260623131730192-1-0'', ''UTC'', ''cosid_second'')');

-- Zones and their clock changes.
SELECT pg_temp.fail(
    'snowflake_friendly(1, '''')',
    'snowflake_friendly(1, ''Mars/Olympus_Mons'')',
    'snowflake_friendly(1, ''twitter'')',
    'snowflake_from_friendly(''20260101000000000-0-0'', ''Europe/Atlantis'')',
    'snowflake_friendly(1, repeat(''x'', 300))',
    'snowflake_from_friendly(''20261101013000000-0-0'', ''America/New_York'')',
    'snowflake_from_friendly(''20260308023000000-0-0'', ''America/New_York'')',
    'snowflake_from_friendly(''20260101000000000-0-0'', ''Asia/Tokyo'')');

-- Base 62 and base 36.
SELECT pg_temp.fail(
    'snowflake_from_base62('''')',
    'snowflake_from_base62(''-1'')',
    'snowflake_from_base62(''+1'')',
    'snowflake_from_base62('' 1'')',
    'snowflake_from_base62(''AzL8n0Y58m8'')',
    'snowflake_from_base62(''zzzzzzzzzzz'')',
    'snowflake_from_base62(''000000000001'')',
    'snowflake_from_base36('''')',
    'snowflake_from_base36(''z'')',
    'snowflake_from_base36(''1_0'')',
    'snowflake_from_base36(''1Y2P0IJ32E8E8'')',
    'snowflake_from_base36(''00000000000001'')');

-- A character of several bytes is shown whole, and counted once.
SELECT getdatabaseencoding() <> 'UTF8' OR error ~ format('DETAIL: "%s" is not a digit', u_umlaut)
    FROM convert_from('\xc3bc', 'UTF8') u_umlaut,
         pg_temp.fail(format('snowflake_from_base62(%L)', 'z' || u_umlaut || 'rich')) error
    WHERE error ~ 'DETAIL';
SELECT getdatabaseencoding() <> 'UTF8' OR error ~ 'Error at "unit=us", character 37:'
    FROM convert_from('\xc3bc', 'UTF8') u_umlaut,
         pg_temp.fail(format('snowflake_parse(1, %L)', 'fields=' || u_umlaut || ' epoch=2024-01-01T00:00:00Z unit=us')) error
    WHERE error ~ 'DETAIL';

-- An error leaves nothing behind: the same call site goes on with the next layout.
DO $$
DECLARE
    layout text;
BEGIN
    FOREACH layout IN ARRAY ARRAY['twitter', 'nonsense', 'twitter', 'discord'] LOOP
        BEGIN
            RAISE NOTICE '%: %', layout, snowflake_timestamp(0, layout);
        EXCEPTION WHEN undefined_object THEN
            RAISE NOTICE '%: %', layout, sqlerrm;
        END;
    END LOOP;
END $$;
