# COPY into a table that has snowflake_nextval() as a default: rows are written in batches,
# as with a sequence, and what makes that possible gets nowhere else.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $rows = 5000;
# a claim inserts a row too: none while records are counted
my $server = new_server('main', conf => 'snowflake.max_machine_ids = 1');
$server->safe_psql('postgres', q{SELECT snowflake_create_generator('web', 'js_safe')});
$server->safe_psql('postgres', q{SELECT snowflake_nextval(), snowflake_nextval('web')});

my $file = $server->basedir . '/rows';
append_to_file($file, join('', map { "row $_\n" } 1 .. $rows));

# How many WAL records of each kind a session's statements write into heaps.
sub heap_records_of
{
	my ($statements) = @_;
	my $from = $server->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	$server->safe_psql('postgres', $statements);
	my $to = $server->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
	my %count = (INSERT => 0, MULTI_INSERT => 0);
	foreach my $line (split /\n/, run_waldump($from, $to))
	{
		$count{$1}++ if $line =~ /desc: ((?:MULTI_)?INSERT)\b/;
	}
	return \%count;
}

sub run_waldump
{
	my ($from, $to) = @_;
	my ($out, $err) = run_command(
		[ 'pg_waldump', '-p', $server->data_dir . '/pg_wal', '-s', $from, '-e', $to,
			'-r', 'Heap', '-r', 'Heap2' ]);
	die "pg_waldump: $err" if $out eq '';
	return $out;
}

sub ids_are_distinct
{
	my ($table, $what) = @_;
	is($server->safe_psql('postgres', "SELECT count(*) = count(DISTINCT id) AND count(*) > 0 FROM $table"),
		't', $what);
}

$server->safe_psql('postgres', <<'SQL');
CREATE TABLE by_sequence (id bigserial, payload text);
CREATE TABLE by_default (id bigint DEFAULT snowflake_nextval(), payload text);
CREATE TABLE by_name (id bigint DEFAULT snowflake_nextval('web'), payload text);
CREATE TABLE by_random (id double precision DEFAULT random(), payload text);
CREATE TABLE parted (id bigint DEFAULT snowflake_nextval(), payload text) PARTITION BY HASH (payload);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SQL

#----------------------------------------------------------------------
# Batches
#----------------------------------------------------------------------

my $sequence = heap_records_of("COPY by_sequence (payload) FROM '$file'");
cmp_ok($sequence->{MULTI_INSERT}, '>', 0, 'COPY writes batches for a sequence');
is($sequence->{INSERT}, 0, 'and nothing else');
is(heap_records_of("COPY by_random (payload) FROM '$file'")->{INSERT},
	$rows, 'and no batches for a volatile default');

# each in a session of its own, where COPY is what has the library loaded
foreach my $table ('by_default', 'by_name', 'parted')
{
	my $found = heap_records_of("COPY $table (payload) FROM '$file'");
	cmp_ok($found->{MULTI_INSERT}, '>', 0, "COPY writes batches into $table");
	is($found->{INSERT}, 0, 'and nothing else');
	is($server->safe_psql('postgres', "SELECT count(*) FROM $table"), $rows, 'all rows are there');
	ids_are_distinct($table, 'each with an ID of its own');
}
is(heap_records_of("SELECT snowflake_nextval(); COPY by_default (payload) FROM '$file'")->{INSERT},
	0, 'so too where the library is loaded');
is(heap_records_of("SELECT snowflake_nextval(); DO \$\$ BEGIN EXECUTE 'COPY by_default (payload) FROM ''$file'''; END \$\$")
	->{INSERT}, 0, 'and inside other statements');
ids_are_distinct('by_default', 'no ID twice');
is($server->safe_psql('postgres', q{SELECT count(DISTINCT snowflake_machine_id(id, 'js_safe')) FROM by_name}),
	1, 'IDs are of the generator that the default names');

