# An upgraded database is like a fresh one, object by object, whichever version it
# comes from; sessions draw on through an upgrade, and the library serves the SQL
# objects of versions before it.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $server = new_server('upgrade', extension => 0);
my $scripts = $server->config_data('--sharedir') . '/extension';
my ($version) = slurp_file("$scripts/snowflake.control") =~ /^default_version\s*=\s*'([^']+)'/m;

# Everything about the extension's members that SQL can tell, in lines that name no
# OID: definitions, owners, privileges, those that a dump leaves out, comments.
my $members = <<'SQL';
WITH extension AS (
	SELECT * FROM pg_extension WHERE extname = 'snowflake'
), member AS (
	SELECT d.classid, d.objid FROM pg_depend AS d, extension AS e
	WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
), named AS (
	SELECT m.*, o.type || ' ' || o.identity AS name
	FROM member AS m, pg_identify_object(m.classid, m.objid, 0) AS o
), relation AS (
	SELECT n.name, c.* FROM named AS n
	JOIN pg_class AS c ON n.classid = 'pg_class'::regclass AND c.oid = n.objid
), line AS (
	SELECT 'extension' AS name, 'version' AS what, extversion AS text FROM extension
	UNION ALL SELECT 'extension', 'dumped', concat_ws(' ', extconfig::regclass[], extcondition)
		FROM extension
	UNION ALL SELECT name, 'comment', obj_description(objid, classid::regclass::name) FROM named
	UNION ALL SELECT name, 'initial privileges', i.objsubid || ' ' || a::text
		FROM named JOIN pg_init_privs AS i ON i.classoid = classid AND i.objoid = objid,
			unnest(i.initprivs) AS a
	-- functions
	UNION ALL SELECT name, 'definition', pg_get_functiondef(objid)
		FROM named WHERE classid = 'pg_proc'::regclass
	UNION ALL SELECT name, 'owner and privileges', concat_ws(' ', p.proowner::regrole, a::text)
		FROM named JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid,
			unnest(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
	-- tables and views
	UNION ALL SELECT name, 'kind', concat_ws(' ', relkind, relpersistence, relrowsecurity,
			relreplident, (SELECT amname FROM pg_am WHERE oid = relam), reloptions)
		FROM relation
	UNION ALL SELECT name, 'owner and privileges', concat_ws(' ', relowner::regrole, a::text)
		FROM relation, unnest(coalesce(relacl, acldefault('r', relowner))) AS a
	UNION ALL SELECT name, 'definition', pg_get_viewdef(oid) FROM relation WHERE relkind = 'v'
	UNION ALL SELECT name, 'column ' || row_number() OVER (PARTITION BY r.oid ORDER BY a.attnum),
			concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
				a.attcollation::regcollation, a.attidentity, a.attgenerated, a.attacl,
				pg_get_expr(d.adbin, d.adrelid), col_description(r.oid, a.attnum))
		FROM relation AS r
		JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef AS d ON d.adrelid = r.oid AND d.adnum = a.attnum
	UNION ALL SELECT name, 'constraint ' || conname, pg_get_constraintdef(c.oid)
		FROM relation AS r JOIN pg_constraint AS c ON c.conrelid = r.oid
	UNION ALL SELECT name, 'index', pg_get_indexdef(indexrelid)
		FROM relation AS r JOIN pg_index ON indrelid = r.oid
	UNION ALL SELECT name, 'trigger', pg_get_triggerdef(t.oid)
		FROM relation AS r JOIN pg_trigger AS t ON tgrelid = r.oid
	UNION ALL SELECT name, 'rule', pg_get_ruledef(w.oid)
		FROM relation AS r JOIN pg_rewrite AS w ON ev_class = r.oid
)
SELECT name, what, regexp_replace(text, '\s*\n\s*', ' ', 'g') FROM line
ORDER BY name COLLATE "C", what COLLATE "C", text COLLATE "C";
SQL

my $databases = 0;

# A database with the extension as a version's script makes it.
sub database_of
{
	my ($of) = @_;
	my $database = 'version' . ++$databases;
	$server->safe_psql('postgres', "CREATE DATABASE $database");
	$server->safe_psql($database, "CREATE EXTENSION snowflake VERSION '$of'");
	return $database;
}

