-- Who may do what. Everyone may draw and read IDs and see the views; what is not listed here is as
-- PostgreSQL makes it: functions for everyone, tables for their owner.
--
-- An upgrade does not run this part, so that what an administrator granted or revoked stays.

GRANT SELECT ON @extschema@.snowflake_layouts TO PUBLIC;

GRANT SELECT ON @extschema@.snowflake_generator TO PUBLIC;
-- For the rows in a dump. A row that is there can not be changed so.
GRANT INSERT ON @extschema@.snowflake_generator TO @extowner@;

REVOKE EXECUTE ON FUNCTION
    @extschema@.snowflake_create_generator(text, text),
    @extschema@.snowflake_drop_generator(text)
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    @extschema@.snowflake_create_generator(text, text),
    @extschema@.snowflake_drop_generator(text)
TO @extowner@;
REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_skip_replicated() FROM PUBLIC;

GRANT SELECT ON @extschema@.snowflake_lease TO PUBLIC;
-- For the rows in a dump. A row that is there can not be changed so, and one for a machine ID
-- that is not leased can only keep it from being claimed.
GRANT INSERT ON @extschema@.snowflake_lease TO @extowner@;

REVOKE EXECUTE ON FUNCTION
    @extschema@.snowflake_store_generator(text, text),
    @extschema@.snowflake_erase_generator(text)
FROM PUBLIC;

REVOKE EXECUTE ON FUNCTION
    @extschema@.snowflake_claim_lease(text, text, bigint,
        oid, text, interval, bigint, bigint,
        int4multirange, int[]),
    @extschema@.snowflake_renew_lease(text, int, bigint,
        oid, interval, bigint),
    @extschema@.snowflake_resume_lease(text, int, bigint, bigint, bigint, oid, interval, bigint),
    @extschema@.snowflake_release_lease(text, int),
    @extschema@.snowflake_lease_outlook(text, int4multirange, bigint)
FROM PUBLIC;

GRANT SELECT ON @extschema@.snowflake_backends, @extschema@.snowflake_lease_status TO PUBLIC;

REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_stats_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.snowflake_stats_reset() TO @extowner@;

GRANT SELECT ON @extschema@.snowflake_generators, @extschema@.snowflake_stats TO PUBLIC;