#----------------------------------------------------------------------
# Nowhere else
#----------------------------------------------------------------------

$server->safe_psql('postgres', <<'SQL');
CREATE TABLE grown (payload int);
INSERT INTO grown SELECT generate_series(1, 20);
ALTER TABLE grown ADD COLUMN id bigint DEFAULT snowflake_nextval();
SQL
ids_are_distinct('grown', 'ADD COLUMN gives each row an ID of its own');

# the same while COPY is under way
$server->safe_psql('postgres', <<'SQL');
CREATE TABLE grown_in_copy AS SELECT payload FROM grown;
CREATE FUNCTION grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	ALTER TABLE grown_in_copy ADD COLUMN IF NOT EXISTS id bigint DEFAULT snowflake_nextval();
	RETURN NEW;
END $$;
CREATE TRIGGER grow BEFORE INSERT ON by_default FOR EACH ROW EXECUTE FUNCTION grow();
SQL
$server->safe_psql('postgres', "COPY by_default (payload) FROM '$file'");
ids_are_distinct('grown_in_copy', 'ADD COLUMN in a trigger of COPY too');
$server->safe_psql('postgres', 'ALTER TABLE grown_in_copy DROP COLUMN id');
$server->safe_psql('postgres', "SELECT snowflake_nextval(); COPY by_default (payload) FROM '$file'");
ids_are_distinct('grown_in_copy', 'also where the library was loaded before');
ids_are_distinct('by_default', 'and no row of COPY has the ID of another');
$server->safe_psql('postgres', 'DROP TRIGGER grow ON by_default');

# also where it is the trigger that has the library loaded, since COPY has no use for the default
foreach my $when ('BEFORE INSERT ON by_random FOR EACH ROW', 'BEFORE INSERT ON by_random FOR EACH STATEMENT',
	'AFTER INSERT ON by_random FOR EACH STATEMENT')
{
	$server->safe_psql('postgres',
		"ALTER TABLE grown_in_copy DROP COLUMN id; CREATE TRIGGER grow $when EXECUTE FUNCTION grow()");
	$server->safe_psql('postgres', "COPY by_random (payload) FROM '$file'");
	ids_are_distinct('grown_in_copy', "and in one that is the first to need the library: $when");
	$server->safe_psql('postgres', 'DROP TRIGGER grow ON by_random');
}

foreach my $call ('snowflake_nextval_in_copy()', 'snowflake_nextval_in_copy(1)',
	"snowflake_nextval_in_copy('x')", 'snowflake_nextval_in_copy(NULL)')
{
	my ($status, undef, $error) = $server->psql('postgres', "SELECT $call");
	isnt($status, 0, "nobody can call $call");
	like($error, qr/function snowflake_nextval_in_copy\(.*\) does not exist/, 'there is no such function for SQL');
}
like(($server->psql('postgres', 'SELECT snowflake_nextval_in_copy(NULL::internal)'))[2],
	qr/cannot cast type unknown to internal/, 'not even with nothing');

#----------------------------------------------------------------------
# Rights
#----------------------------------------------------------------------

$server->safe_psql('postgres', <<'SQL');
CREATE ROLE loader;
GRANT pg_read_server_files TO loader;
GRANT INSERT ON by_default TO loader;
REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC;
SQL
my $load = "SET ROLE loader; COPY by_default (payload) FROM '$file'";
my (undef, undef, $error) = $server->psql('postgres', $load);
like($error, qr/permission denied for function snowflake_nextval\b/,
	'who may not call snowflake_nextval() cannot do so by way of COPY');
$server->safe_psql('postgres', <<'SQL');
GRANT EXECUTE ON FUNCTION snowflake_nextval() TO loader;
REVOKE EXECUTE ON FUNCTION snowflake_nextval_in_copy(internal) FROM PUBLIC;
SQL
is(heap_records_of($load)->{INSERT}, $rows, 'and who may call only that one does without batches');

$server->stop;
done_testing();
