# The extension made, used and rolled back in one transaction; dumps and restores.
#
# No keeper can see an extension before its transaction has committed, so here
# sessions claim for themselves.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

# So few machine IDs that one that must not be chosen would be.
my $server = new_server('main', extension => 0, conf => <<'CONF');
snowflake.machine_ids = '0-19'
max_prepared_transactions = 1
CONF

# The machine IDs that a database's registry has leased to this server.
sub leases
{
	my ($database) = @_;
	return $server->safe_psql($database,
		'SELECT string_agg(machine_id::text, \',\' ORDER BY machine_id) FROM snowflake_lease
		 WHERE instance = snowflake_instance()');
}

sub new_database
{
	my ($name) = @_;
	$server->safe_psql('postgres', "CREATE DATABASE $name");
	return $server->session($name);
}

#----------------------------------------------------------------------
# Committed
#----------------------------------------------------------------------

my $session = new_database('committed');
my ($ids, $error) = $session->query(<<'SQL');
BEGIN;
CREATE EXTENSION snowflake;
CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int);
INSERT INTO t (n) SELECT generate_series(1, 1000);
SHOW search_path;
COMMIT;
SQL
is($error, '', 'extension, table and rows are made in one transaction');
is($ids, '"$user", public', 'which leaves the search_path as it was');

my $machine_id = leases('committed');
is($server->safe_psql('committed',
		'SELECT count(DISTINCT id), count(DISTINCT snowflake_machine_id(id)),
		        min(snowflake_machine_id(id)) FROM t'),
	"1000|1|$machine_id", 'the rows have IDs of the machine ID that is leased after the commit');

my @before = split /\n/, $server->safe_psql('committed', 'SELECT id FROM t ORDER BY id');
my @others = ($server->draw(10, 'committed'), $server->draw(10, 'committed'));
is(scalar(grep { machine_id_of($_) == $machine_id } @others),
	20, 'other sessions draw on the same lease after the commit');
is(duplicates_of(@before, @others), 0, 'and repeat no ID');
ok($session->query('SELECT snowflake_nextval()') > $others[-1], 'this session goes on with it');
is(leases('committed'), $machine_id, 'nobody has claimed another');
$session->quit;

#----------------------------------------------------------------------
# Rolled back
#----------------------------------------------------------------------

$session = new_database('rolled_back');
my $make_and_draw = <<'SQL';
BEGIN;
CREATE EXTENSION snowflake;
CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int);
INSERT INTO t (n) SELECT generate_series(1, 200) RETURNING id;
SQL
my @drawn;
foreach my $round (1 .. 9)
{
	push @drawn, split /\n/, $session->query($make_and_draw);
	($ids, $error) = $session->query('ROLLBACK');
	is($error, '', "round $round is rolled back");
}
($ids, $error) = $session->query('SELECT snowflake_nextval()');
like($error, qr/function snowflake_nextval\(\) does not exist/, 'the extension is gone');
push @drawn, split /\n/, $session->query($make_and_draw . 'COMMIT;');
push @drawn, $server->draw(200, 'rolled_back');
is(scalar @drawn, 2200, 'IDs were drawn in every round, and after the commit of a last one');
is(duplicates_of(@drawn), 0, 'no round has repeated an ID of those rolled back before');
my %machine_ids = map { machine_id_of($_) => 1 } @drawn;
is(keys %machine_ids, 10, 'nor claimed a machine ID again whose horizon lies ahead');
is($server->safe_psql('rolled_back',
		'SELECT count(*) FROM snowflake_lease_status WHERE mine'),
	1, 'only the committed lease is in the table');
$session->quit;

# A session that ends in the middle leaves nothing behind either.
$session = new_database('cut_off');
@drawn = split /\n/, $session->query($make_and_draw);
my $pid = $session->pid;
$session->quit;
$server->poll_query_until('postgres', "SELECT NOT EXISTS (
	SELECT 1 FROM pg_stat_activity WHERE pid = $pid)") or die 'the backend has not ended';
$server->safe_psql('cut_off', 'CREATE EXTENSION snowflake');
push @drawn, $server->draw(200, 'cut_off');
is(scalar @drawn, 400, 'a session that ends in its transaction leaves the database usable');
is(duplicates_of(@drawn), 0, 'and its IDs are not drawn again');

# What is rolled back holds its machine ID until the horizon, and no longer.
my $elsewhere = new_server('elsewhere', extension => 0, conf => <<'CONF');
snowflake.machine_ids = '100,101'
snowflake.lease_ttl = 1s
CONF
$session = $elsewhere->session;
my @last;
foreach my $round (1 .. 5)
{
	push @last, wait_until('a machine ID to be free again', 30,
		sub {
			my ($id) = $session->query(
				'BEGIN; CREATE EXTENSION snowflake; SELECT snowflake_nextval()');
			$session->query('ROLLBACK');
			return $id;
		});
}
ok(is_increasing(@last), 'two machine IDs are enough for five rounds');
$session->quit;