sub members_of { return [ split /\n/, $server->safe_psql($_[0], $members) ]; }

# What differs between a database upgraded from one version to another and one made anew.
sub differences
{
	my ($from, $to) = @_;
	my $upgraded = database_of($from);
	$server->safe_psql($upgraded, "ALTER EXTENSION snowflake UPDATE TO '$to'");
	my ($has, $should_have) = map { members_of($_) } $upgraded, database_of($to);
	my %seen = map { $_ => 1 } @$should_have;
	my @more = grep { !delete $seen{$_} } @$has;
	return ((map { "has: $_" } @more), (map { "lacks: $_" } sort keys %seen));
}

#----------------------------------------------------------------------
# What there is
#----------------------------------------------------------------------

my $fresh = members_of(database_of($version));
my $count = $server->safe_psql("version$databases", <<'SQL');
SELECT count(*) FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
SQL
my %described = map { (split /\|/)[0] => 1 } @$fresh;
cmp_ok($count, '>', 30, 'the extension has members');
is(keys(%described) - 1, $count, 'each is compared');

my @paths = split /\n/, $server->safe_psql('postgres', <<'SQL');
SELECT source || ' ' || target FROM pg_extension_update_paths('snowflake') WHERE path IS NOT NULL
SQL
note('upgrades: ' . (join(', ', @paths) || 'none yet'));
foreach my $path (@paths)
{
	my ($from, $to) = split / /, $path;
	is_deeply([ differences($from, $to) ], [],
		"upgraded from $from to $to: as a fresh $to, object by object");
}

#----------------------------------------------------------------------
# This library with the objects of each version that there is a script for
#----------------------------------------------------------------------

# All C functions that a script names; the server looks for each in the library.
my %script = map { /snowflake--([^-]+(?:-[^-]+)*?)\.sql$/ ? ($1 => slurp_file($_)) : () }
  grep { !/--.*--/ } glob "$scripts/snowflake--*.sql";
