# What roles without rights can do, and what they cannot: neither they nor the
# database's owner get code of theirs run by the keeper, which is a superuser.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use Test::More;

my $server = new_server('main', extension => 0, conf => <<'CONF');
max_worker_processes = 1
max_logical_replication_workers = 0
wal_level = replica
max_wal_senders = 1
max_parallel_workers_per_gather = 1
snowflake.lease_ttl = 1s
CONF
$server->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE visitor LOGIN');

# Rows and messages of statements, run by a role.
sub run_as
{
	my ($role, $database, $sql) = @_;
	local $ENV{PGUSER} = $role;
	# the owner's settings for the database are for the keeper to cope with, not for the test
	local $ENV{PGOPTIONS} = '-c statement_timeout=0 -c client_min_messages=warning';
	$server->psql($database, $sql, stdout => \my $rows, stderr => \my $messages);
	return wantarray ? ($rows, $messages) : $rows;
}

sub session_as
{
	my ($role, $database) = @_;
	local $ENV{PGUSER} = $role;
	return $server->session($database);
}

# A database of the owner's with a canary: a function that says in the server's log
# on whose behalf it runs.
sub new_database
{
	my ($name) = @_;
	$server->safe_psql('postgres', "CREATE DATABASE $name OWNER owner");
	my (undef, $messages) = run_as('owner', $name, <<'SQL');
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE FUNCTION evil.canary(place text) RETURNS void LANGUAGE plpgsql
    AS $$ BEGIN RAISE LOG 'canary: % runs as %', place, current_user; END $$;
SQL
	die $messages if $messages ne '';
	return $name;
}

# SQL that makes, in a schema, what could be taken for something that the lease
# functions use: operators and functions that match their arguments better than
# PostgreSQL's own, or as well. Each tells the canary.
sub fake_builtins
{
	my ($schema) = @_;
	return <<'SQL' =~ s/SCHEMA/$schema/gr;
DO $do$
DECLARE
    each record;
BEGIN
    FOR each IN
        SELECT * FROM (VALUES
            ('<@', 'int', 'int4multirange', 'bool', 'true'),
            ('=', 'int', 'int', 'bool', 'a OPERATOR(pg_catalog.=) b'),
            ('=', 'bigint', 'bigint', 'bool', 'a OPERATOR(pg_catalog.=) b'),
            ('=', 'text', 'text', 'bool', 'a OPERATOR(pg_catalog.=) b'),
            ('<>', 'int', 'int', 'bool', 'a OPERATOR(pg_catalog.<>) b'),
            ('<>', 'text', 'text', 'bool', 'a OPERATOR(pg_catalog.<>) b'),
            ('<=', 'bigint', 'bigint', 'bool', 'a OPERATOR(pg_catalog.<=) b'),
            ('<=', 'timestamptz', 'timestamptz', 'bool', 'a OPERATOR(pg_catalog.<=) b'),
            ('+', 'timestamptz', 'interval', 'timestamptz', 'a OPERATOR(pg_catalog.+) b')
        ) AS v (name, a, b, result, value)
    LOOP
        EXECUTE format(
            'CREATE FUNCTION SCHEMA.%I(a %s, b %s) RETURNS %s LANGUAGE plpgsql
             AS $$ BEGIN PERFORM evil.canary(%L); RETURN %s; END $$',
            'fake ' || each.name, each.a, each.b, each.result, each.name, each.value);
        EXECUTE format('CREATE OPERATOR SCHEMA.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = SCHEMA.%I)',
                       each.name, each.a, each.b, 'fake ' || each.name);
    END LOOP;
    FOR each IN
        SELECT * FROM (VALUES
            ('upper(a int4multirange) RETURNS int', 'RETURN pg_catalog.upper(a)'),
            ('lower(a int4range) RETURNS int', 'RETURN pg_catalog.lower(a)'),
            ('unnest(a int4multirange) RETURNS SETOF int4range',
             'RETURN QUERY SELECT pg_catalog.unnest(a)'),
            ('unnest(a int[]) RETURNS SETOF int', 'RETURN QUERY SELECT pg_catalog.unnest(a)'),
            ('random() RETURNS float8', 'RETURN pg_catalog.random()'),
            ('clock_timestamp() RETURNS timestamptz', 'RETURN pg_catalog.clock_timestamp()')
        ) AS v (signature, body)
    LOOP
        EXECUTE format('CREATE FUNCTION SCHEMA.%s LANGUAGE plpgsql
                        AS $$ BEGIN PERFORM evil.canary(%L); %s; END $$',
                       each.signature, each.signature, each.body);
    END LOOP;
END $do$;
SQL
}