#----------------------------------------------------------------------
# Savepoints
#----------------------------------------------------------------------

$session = new_database('savepoints');
@drawn = split /\n/, $session->query(<<'SQL');
BEGIN;
SAVEPOINT a;
CREATE EXTENSION snowflake;
SELECT snowflake_nextvals(100);
ROLLBACK TO a;
CREATE EXTENSION snowflake;
SAVEPOINT b;
SELECT snowflake_nextvals(100);
ROLLBACK TO b;
SELECT snowflake_nextvals(100);
SAVEPOINT c;
SELECT snowflake_nextvals(100);
RELEASE c;
SAVEPOINT d;
SELECT snowflake_nextvals(100);
ROLLBACK TO d;
SELECT snowflake_nextvals(100);
COMMIT;
SELECT snowflake_nextvals(100);
SQL
push @drawn, $server->draw(100, 'savepoints');
is(scalar @drawn, 800, 'IDs are drawn before and after savepoints that are rolled back');
is(duplicates_of(@drawn), 0, 'none of them twice');
is(machine_id_of($drawn[-1]), leases('savepoints'), 'the one lease left is the one in use');

# A claim in a savepoint that is released belongs to the transaction around it.
my ($at_once) = split /\n/, $session->query(<<'SQL');
BEGIN;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SAVEPOINT a;
SELECT snowflake_nextval();
RELEASE a;
ROLLBACK;
SQL
@drawn = ($at_once, $server->draw(100, 'savepoints'));
is(duplicates_of(@drawn), 0, 'a transaction rolled back after a release repeats nothing');
isnt(machine_id_of($at_once), leases('savepoints'),
	'nor is its machine ID taken for that of the extension that is there again');
$session->quit;

#----------------------------------------------------------------------
# What cannot be done
#----------------------------------------------------------------------

$session = new_database('prepared');
($ids, $error) = $session->query("$make_and_draw PREPARE TRANSACTION 'made';");
like($error, qr/cannot PREPARE a transaction that has made the extension/,
	'a transaction with a claim of its own is not prepared');
$session->query('ROLLBACK');
$session->quit;

#----------------------------------------------------------------------
# Dump and restore
#----------------------------------------------------------------------

my $dump = "$PostgreSQL::Test::Utils::tmp_check/committed.dump";
my @dumped = split /\n/, $server->safe_psql('committed', 'SELECT id FROM t ORDER BY id');
$machine_id = machine_id_of(($server->draw(1, 'committed'))[0]);
my $horizon_of = 'SELECT machine_id, horizon FROM snowflake_lease ORDER BY machine_id';
my $horizons = $server->safe_psql('committed', $horizon_of);
$server->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $server->connstr('committed') ], 'pg_dump');

foreach my $options ([], ['--single-transaction'])
{
	my $name = join('', 'restored', map { s/-/_/gr } @$options);
	my $how = join ' ', 'pg_restore', @$options;
	$server->safe_psql('postgres', "CREATE DATABASE $name");
	$server->command_ok([ 'pg_restore', @$options, '--exit-on-error', '-d',
			$server->connstr($name), $dump ], $how);
	is($server->safe_psql($name, $horizon_of), $horizons, "$how: the horizons have come along");
	is_deeply([ split /\n/, $server->safe_psql($name, 'SELECT id FROM t ORDER BY id') ],
		\@dumped, "$how: the rows too");

	$server->safe_psql($name, 'INSERT INTO t (n) SELECT generate_series(1, 1000)');
	is($server->safe_psql($name, 'SELECT count(*), count(DISTINCT id) FROM t'),
		'2000|2000', "$how: rows are inserted, with IDs that are not there");
	isnt(leases($name), $machine_id, "$how: the copied lease is not taken for one's own");
	is($server->safe_psql($name,
			"SELECT machine_id, horizon FROM snowflake_lease
			 WHERE machine_id IN (SELECT unnest(string_to_array('"
			  . join(',', map { s/\|.*//r } split /\n/, $horizons) . "', ','))::int)
			 ORDER BY machine_id"), $horizons, "$how: nor changed");
}

# Onto a server that never saw the original, drawing in the transaction that restores.
my $script = "$PostgreSQL::Test::Utils::tmp_check/committed.sql";
$elsewhere->command_ok([ 'pg_restore', '-f', $script, $dump ], 'pg_restore to a script');
append_to_file($script, "INSERT INTO public.t (n) SELECT generate_series(1, 1000);\n");
$elsewhere->command_ok([ 'psql', '-X', '-1', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $script,
		$elsewhere->connstr('postgres') ], 'restored elsewhere, and drawn, in one transaction');
is($elsewhere->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM t'),
	'2000|2000', 'with IDs that are not there');
isnt($elsewhere->safe_psql('postgres', 'SELECT machine_id FROM snowflake_lease_status WHERE mine'),
	$machine_id, 'and a machine ID that is not the original\'s');

$server->stop;
$elsewhere->stop;
done_testing();