foreach my $of (sort keys %script)
{
	my %symbols = map { $_ => 1 } $script{$of} =~ /'MODULE_PATHNAME',\s*'(\w+)'/g;
	cmp_ok(scalar keys %symbols, '>', 20, "version $of names C functions");
	my @missing;
	foreach my $symbol (sort keys %symbols)
	{
		$server->psql('postgres', "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE c
			AS '\$libdir/snowflake', '$symbol'", stderr => \my $error);
		push @missing, "$symbol: $error" if $error ne '';
	}
	is(join("\n", @missing), '', "the library has all that version $of names");

	my $database = database_of($of);
	is($server->safe_psql($database, <<'SQL'), "t\nt\nt\n3\nt\nt", "and serves the objects of version $of");
SELECT (SELECT snowflake_nextval()) < (SELECT snowflake_nextval());
SELECT snowflake_create_generator('tickets', 'twitter') IS NOT NULL;
SELECT snowflake_machine_id(snowflake_nextval('tickets'), 'twitter') >= 0;
SELECT count(*) FROM snowflake_nextvals(3);
CREATE TABLE item (id serial PRIMARY KEY);
SELECT count(*) > 0 FROM snowflake_convert('item', 'id');
SELECT bool_and(held) FROM (SELECT count(*) > 0 FROM snowflake_generators
	UNION ALL SELECT count(*) > 0 FROM snowflake_lease_status
	UNION ALL SELECT count(*) > 0 FROM snowflake_backends
	UNION ALL SELECT issued > 0 FROM snowflake_stats
	UNION ALL SELECT count(*) > 0 FROM snowflake_layouts) AS v (held);
SQL
}

#----------------------------------------------------------------------
# A version of the future, made for this test: as the one there is, with more in it
#----------------------------------------------------------------------

my $next = "$version.next";
my @written;

sub write_script
{
	my ($name, $text) = @_;
	my $file = "$scripts/$name";
	open(my $script, '>', $file) or die "$file: $!";
	push @written, $file;
	print $script $text;
	close $script or die "$file: $!";
	return;
}

END { unlink @written }

my %step = (
	'a function' => <<'SQL',
CREATE FUNCTION @extschema@.snowflake_new() RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
SQL
	'another body of a function' => <<'SQL',
CREATE OR REPLACE FUNCTION @extschema@.snowflake_release_lease(generator text, machine_id int)
RETURNS boolean LANGUAGE sql VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC SELECT false; END;
SQL
	'a promise of a function' =>
	  'ALTER FUNCTION @extschema@.snowflake_parse(bigint) PARALLEL RESTRICTED;',
	'a comment' => q{COMMENT ON FUNCTION @extschema@.snowflake_nextval() IS 'the next';},
	'a privilege' =>
	  'REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_timestamp(bigint) FROM PUBLIC;',
	'a privilege on a table' => 'REVOKE SELECT ON @extschema@.snowflake_lease FROM PUBLIC;',
	'a column' => q{ALTER TABLE @extschema@.snowflake_lease ADD note text DEFAULT '';},
	'a comment on a column' =>
	  q{COMMENT ON COLUMN @extschema@.snowflake_lease.holder IS 'who';},
	'a constraint' => 'ALTER TABLE @extschema@.snowflake_lease ADD CHECK (horizon > 0);',
	'an index' => 'CREATE INDEX ON @extschema@.snowflake_lease (expires_at);',
	'another view' => <<'SQL',
CREATE OR REPLACE VIEW @extschema@.snowflake_layouts AS
	SELECT name, spec, epoch, last_timestamp, unit, timestamp_bits, machine_id_bits,
		sequence_bits, max_id, can_generate, upper(source) AS source
	FROM @extschema@.snowflake_layouts();
SQL
	'what a dump takes' => <<'SQL',
SELECT pg_extension_config_dump('@extschema@.snowflake_lease', 'WHERE true');
SQL
	'a domain' => q{CREATE DOMAIN @extschema@.snowflake_id AS bigint CHECK (VALUE > 0);},
);
my @steps = sort keys %step;
my $search_path = "SET LOCAL search_path = pg_catalog, pg_temp;\n";

SKIP:
{
	skip "the extension's directory is not the test's to write to", 2 + @steps unless -w $scripts;

	write_script("snowflake--$next.sql",
		slurp_file("$scripts/snowflake--$version.sql") . join("\n", @step{@steps}));
	my $upgrade = "snowflake--$version--$next.sql";

	write_script($upgrade, $search_path . join("\n", @step{@steps}));
	is_deeply([ differences($version, $next) ], [], 'an upgrade that does all: no difference');

	foreach my $forgotten (@steps)
	{
		my @done = grep { $_ ne $forgotten } @steps;
		write_script($upgrade, $search_path . join("\n", @step{@done}));
		isnt(join("\n", differences($version, $next)),
			'', "an upgrade that forgets $forgotten is found out");
	}
	write_script($upgrade, $search_path . join("\n", @step{@steps}));
	push @paths, "$version $next";
}

#----------------------------------------------------------------------
# Sessions that draw, through the upgrade
#----------------------------------------------------------------------

foreach my $path (@paths)
{
	my ($from, $to) = split / /, $path;
	my $database = database_of($from);
	my $create = q{SELECT snowflake_create_generator('tickets', 'js_safe')};
	$server->safe_psql($database,
		"$create; CREATE TABLE item (id bigint PRIMARY KEY DEFAULT snowflake_nextval())");
	my $session = $server->session($database);
	my $insert = 'INSERT INTO item DEFAULT VALUES RETURNING id';
	$session->query("PREPARE insert_item AS $insert");
	my @ids = map { scalar $session->query('EXECUTE insert_item') } 1 .. 3;
	my $ticket = $session->query(q{SELECT snowflake_nextval('tickets')});
	my $rows = 'SELECT generator, machine_id, horizon, instance FROM snowflake_lease ORDER BY 1, 2';
	my $leases = $server->safe_psql($database, $rows);

	$server->safe_psql($database, "ALTER EXTENSION snowflake UPDATE TO '$to'");
	is($server->safe_psql($database, $rows), $leases, "$from to $to: leases stay");
	push @ids, map { scalar $session->query('EXECUTE insert_item') } 1 .. 3;
	push @ids, $server->safe_psql($database, $insert);
	ok(is_increasing(@ids), "$from to $to: sessions draw on, in order");
	cmp_ok($session->query(q{SELECT snowflake_nextval('tickets')}),
		'>', $ticket, "$from to $to: from generators with a name too");
	$session->quit;
}

done_testing();
