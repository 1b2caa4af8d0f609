/*
 * Named generators: ID spaces of their own. The built-in one, default, is not in
 * the table. A layout never changes once it is made.
 */
CREATE TABLE @extschema@.snowflake_generator (
    name    text NOT NULL PRIMARY KEY CHECK (name <> '' AND name <> 'default' AND octet_length(name) < 64),
    layout  text NOT NULL
) USING heap;
COMMENT ON TABLE @extschema@.snowflake_generator IS
    'named generators; written only by snowflake_create_generator() and snowflake_drop_generator()';
COMMENT ON COLUMN @extschema@.snowflake_generator.name IS 'name of the generator';
COMMENT ON COLUMN @extschema@.snowflake_generator.layout IS 'layout of its IDs, spelled out';

SELECT pg_extension_config_dump('@extschema@.snowflake_generator', '');

/*
 * A generator's leases: which server and database may use which machine ID.
 * The primary key is what says no to a second holder.
 */
CREATE TABLE @extschema@.snowflake_lease (
    generator   text NOT NULL,
    machine_id  int NOT NULL CHECK (machine_id >= 0),
    layout      text NOT NULL,
    horizon     bigint NOT NULL,
    instance    bigint,
    database    oid,
    holder      text NOT NULL,
    claimed_at  timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (generator, machine_id)
) USING heap;
COMMENT ON TABLE @extschema@.snowflake_lease IS
    'leases of machine IDs; written only by snowflake''s keeper';
COMMENT ON COLUMN @extschema@.snowflake_lease.generator IS 'name of the generator';
COMMENT ON COLUMN @extschema@.snowflake_lease.machine_id IS 'the machine ID leased';
COMMENT ON COLUMN @extschema@.snowflake_lease.layout IS 'layout of the generator''s IDs';
COMMENT ON COLUMN @extschema@.snowflake_lease.horizon IS
    'no ID of this machine ID has been or may be issued at or past this ID time; never goes down';
COMMENT ON COLUMN @extschema@.snowflake_lease.instance IS
    'number of the running server that holds the lease; null if released';
COMMENT ON COLUMN @extschema@.snowflake_lease.database IS
    'OID of the database that the lease is for; 0 if for the whole server';
COMMENT ON COLUMN @extschema@.snowflake_lease.holder IS 'the holder, for people';
COMMENT ON COLUMN @extschema@.snowflake_lease.claimed_at IS 'when the holder claimed it';
COMMENT ON COLUMN @extschema@.snowflake_lease.renewed_at IS 'when the holder last renewed it';
COMMENT ON COLUMN @extschema@.snowflake_lease.expires_at IS
    'by the registry''s clock, when another server may claim it';

-- Horizons travel with a dump. An instance number in it never matches a running server's.
SELECT pg_extension_config_dump('@extschema@.snowflake_lease', '');