# The same for the members of the extension: functions of the same names and arguments,
# and a table with a trigger.
sub fake_members
{
	my ($schema) = @_;
	return ($server->safe_psql('shop', <<'SQL') . "\n" . <<'SQL') =~ s/SCHEMA/$schema/gr;
SELECT format('CREATE FUNCTION SCHEMA.%I(%s) RETURNS %s LANGUAGE plpgsql
                   AS $$ BEGIN PERFORM evil.canary(%L); %s; END $$;',
              proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), proname,
              CASE WHEN proretset OR proargmodes IS NOT NULL OR prorettype = 'void'::regtype
                   THEN 'RETURN' ELSE 'RETURN NULL' END)
FROM pg_proc AS p
JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension AS e ON e.oid = d.refobjid
WHERE e.extname = 'snowflake' AND p.prorettype <> 'trigger'::regtype
  AND 'internal'::regtype <> ALL (p.proargtypes)
SQL
CREATE TABLE SCHEMA.snowflake_lease (generator text, machine_id int, layout text, horizon bigint,
    instance bigint, database oid, holder text, claimed_at timestamptz, renewed_at timestamptz,
    expires_at timestamptz, PRIMARY KEY (generator, machine_id));
CREATE FUNCTION SCHEMA.on_change() RETURNS trigger
    LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.canary('trigger'); RETURN NEW; END $$;
CREATE TRIGGER canary BEFORE INSERT OR UPDATE ON SCHEMA.snowflake_lease
    FOR EACH ROW EXECUTE FUNCTION SCHEMA.on_change();
SQL
}

# Draws until the keeper has claimed and then renewed a lease; returns the IDs. In: the
# schema that the extension is in.
sub keep_a_lease
{
	my ($database, $schema) = @_;
	my $session = session_as('visitor', $database);
	my $renewals = "SELECT count(*) FROM $schema.snowflake_lease
	                WHERE instance = $schema.snowflake_instance() AND renewed_at > claimed_at + interval '100 ms'";
	my @ids;
	wait_until("a lease in $database to be renewed", 30,
		sub {
			my ($id, $message) = $session->query("SELECT $schema.snowflake_nextval()");
			die $message if $message ne '';
			push @ids, $id;
			return $session->query($renewals) > 0;
		});
	$session->quit;
	return @ids;
}

# What the canary has said since a position of the log.
sub runs_as_superuser
{
	my ($position) = @_;
	return join "\n", grep { /LOG:  canary: .* runs as (?!owner|visitor)/ } split /\n/,
	  $server->log_since($position);
}

#----------------------------------------------------------------------
# A role without rights
#----------------------------------------------------------------------

new_database('shop');
my (undef, $message) = run_as('owner', 'shop', 'CREATE EXTENSION snowflake');
is($message, '', 'a database owner who is no superuser makes the extension');

my $canary = $server->log_position;
$server->safe_psql('shop', q{SELECT evil.canary('control')});
like(runs_as_superuser($canary), qr/canary: control runs as/, 'the canary sings for a superuser');

my @ids = keep_a_lease('shop', 'public');
ok(@ids > 1 && is_increasing(@ids), 'a role without rights draws IDs');
like(scalar run_as('visitor', 'shop', 'SELECT machine_id, mine FROM snowflake_lease_status'),
	qr/^\d+\|t$/, 'and sees the leases');
is(run_as('visitor', 'shop', 'SELECT count(last_id) FROM snowflake_backends
	WHERE pid <> pg_backend_pid()'), 0, q{but not others' IDs});

my @lease_functions = split /\n/, $server->safe_psql('shop', <<'SQL');
SELECT format('SELECT %s(%s)', proname,
              (SELECT string_agg(format('%L::%s', CASE WHEN typcategory IN ('A', 'R') THEN '{}'
                                                       ELSE '0' END, t.oid::regtype), ', ' ORDER BY n)
               FROM unnest(proargtypes) WITH ORDINALITY AS a (type, n) JOIN pg_type AS t ON t.oid = a.type))
