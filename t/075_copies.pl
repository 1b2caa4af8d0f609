# Copies of a server are servers of their own: a base backup that is started beside the
# original, and one that is recovered to a time in the past. Neither takes a lease in
# its copied table for its own, and no ID comes twice, whatever the clocks show.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $server = SnowflakeTest::Server->new('main');
$server->init(has_archiving => 1, allows_streaming => 1);
$server->own_clock;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# A session that draws all the time, so that the original's lease is in use.
my @drawn = $server->draw(100);
my $machine_id = machine_id_of($drawn[0]);
$server->backup('first');
push @drawn, $server->draw(100);

# what the copies must not forget
my $horizon =
  $server->safe_psql('postgres', "SELECT horizon FROM snowflake_lease WHERE machine_id = $machine_id");

#----------------------------------------------------------------------
# A base backup, started beside the original

my $copy = SnowflakeTest::Server->new('copy');
$copy->init_from_backup($server, 'first');
$copy->own_clock;
$copy->start;
is( $copy->safe_psql('postgres',
		"SELECT count(*) FROM snowflake_lease WHERE machine_id = $machine_id"),
	1, 'the copy has the row of the lease');
is($copy->safe_psql('postgres', 'SELECT count(*) FROM snowflake_lease_status WHERE mine'),
	0, 'and does not take it for its own');
my @copied = $copy->draw(100);
isnt(machine_id_of($copied[0]), $machine_id, 'it claims another machine ID');
push @drawn, $server->draw(100);
is(machine_id_of($drawn[-1]), $machine_id, 'while the original goes on with its own');

# both with their clocks back, and every machine ID but the copied one forbidden
$copy->append_conf('postgresql.conf',
	"snowflake.machine_ids = $machine_id\nsnowflake.acquire_timeout = 300ms");
$copy->restart;
$copy->set_clock(-30);
like($copy->error_of('SELECT snowflake_nextval()'),
	qr/machine ID $machine_id of generator "default" is leased to|clock is .* behind/,
	'the copy cannot have the machine ID before its horizon is passed');
cmp_ok(
	$copy->safe_psql('postgres',
		"SELECT horizon FROM snowflake_lease WHERE machine_id = $machine_id"),
	'<=', $horizon, 'the copied horizon is not raised by trying');
$copy->stop;
push @drawn, @copied;

#----------------------------------------------------------------------
# Recovered to a time in the past

my $target = $server->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
push @drawn, $server->draw(100);
$server->safe_psql('postgres', 'CREATE TABLE forgotten (); SELECT pg_switch_wal()');
push @drawn, $server->draw(100);

my $past = SnowflakeTest::Server->new('past');
$past->init_from_backup($server, 'first', has_restoring => 1, standby => 0);
$past->append_conf('postgresql.conf',
	"recovery_target_lsn = '$target'\nrecovery_target_action = 'promote'");
$past->own_clock;
$past->start;
$past->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()')
  or die 'recovery has not ended';
is($past->safe_psql('postgres', q{SELECT to_regclass('forgotten') IS NULL}),
	't', 'a server is recovered to a time in the past');
is($past->safe_psql('postgres', 'SELECT count(*) FROM snowflake_lease_status WHERE mine'),
	0, 'it takes no lease for its own');
my @again = $past->draw(100);
isnt(machine_id_of($again[0]), $machine_id, 'it claims another machine ID');
$past->set_clock(-20);
push @again, $past->draw(100);
push @drawn, @again;

is(duplicates_of(@drawn), 0, 'all IDs of all three are distinct');
$_->stop foreach $past, $server;
done_testing();
