# No worker slot is free: sessions go on for as long as their lease lasts, then get
# an error that says why, and recover when a slot is free.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use Test::More;

# One slot, which a parallel query can take: keepers find none then.
my $server = new_server('main', conf => <<'CONF');
max_worker_processes = 1
max_logical_replication_workers = 0
max_parallel_workers_per_gather = 1
snowflake.lease_ttl = 3s
CONF

my $occupant = $server->session;

sub take_slot
{
	# a keeper that is still about would have it
	$server->poll_query_until('postgres', "SELECT NOT EXISTS (
		SELECT 1 FROM pg_stat_activity WHERE backend_type = 'snowflake keeper')")
	  or die 'a keeper has not ended';
	$occupant->send('SET ' . $server->parallel_setting . ' = on; SELECT pg_sleep(600)');
	$server->poll_query_until('postgres', "SELECT EXISTS (
		SELECT 1 FROM pg_stat_activity
		WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep')")
	  or die 'no parallel worker has started';
	return;
}

sub free_slot
{
	$server->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $occupant->pid . ')');
	$occupant->result;
	return;
}

my $draw = "\\set VERBOSITY verbose\nSELECT snowflake_nextval()";

#----------------------------------------------------------------------

# The first ID of all, where no slot is free
my $session = $server->session;
$session->query("SET snowflake.acquire_timeout = '500ms'");
take_slot();
my ($ids, $error);
my $took = seconds_of { ($ids, $error) = $session->query($draw) };
like($error, qr/ERROR:  53400: could not get a lease for generator "default"/,
	'without a lease and a free slot there is an error');
like($error, qr/No background worker slot was free for 500 ms\./, 'which says why');
like($error, qr/HINT: .*max_worker_processes/, 'and names max_worker_processes');
cmp_ok($took, '>=', 0.5, 'after snowflake.acquire_timeout');
cmp_ok($took, '<', 5, 'and not much later');

# A session that waits gets its ID as soon as a slot is free.
$session->send("SET snowflake.acquire_timeout = '60s'; SELECT snowflake_nextval()");
$server->poll_query_until('postgres', "SELECT wait_event_type = 'Extension'
	FROM pg_stat_activity WHERE pid = " . $session->pid) or die 'the session does not wait';
$took = seconds_of
{
	free_slot();
	($ids, $error) = $session->result;
};
is($error, '', 'a session that waits recovers when a slot is free');
my @drawn = ($ids);
like($drawn[0], qr/^\d+$/, 'and gets an ID');
cmp_ok($took, '<', 5, 'at once');

#----------------------------------------------------------------------

# Draws until there is an error and returns it.
sub draw_until_error
{
	return wait_until('the lease to run out', 30,
		sub {
			my ($id, $message) = $session->query($draw);
			push @drawn, $id if $message eq '';
			return $message;
		});
}

my $horizon_of = 'SELECT max(horizon) FROM snowflake_lease';
foreach my $round ('first', 'second')
{
	# with a lease that is fresh
	$session->query("SET snowflake.acquire_timeout = '60s'");
	push @drawn, scalar $session->query('SELECT snowflake_nextval()');
	take_slot();
	my $horizon = $server->safe_psql('postgres', $horizon_of);
	$session->query("SET snowflake.acquire_timeout = '300ms'");
	my $before = @drawn;
	$error = draw_until_error();
	cmp_ok(@drawn - $before, '>', 10, "$round time: the session goes on while its lease lasts");
	is($server->safe_psql('postgres', $horizon_of),
		$horizon, "$round time: nobody has renewed that");
	cmp_ok(time_of($drawn[-1]), '<', $horizon + EPOCH_MS,
		"$round time: no ID is at or past the lease's horizon");
	cmp_ok(time_of($drawn[-1]), '>', $horizon + EPOCH_MS - 1000,
		"$round time: and the last ID is near to it");
	like($error, qr/53400: .*HINT: .*max_worker_processes/s,
		"$round time: then there is the error");
	# others get the same error
	like($server->error_of("SET snowflake.acquire_timeout = '100ms'; SELECT snowflake_nextval()"),
		qr/max_worker_processes/, "$round time: in a new session as well");

	free_slot();
	($ids, $error) = $session->query('SELECT snowflake_nextval()');
	is($error, '', "$round time: the session recovers when a slot is free");
	push @drawn, $ids;
}
push @drawn, $server->draw(10);
is(duplicates_of(@drawn), 0, 'all IDs are distinct');
ok(is_increasing(@drawn[ 0 .. $#drawn - 10 ]), q{and the session's increase});

$occupant->quit;
$session->quit;
$server->stop;
done_testing();