FROM pg_proc WHERE prosecdef AND proname LIKE 'snowflake%\_lease%'
SQL
cmp_ok(scalar @lease_functions, '>=', 4, 'there are functions that write leases');
my @forbidden = (
	@lease_functions,
	'INSERT INTO snowflake_lease SELECT * FROM snowflake_lease',
	'UPDATE snowflake_lease SET horizon = 0',
	'DELETE FROM snowflake_lease',
	'TRUNCATE snowflake_lease',
	'LOCK snowflake_lease',
	'SELECT * FROM snowflake_lease FOR UPDATE',
	'ALTER TABLE snowflake_lease DISABLE TRIGGER ALL',
	'ALTER TABLE snowflake_lease DROP CONSTRAINT snowflake_lease_pkey',
	'ALTER TABLE snowflake_lease OWNER TO CURRENT_USER',
	'DROP TABLE snowflake_lease',
	'CREATE TRIGGER t BEFORE UPDATE ON snowflake_lease EXECUTE FUNCTION evil.on_change()',
	'CREATE RULE r AS ON UPDATE TO snowflake_lease DO INSTEAD SELECT evil.canary(\'rule\')',
	'CREATE POLICY p ON snowflake_lease USING (evil.canary(\'policy\') IS NULL)',
	'CREATE INDEX ON snowflake_lease ((evil.canary(holder)))',
	'CREATE TABLE evil.child () INHERITS (snowflake_lease)',
	'CREATE TABLE evil.reference (g text, m int, FOREIGN KEY (g, m) REFERENCES snowflake_lease'
	  . ' ON UPDATE CASCADE)',
	'GRANT UPDATE ON snowflake_lease TO CURRENT_USER',
	'ALTER FUNCTION snowflake_release_lease(text, int) RESET ALL',
	'ALTER FUNCTION snowflake_release_lease(text, int) OWNER TO CURRENT_USER',
	'ALTER FUNCTION snowflake_release_lease(text, int) RENAME TO gone',
	'CREATE OR REPLACE FUNCTION snowflake_release_lease(generator text, machine_id int)'
	  . ' RETURNS bool LANGUAGE sql AS \'SELECT true\'',
	'DROP FUNCTION snowflake_release_lease(text, int)',
	'ALTER EXTENSION snowflake DROP FUNCTION snowflake_release_lease(text, int)',
	'ALTER EXTENSION snowflake DROP TABLE snowflake_lease',
	'ALTER EXTENSION snowflake SET SCHEMA evil',
	'ALTER TABLE snowflake_generator SET SCHEMA evil',
	'CREATE STATISTICS evil.s ON (evil.canary(holder)), (machine_id + 1) FROM snowflake_lease',
	'CREATE PUBLICATION p FOR TABLE snowflake_lease',
	'CREATE CAST (int4multirange AS int) WITH INOUT',
	'LOAD \'snowflake\'',
	'SELECT snowflake_timestamp_support(NULL)',
	'SELECT snowflake_nextval_in_copy(NULL)',
	'SELECT snowflake_store_generator(\'mine\', \'twitter\')',
	'SELECT snowflake_erase_generator(\'mine\')',
	'CREATE FUNCTION evil.keeper(bigint) RETURNS void LANGUAGE c AS'
	  . ' \'snowflake\', \'snowflake_keeper_main\'',
	'CREATE FUNCTION evil.time(bigint) RETURNS timestamptz IMMUTABLE LANGUAGE sql'
	  . ' SUPPORT snowflake_timestamp_support AS \'SELECT now()\'',
	'CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION evil.on_event()');
run_as('owner', 'shop', <<'SQL');
CREATE FUNCTION evil.on_change() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN PERFORM evil.canary('trigger'); RETURN NEW; END $$;
CREATE FUNCTION evil.on_event() RETURNS event_trigger LANGUAGE plpgsql
    AS $$ BEGIN PERFORM evil.canary('event trigger'); END $$;
