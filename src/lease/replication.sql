/*
 * A publication FOR ALL TABLES has these tables too. Leases of the registry that they come
 * from mean nothing in the subscriber's, and must not lower a horizon there; generators are
 * made in each database that uses them, and would meet there.
 */
CREATE OR REPLACE FUNCTION @extschema@.snowflake_skip_replicated() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $skip$ BEGIN RETURN NULL; END $skip$;
COMMENT ON FUNCTION @extschema@.snowflake_skip_replicated() IS
    'keeps what replication brings out of the tables of leases and generators';

CREATE OR REPLACE TRIGGER snowflake_skip_replicated
    BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.snowflake_lease
    FOR EACH ROW EXECUTE FUNCTION @extschema@.snowflake_skip_replicated();
ALTER TABLE @extschema@.snowflake_lease ENABLE REPLICA TRIGGER snowflake_skip_replicated;
CREATE OR REPLACE TRIGGER snowflake_skip_replicated
    BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.snowflake_generator
    FOR EACH ROW EXECUTE FUNCTION @extschema@.snowflake_skip_replicated();
ALTER TABLE @extschema@.snowflake_generator ENABLE REPLICA TRIGGER snowflake_skip_replicated;