GRANT CREATE ON SCHEMA evil, public TO visitor;
SQL
foreach my $role ('visitor', 'owner')
{
	my $session = session_as($role, 'shop');
	foreach my $sql (@forbidden)
	{
		(undef, $message) = $session->query("BEGIN; $sql");
		$session->query('ROLLBACK');
		like($message,
			qr/permission denied|must be owner|must be superuser|no privileges were granted|extension snowflake requires it|duplicate key|is not allowed|does not support SET SCHEMA|snowflake_\w+\(unknown\) does not exist|cannot accept a value of type internal/,
			"the $role cannot: " . substr($sql, 0, 60));
	}
	$session->quit;
}
is($server->safe_psql('shop', "SELECT count(*) FROM pg_depend
		WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
		  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
		  AND objid = 'snowflake_lease'::regclass"),
	1, 'the table is as it was');

# Rights on the members of the extension that a role was given by name.
my $rights_of_owner = <<'SQL';
WITH member AS (
	SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
	WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'snowflake'
), acl (object, acl) AS (
	SELECT p.oid::regprocedure::text, p.proacl FROM pg_proc AS p JOIN member AS m ON m.objid = p.oid
	UNION ALL
	SELECT c.oid::regclass::text, c.relacl FROM pg_class AS c JOIN member AS m ON m.objid = c.oid
	UNION ALL
	SELECT a.attrelid::regclass || '.' || a.attname, a.attacl
	FROM pg_attribute AS a JOIN member AS m ON m.objid = a.attrelid
)
SELECT object || ': ' || privilege_type AS line FROM acl, aclexplode(acl)
WHERE grantee NOT IN (0, 10) ORDER BY object COLLATE "C", privilege_type;
SQL
my $rights = <<'LIST';
snowflake_create_generator(text,text): EXECUTE
snowflake_drop_generator(text): EXECUTE
snowflake_generator: INSERT
snowflake_lease: INSERT
snowflake_stats_reset(): EXECUTE
LIST
is($server->safe_psql('shop', $rights_of_owner) . "\n", $rights, 'the owner has these rights and no others');

# The owner's row for a machine ID can keep it from being claimed, and no more.
$server->safe_psql('shop', q{UPDATE snowflake_lease SET expires_at = 'infinity'});
my $held = $server->safe_psql('shop', 'SELECT machine_id, horizon FROM snowflake_lease ORDER BY 1');
run_as('owner', 'shop', <<'SQL');
INSERT INTO snowflake_lease SELECT generator, m, layout, 0, instance, database, 'owner', now(), now(), now()
FROM snowflake_lease, generate_series(0, 9) AS m ON CONFLICT (generator, machine_id) DO NOTHING
SQL
is($server->safe_psql('shop', q{SELECT machine_id, horizon FROM snowflake_lease
	WHERE holder <> 'owner' ORDER BY 1}), $held, 'the owner\'s rows change no lease');
$server->safe_psql('shop', q{DELETE FROM snowflake_lease WHERE holder = 'owner'});

# The owner's row for a generator, whatever is in it, is no more than that.
foreach my $row ([ q{repeat('x', 10000)}, q{'twitter'} ], [ q{repeat('x', 64)}, q{'twitter'} ],
	[ q{'bad'}, q{'no layout'} ], [ q{'long'}, q{repeat('x', 100000)} ], [ q{'wide'}, q{'fields=t1,m61,s1'} ])
{
	my ($name, $layout) = @$row;
	run_as('owner', 'shop', "INSERT INTO snowflake_generator VALUES ($name, $layout)");
	(undef, $message) = run_as('owner', 'shop', "SELECT snowflake_nextval($name)");
	like($message, qr/ERROR:  (generator|layout|invalid layout) "/, "no ID is drawn from a row with $name, $layout");
	run_as('owner', 'shop', "SELECT * FROM snowflake_generators");
	run_as('owner', 'shop', "SELECT snowflake_drop_generator($name)");
}
$server->safe_psql('shop', 'DELETE FROM snowflake_generator');
unlike($server->log_since(0), qr/terminated by signal/, 'and no process dies of it');

#----------------------------------------------------------------------
# Settings and names that only a superuser may choose
#----------------------------------------------------------------------

# Before the library is loaded, PostgreSQL takes the setting for one it does not know.
foreach my $way (
	[ 'SET', q{SET snowflake.registry = 'host=/nowhere'} ],
	[ 'set_config()', q{SELECT set_config('snowflake.registry', 'host=/nowhere', false)} ],
	[ 'ALTER DATABASE', q{ALTER DATABASE shop SET snowflake.registry = 'host=/nowhere'} ],
	[ 'ALTER ROLE', q{ALTER ROLE owner SET snowflake.registry = 'host=/nowhere'} ],
	[ 'SET of the lease', q{SET snowflake.lease_ttl = '1d'} ],
	[ 'SET of the machine IDs', q{SET snowflake.machine_ids = '7'} ])
{
	my ($name, $sql) = @$way;
	my $before = session_as('owner', 'shop');
	$before->query($sql);
	like(scalar $before->query('SELECT public.snowflake_nextval()'), qr/^\d+$/,
		"$name before the library is loaded changes nothing");
	unlike(scalar $before->query(q{SELECT string_agg(current_setting(n, true), ' ')
		FROM unnest('{snowflake.lease_ttl,snowflake.machine_ids}'::text[]) AS n}), qr/^1d|7$/,
		'the setting is as the server has it');
	(undef, $message) = $before->query($sql);
	like($message, qr/permission denied|cannot be changed now/, "$name after it is refused");
	(undef, $message) = $before->query('SHOW snowflake.registry');
	like($message, qr/must be (superuser|.*pg_read_all_settings)|permission denied/,
		'and the registry is not shown');
	$before->quit;
}
is($server->safe_psql('postgres', q{SELECT count(*) FROM pg_db_role_setting
	WHERE setconfig::text LIKE '%snowflake%'}), 0, 'nothing is left for later sessions');

# What stands in one's own names is data.
(undef, $message) = run_as('owner', 'shop', <<'SQL');
SELECT snowflake_create_generator($$'), evil.canary('name'); --$$, 'twitter');
CREATE SCHEMA "a"", evil.canary('schema'); --";
CREATE TABLE "a"", evil.canary('schema'); --"."%I '$$ ""; SELECT evil.canary('table'); --"
    ("%s "" ), evil.canary('column') --" int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
SQL
is($message, '', 'there are names that would like to be statements');
$canary = $server->log_position;
foreach my $function (q{snowflake_convert(c.oid, a.attname, $$'), evil.canary('name'); --$$)},
	'snowflake_revert(c.oid, a.attname)')
{
	$server->safe_psql('shop', "SELECT $function FROM pg_class AS c JOIN pg_attribute AS a
		ON a.attrelid = c.oid AND a.attnum = 1 WHERE c.relname LIKE '\%I%' AND c.relkind = 'r'");
}
is(runs_as_superuser($canary), '', 'a superuser who converts the table and back runs none of them');
is($server->safe_psql('shop', q{SELECT relowner::regrole FROM pg_class WHERE relkind = 'S'
	AND relname LIKE '\%I%'}), 'owner', 'and the sequence is the owner\'s');
(undef, $message) = run_as('owner', 'shop',
	q{DROP SCHEMA "a"", evil.canary('schema'); --" CASCADE;
	  SELECT snowflake_drop_generator($$'), evil.canary('name'); --$$)});
is($message, '', 'and the generator can be dropped by its name');

# The planner's shortcut for times does not let a condition see rows that it must not.
run_as('owner', 'shop', <<'SQL');
CREATE TABLE public.secret (id bigint DEFAULT snowflake_nextval(), reader name);
CREATE INDEX ON public.secret (id);
INSERT INTO public.secret (reader) VALUES ('visitor'), ('owner');
ALTER TABLE public.secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON public.secret USING (reader = current_user);
GRANT SELECT ON public.secret TO visitor;
SQL
(my $rows, $message) = run_as('visitor', 'shop', <<'SQL');
CREATE FUNCTION pg_temp.tell(name) RETURNS boolean LANGUAGE plpgsql COST 0.0001
    AS $$ BEGIN RAISE WARNING 'saw %', $1; RETURN true; END $$;
SELECT count(*) FROM public.secret WHERE snowflake_timestamp(id) > '2026-01-02' AND pg_temp.tell(reader)
SQL
is($rows, 1, 'row-level security lets one row through');
is(join(' ', $message =~ /saw (\w+)/g), 'visitor', 'and a condition sees that one alone');

#----------------------------------------------------------------------
# An owner who prepares the ground before CREATE EXTENSION
#----------------------------------------------------------------------

$canary = $server->log_position;
new_database('prepared');
(undef, $message) = run_as('owner', 'prepared', fake_builtins('public') . <<'SQL');
ALTER DATABASE prepared SET search_path = public, pg_catalog;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO visitor;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO visitor;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO PUBLIC;
SQL
is($message, '', 'there are operators and functions that match better');
(undef, $message) = run_as('owner', 'prepared', 'CREATE EXTENSION snowflake');
is($message, '', 'and the extension is made beside them');
is($server->safe_psql('prepared', $rights_of_owner) . "\n", $rights, 'with the same rights');
@ids = keep_a_lease('prepared', 'public');
is(duplicates_of(@ids), 0, 'it draws distinct IDs');
is(runs_as_superuser($canary), '', 'none of them was used with the rights of a superuser');

# What the extension would make itself must not be there before.
my $fakes = fake_members('public');
my $refusal = qr/already exists|is not a member of extension "snowflake"/;
my $database = new_database('faked');
my @fake = $fakes =~ /^(CREATE (?:FUNCTION|TABLE) public\.snowflake.*?(?:END \$\$|\)\));)$/msg;
push @fake, split /\n/, $server->safe_psql('shop', <<'SQL');
SELECT format('CREATE VIEW public.%I AS SELECT %s;', relname,
              string_agg(format('NULL::%s AS %I', format_type(atttypid, NULL), attname), ', ' ORDER BY attnum))
FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0
WHERE relkind = 'v' AND relname LIKE 'snowflake%' GROUP BY relname
SQL
cmp_ok(scalar @fake, '>', 40, 'there are fakes of the functions, a table and the views');
my @not_refused = grep {
	(undef, $message) = run_as('owner', $database, "BEGIN;\n$_\nCREATE EXTENSION snowflake; COMMIT");
	$message !~ $refusal
} @fake;
is_deeply(\@not_refused, [], 'the extension is not made around it');

#----------------------------------------------------------------------
# An owner who gives settings to everyone who connects
#----------------------------------------------------------------------

my $parallel = $server->parallel_setting;
$canary = $server->log_position;
new_database('settings');
(undef, $message) = run_as('owner', 'settings', 'CREATE EXTENSION snowflake;'
	  . fake_builtins('evil') . fake_members('evil') . <<"SQL");
ALTER DATABASE settings SET search_path = evil, public, pg_catalog;
ALTER DATABASE settings SET default_transaction_read_only = on;
ALTER DATABASE settings SET default_transaction_isolation = serializable;
ALTER DATABASE settings SET default_transaction_deferrable = on;
ALTER DATABASE settings SET lock_timeout = 1;
ALTER DATABASE settings SET statement_timeout = 1;
ALTER DATABASE settings SET idle_in_transaction_session_timeout = 1;
ALTER DATABASE settings SET row_security = off;
ALTER DATABASE settings SET role = owner;
ALTER DATABASE settings SET synchronous_commit = off;
ALTER DATABASE settings SET $parallel = on;
ALTER DATABASE settings SET jit_above_cost = 0;
ALTER DATABASE settings SET transform_null_equals = on;
ALTER DATABASE settings SET quote_all_identifiers = on;
ALTER DATABASE settings SET DateStyle = 'SQL, DMY';
ALTER DATABASE settings SET IntervalStyle = sql_standard;
ALTER DATABASE settings SET TimeZone = 'Asia/Kathmandu';
SQL
is($message, '', 'the owner gives settings to all connections');
{
	local $ENV{PGOPTIONS} = '-c statement_timeout=0 -c role=none ' . "-c $parallel=off";
	@ids = keep_a_lease('settings', 'public');
}
is(duplicates_of(@ids), 0, 'leases are claimed and renewed all the same');
(undef, $message) = run_as('owner', 'settings', <<'SQL');
SET default_transaction_read_only = off;
SET role = none;
SELECT public.snowflake_create_generator('mine', 'twitter');
CREATE FUNCTION evil.is_fine(bigint) RETURNS bool LANGUAGE plpgsql
    AS $$ BEGIN PERFORM evil.canary('check'); RETURN true; END $$;
CREATE DOMAIN evil.id AS bigint DEFAULT public.snowflake_nextval('mine') CHECK (evil.is_fine(VALUE));
CREATE TABLE evil.t (id evil.id, n int DEFAULT 1);
INSERT INTO evil.t (n) VALUES (1), (2);
DROP TABLE evil.t;
DROP DOMAIN evil.id;
SELECT public.snowflake_drop_generator('mine');
SQL
is($message, '', 'the owner makes, uses and drops a generator');
is(runs_as_superuser($canary), '', 'with nothing of the owner\'s');

#----------------------------------------------------------------------
# An owner who puts other objects in the place of the extension's
#----------------------------------------------------------------------

$canary = $server->log_position;
new_database('renamed');
(undef, $message) = run_as('owner', 'renamed', <<'SQL' . fake_members('app') . fake_builtins('app'));
CREATE SCHEMA app;
CREATE EXTENSION snowflake SCHEMA app;
ALTER SCHEMA app RENAME TO "it's app";
GRANT USAGE ON SCHEMA "it's app" TO PUBLIC;
CREATE SCHEMA app;
ALTER DATABASE renamed SET search_path = app, "it's app", pg_catalog;
SQL
is($message, '', 'a schema with fakes takes the name of that of the extension');
@ids = keep_a_lease('renamed', q("it's app"));
is(duplicates_of(@ids), 0, 'the extension goes on in its own');
is($server->safe_psql('renamed', 'SELECT count(*) FROM app.snowflake_lease'),
	0, 'and writes nothing to the fake');
is(runs_as_superuser($canary), '', 'nor does it call one');
run_as('owner', 'renamed', 'CREATE TABLE item (id int GENERATED ALWAYS AS IDENTITY)');
$server->safe_psql('renamed', q{SELECT "it's app".snowflake_convert('item', 'id');
	SELECT "it's app".snowflake_revert('item', 'id')});
is(runs_as_superuser($canary), '', 'nor does a superuser who converts a table');

# A keeper that was asked for by the extension, and begins when there are fakes in its place.
$canary = $server->log_position;
new_database('replaced');
run_as('owner', 'replaced', 'CREATE EXTENSION snowflake');
my $occupant = $server->session;
$occupant->send("SET $parallel = on; SELECT pg_sleep(600)");
$server->poll_query_until('postgres', "SELECT EXISTS (SELECT 1 FROM pg_stat_activity
	WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep')")
  or die 'no parallel worker has started';
my $waiting = session_as('visitor', 'replaced');
$waiting->send("SET snowflake.acquire_timeout = '60s'; SELECT snowflake_nextval()");
$server->poll_query_until('postgres', "SELECT wait_event_type = 'Extension'
	FROM pg_stat_activity WHERE pid = " . $waiting->pid) or die 'the session does not wait';
(undef, $message) = run_as('owner', 'replaced', <<'SQL'
DROP EXTENSION snowflake;
ALTER DATABASE replaced SET search_path = public, pg_catalog;
SQL
	. fake_members('public') . fake_builtins('public'));
is($message, '', 'the extension is dropped, and there are fakes in its place');
$server->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $occupant->pid . ')');
$occupant->result;
(undef, $message) = $waiting->result;
like($message, qr/could not get a lease.*has been dropped/s, 'a keeper finds it gone');
is(runs_as_superuser($canary), '', 'and calls none of the fakes');
$_->quit foreach $waiting, $occupant;

# A session that claims in its own transaction does so with a superuser's rights, among
# the temporary objects and the settings of its user.
$canary = $server->log_position;
new_database('one_transaction');
($rows, my $messages) = run_as('owner', 'one_transaction', <<'SQL'
ALTER DATABASE one_transaction SET search_path = public, pg_catalog;
SET search_path = pg_temp, evil, public, pg_catalog;
SQL
	. fake_builtins('public') . fake_builtins('evil') . fake_members('evil')
	. fake_members('pg_temp') . <<'SQL');
BEGIN;
CREATE EXTENSION snowflake SCHEMA public;
SELECT public.snowflake_nextval() > 0;
SELECT current_user, session_user;
SHOW search_path;
SELECT count(*) FROM public.snowflake_lease;
COMMIT;
SELECT public.snowflake_nextval() > 0;
SQL
is($messages, '', 'a session claims in its own transaction');
is($rows, "t\nowner|owner\npg_temp, evil, public, pg_catalog\n1\nt",
	'and is its user again, with the same settings');
is(runs_as_superuser($canary), '', 'with nothing of its user\'s');

#----------------------------------------------------------------------
# An owner who puts other objects in the place of the extension's while it is at work
#----------------------------------------------------------------------

# In: a session that does what it does with a superuser's rights, and what it waits for.
sub wait_for_lock
{
	my ($what, $condition) = @_;
	$server->poll_query_until('postgres',
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND $condition)")
	  or die "$what does not wait for a lock";
	return;
}

foreach my $call (q{snowflake_create_generator('mine', 'twitter')}, q{snowflake_drop_generator('theirs')})
{
	my ($function) = $call =~ /^(\w+)/;
	my $database = new_database("swapped_in_$function");
	$canary = $server->log_position;
	(undef, $message) = run_as('owner', $database, <<'SQL');
CREATE EXTENSION snowflake;
SELECT snowflake_create_generator('theirs', 'twitter');
SQL
	is($message, '', "there is the extension in $database");
	my $swapper = session_as('owner', $database);
	$swapper->query('BEGIN; DROP EXTENSION snowflake');
	my $caller = session_as('owner', $database);
	$caller->send("SELECT $call");
	wait_for_lock($function, 'pid = ' . $caller->pid);
	(undef, $message) = $swapper->query(fake_members('public') . <<'SQL');
CREATE TABLE snowflake_generator (name text PRIMARY KEY, layout text);
INSERT INTO snowflake_generator VALUES ('theirs', 'twitter');
CREATE TRIGGER canary BEFORE INSERT OR DELETE ON snowflake_generator
    FOR EACH ROW EXECUTE FUNCTION on_change();
COMMIT;
SQL
	is($message, '', 'the owner swaps its tables for others with triggers');
	$caller->result;
	is(runs_as_superuser($canary), '', "$function() fires none of them");
	$_->quit foreach $swapper, $caller;
}

$canary = $server->log_position;
new_database('swapped_schema');
(undef, $message) = run_as('owner', 'swapped_schema', <<'SQL');
CREATE SCHEMA app;
CREATE EXTENSION snowflake SCHEMA app;
GRANT USAGE ON SCHEMA app TO PUBLIC;
SQL
is($message, '', 'the extension is in a schema of the owner\'s');
{
	# Whatever the keeper chooses, it has to wait for this transaction.
	my $rows = session_as('owner', 'swapped_schema');
	(undef, $message) = $rows->query(<<'SQL');
BEGIN;
INSERT INTO app.snowflake_lease
SELECT 'default', m, 'twitter', 0, NULL, NULL, 'owner', now(), now(), 'infinity'
FROM generate_series(0, 1023) AS m;
SQL
	is($message, '', 'rows keep the keeper waiting');
	my $waiting = session_as('visitor', 'swapped_schema');
	$waiting->send('SELECT app.snowflake_nextval()');
	wait_for_lock('the keeper', q{backend_type = 'snowflake keeper' AND datname = 'swapped_schema'});
	(undef, $message) = run_as('owner', 'swapped_schema',
		'BEGIN; ALTER SCHEMA app RENAME TO away; CREATE SCHEMA app;'
		  . 'GRANT USAGE ON SCHEMA app TO PUBLIC;' . fake_members('app') . 'COMMIT');
	is($message, '', 'the owner gives the schema\'s name to one with fakes');
	$rows->query('COMMIT');
	(undef, $message) = $waiting->result;
	like($message, qr/under another layout/, 'the keeper goes on in the extension\'s own');
	is(runs_as_superuser($canary), '', 'and calls none of the fakes');
	$_->quit foreach $rows, $waiting;
}

#----------------------------------------------------------------------
# An owner who was given a function of the extension's
#----------------------------------------------------------------------

# By REASSIGN OWNED, say: a mistake of a superuser's, of which the keeper must not make more.
new_database('given');
run_as('owner', 'given', 'CREATE EXTENSION snowflake');
$canary = $server->log_position;
my $arguments = 'generator text, machine_ids int4multirange, id_time bigint, OUT layout text,'
  . ' OUT machine_id int, OUT holder text, OUT free_at timestamptz, OUT free_in_us bigint';
foreach my $function ('snowflake_lease_outlook(text, int4multirange, bigint)', 'snowflake_store_generator(text, text)')
{
	$server->safe_psql('given', "ALTER FUNCTION $function OWNER TO owner; GRANT USAGE ON SCHEMA evil TO owner");
}
(undef, $message) = run_as('owner', 'given', <<"SQL");
CREATE OR REPLACE FUNCTION snowflake_lease_outlook($arguments) LANGUAGE plpgsql
    AS \$\$ BEGIN PERFORM evil.canary('outlook'); END \$\$;
CREATE OR REPLACE FUNCTION snowflake_store_generator(name text, layout text) RETURNS boolean LANGUAGE plpgsql
    AS \$\$ BEGIN PERFORM evil.canary('store'); RETURN true; END \$\$;
SQL
is($message, '', 'the owner writes other bodies');
(undef, $message) = run_as('visitor', 'given', 'SELECT snowflake_nextval()');
like($message, qr/snowflake_lease_outlook .* is missing or is not the extension's own/, 'the keeper sees whose it is');
(undef, $message) = run_as('owner', 'given', q{SELECT snowflake_create_generator('mine', 'twitter')});
like($message, qr/snowflake_store_generator .* is missing or is not the extension's own/, 'so does what makes generators');
is(runs_as_superuser($canary), '', 'and neither is called');

#----------------------------------------------------------------------
# An owner whose commits are not durable
#----------------------------------------------------------------------

# No standby of this name will ever come.
sub synchronous_standbys
{
	my ($names) = @_;
	$server->append_conf('postgresql.conf', "synchronous_standby_names = '$names'");
	$server->reload;
	return;
}

sub waits_for_standby
{
	my ($who) = @_;
	return wait_until("a process to wait for the standby: $who", 30, sub {
		return $server->safe_psql('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE $who AND wait_event = 'SyncRep')") eq 't';
	});
}

foreach my $level ('off', 'local')
{
	new_database("commits_$level");
	(undef, $message) = run_as('owner', "commits_$level", <<"SQL");
CREATE EXTENSION snowflake;
ALTER DATABASE commits_$level SET synchronous_commit = $level;
SQL
	is($message, '', "a database whose synchronous_commit is $level");
	synchronous_standbys('nobody');
	my $waiting = session_as('visitor', "commits_$level");
	$waiting->send(q{SET snowflake.acquire_timeout = '60s'; SELECT snowflake_nextval() > 0});
	ok(waits_for_standby(q{backend_type = 'snowflake keeper'}),
		'its keeper waits for the synchronous standby all the same');
	ok($waiting->is_busy, 'and no ID is drawn before');
	synchronous_standbys('');
	is(scalar $waiting->result, 't', 'but after');
	$waiting->quit;
}
{
	new_database('commits_once');
	my $waiting = session_as('owner', 'commits_once');
	synchronous_standbys('nobody');
	$waiting->send(<<'SQL');
SET synchronous_commit = off;
BEGIN;
CREATE EXTENSION snowflake;
SELECT snowflake_nextval() > 0;
COMMIT;
SHOW synchronous_commit;
SQL
	ok(waits_for_standby('pid = ' . $waiting->pid), 'so does a session that claims in its own transaction');
	synchronous_standbys('');
	is(scalar $waiting->result, "t\noff", 'whose later commits are as it wants them');
	$waiting->quit;
}

$server->stop;
done_testing();
