# The server's clock steps back and forth under running sessions.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use List::Util qw(min);
use PostgreSQL::Test::Utils;
use Test::More;

my $hour = 3_600_000;

# What waits here waits for much longer, or fails; a busy machine may need this much.
my $at_once = 5;

my $server = new_server('main', clock => 1, conf => 'autovacuum = off');
$server->safe_psql('postgres', 'CREATE TABLE item (id bigint DEFAULT snowflake_nextval())');

# Every ID that a client of this server gets.
my @ids;

sub insert
{
	my ($session) = @_;
	my ($id, $error) = $session->query('INSERT INTO item DEFAULT VALUES RETURNING id');
	die "insert failed: $error" if $error ne '';
	push @ids, $id;
	return $id;
}

# Sets max_clock_wait for all sessions.
sub set_max_clock_wait
{
	my ($target, $value) = @_;
	$target->append_conf('postgresql.conf', "snowflake.max_clock_wait = '$value'");
	$target->reload;
	$target->poll_query_until('postgres',
		"SELECT current_setting('snowflake.max_clock_wait') = '$value'")
	  or die "max_clock_wait is not $value";
	return;
}

# Starts an insert that has to wait for the clock, and sees it wait.
sub insert_and_see_it_wait
{
	my ($session, $name) = @_;
	$session->send('INSERT INTO item DEFAULT VALUES RETURNING id');
	ok( wait_until($name, 30, sub {
			$server->safe_psql('postgres', "SELECT true FROM pg_stat_activity
				WHERE pid = ${\$session->pid} AND state = 'active'
				AND wait_event_type = 'Extension'");
		}),
		$name);
	return;
}

#----------------------------------------------------------------------
# A small step is waited out
#----------------------------------------------------------------------

my $session = $server->session;
my $took;
my @waits;
insert($session);
foreach my $steps (1 .. 3)
{
	my ($before, $after);
	my $since_draw = seconds_of
	{
		$before = insert($session);
		push @waits, seconds_of
		{
			$server->set_clock(-0.3 * $steps);
			$after = insert($session);
		};
	};
	cmp_ok($since_draw, '>=', 0.3, "a clock that stepped back 300 ms is waited for ($steps)");
	cmp_ok($after, '>', $before, '... and the ID is above the last one');
	is(machine_id_of($after), machine_id_of($before), '... of the same machine ID');
	cmp_ok(time_of($after), '<=', $server->clock, q{... and not ahead of the clock});
}
cmp_ok(min(@waits), '<', 0.6, 'a wait is not much longer than the step');
is( $server->safe_psql('postgres',
		"SELECT clock_waits > 0 AND clock_waited >= '0.2 s'
		FROM snowflake_backends WHERE pid = ${\$session->pid}"),
	't',
	'snowflake_backends counts the wait');

#----------------------------------------------------------------------
# A long wait ends when it should
#----------------------------------------------------------------------

# As much as lets no test below wait it out.
my $step = '-100';
set_max_clock_wait($server, '10min');
insert($session);
$server->set_clock($step);

insert_and_see_it_wait($session, 'pg_stat_activity shows a session that waits for the clock');
my ($rows, $error);
$took = seconds_of
{
	$server->safe_psql('postgres', "SELECT pg_cancel_backend(${\$session->pid})");
	($rows, $error) = $session->result(30);
};
like($error, qr/canceling statement due to user request/, 'a cancel ends the wait');
cmp_ok($took, '<', $at_once, '... at once');

$took = seconds_of
{
	($rows, $error) = $session->query(
		"SET statement_timeout = '200ms';
		INSERT INTO item DEFAULT VALUES RETURNING id;
		RESET statement_timeout", 30);
};
like($error, qr/canceling statement due to statement timeout/, 'statement_timeout ends the wait');
cmp_ok($took, '<', $at_once, '... in time');

insert_and_see_it_wait($session, 'a session waits again');
$took = seconds_of
{
	$server->set_clock(0);
	($rows, $error) = $session->result(30);
};
push @ids, $rows;
is($error, '', 'a clock that is set right ends the wait');
cmp_ok($took, '<', $at_once, '... at once');

$server->set_clock($step);
insert_and_see_it_wait($session, 'a session waits when the server is shut down');
$took = seconds_of { $server->stop('fast'); };
cmp_ok($took, '<', $at_once, 'a fast shutdown does not wait for the clock');
(undef, $error) = $session->result(30);
like($error, qr/terminating connection due to administrator command/, '... but ends the session');
$session->quit;

# After a start the machine IDs in use are others, which the clock is not behind of.
$server->start;
$session = $server->session;
$took = seconds_of { insert($session); };
cmp_ok($took, '<', $at_once, 'a server that starts with its clock behind does not wait for it');

#----------------------------------------------------------------------
# A step that is too great to be waited out
#----------------------------------------------------------------------

$server->set_clock(0);
set_max_clock_wait($server, '1s');
my @switches;
foreach my $hours (1 .. 3)
{
	my $old = insert($session);
	my $log = $server->log_position;
	$server->set_clock(-3600 * $hours);
	my $new;
	$took = seconds_of { $new = insert($session); };
	push @switches, $took;
	cmp_ok($took, '<', $at_once, "inserts go on after a step back by an hour ($hours)");
	isnt(machine_id_of($new), machine_id_of($old), '... under another machine ID');
	cmp_ok(abs(time_of($new) - $server->clock), '<', 10_000, '... with the time that the clock shows');

	$server->wait_for_log(qr/behind the last ID/, $log);
	my $lines = $server->log_since($log);
	my ($into, $from) =
	  $lines =~ /WARNING:  snowflake: the clock stepped back; .* machine ID (\d+) in place of (\d+)/;
	is("$from -> $into", machine_id_of($old) . ' -> ' . machine_id_of($new),
		'... and the log has a warning with both');
	my ($behind) = $lines =~ /DETAIL:  The clock is (\d+) ms behind/;
	cmp_ok(abs($behind - $hour), '<', 10_000, '... and with the size of the step');
}

cmp_ok(min(@switches), '<', 1, 'inserts can go on within a second');

my $other = $server->session;
my $log = $server->log_position;
$took = seconds_of { insert($other) };
cmp_ok($took, '<', $at_once, 'a new session goes on under that machine ID');
unlike($server->log_since($log), qr/stepped back/, '... without another switch');

$server->set_clock(0);
$took = seconds_of { insert($_) foreach $session, $other; };
cmp_ok($took, '<', $at_once, 'inserts go on when the clock is set right');
cmp_ok(abs(time_of($ids[-1]) - $server->clock), '<', 10_000, '... with the right time');

#----------------------------------------------------------------------
# Into the future and back
#----------------------------------------------------------------------

foreach my $jump ('+1d', '+30d', '+40y')
{
	foreach my $clock ($jump, 0)
	{
		my $where = $clock ? "at $clock" : "back from $jump";
		$server->set_clock($clock);
		$took = seconds_of { insert($_) foreach $session, $other; };
		cmp_ok($took, '<', $at_once, "inserts go on $where");
		cmp_ok(abs(time_of($ids[-1]) - $server->clock), '<', 10_000, '... with the time of the clock');
	}
}
$_->quit foreach $session, $other;

push @ids, $server->draw(10_000);
is_deeply([ duplicates_of(@ids) ], [], 'no ID came twice, whatever the clock did');
$server->stop;

#----------------------------------------------------------------------
# No other machine ID
#----------------------------------------------------------------------

my $pinned = new_server(
	'pinned',
	clock => 1,
	conf => "snowflake.machine_ids = '7'\nsnowflake.lease_ttl = '10s'");
my ($id) = $pinned->draw;
is(machine_id_of($id), 7, 'a server takes the machine ID that it is pinned to');
$pinned->set_clock('-3600');
$took = seconds_of { $error = $pinned->error_of('SELECT snowflake_nextval()'); };
my ($behind) = $error =~ /the clock is (\d+) ms behind/;
ok(defined $behind, 'with no other machine ID a clock far behind is an error') or diag $error;
cmp_ok(abs(($behind // 0) - $hour), '<', 10_000, '... that says how far behind');
my ($free) = $error =~ /free before ([-0-9]+ [0-9:.]+\+00)/;
ok(defined $free, '... and when one is free') or diag $error;
cmp_ok(
	$pinned->safe_psql(
		'postgres', "SELECT abs(extract(epoch FROM greatest(horizon, expires_at) - '$free'))
		FROM snowflake_lease_status"),
	'<', 2, '... which is when the lease has run out');
cmp_ok($took, '<', $at_once, '... at once');
$pinned->set_clock(0);
cmp_ok(($pinned->draw)[0], '>', $id, 'inserts go on when the clock is set right');

#----------------------------------------------------------------------
# The ends of time
#----------------------------------------------------------------------

$pinned->append_conf('postgresql.conf', "snowflake.machine_ids = ''");
$pinned->reload;

$pinned->stop_clock_at(EPOCH_MS - 1);
$error = $pinned->error_of('SELECT snowflake_nextval()');
like($error, qr/time before the epoch/, 'a clock before the epoch is an error');
like($error, qr/the epoch is 2026-01-01 00:00:00/, '... that names it');

$pinned->stop_clock_at(EPOCH_MS);
($id) = $pinned->draw;
is(time_of($id), EPOCH_MS, 'the first millisecond works');

$pinned->stop_clock_at(LAST_MS);
($id) = $pinned->draw;
is(time_of($id), LAST_MS, 'the last millisecond works');
is($pinned->safe_psql('postgres', "SELECT snowflake_timestamp($id)"),
	'2095-09-07 15:47:35.551+00', '... which is in 2095');

$pinned->stop_clock_at(LAST_MS + 1);
$error = $pinned->error_of('SELECT snowflake_nextval()');
like($error, qr/generator "default" has no more IDs/, 'the next one is an error');
like($error, qr/ended at 2095-09-07 15:47:35.551/, '... that names the end');

# All machine IDs that the server may hold are used up, and no later time follows.
$pinned->stop_clock_at(LAST_MS);
$error = $pinned->error_of('SELECT count(snowflake_nextval()) FROM generate_series(1, 20000)');
like($error, qr/has no more IDs/, 'a last millisecond that is used up is the same error');

#----------------------------------------------------------------------
# A clock that stands still
#----------------------------------------------------------------------

set_max_clock_wait($pinned, '100ms');
$pinned->stop_clock_at(EPOCH_MS + 1000);
$took = seconds_of
{
	$error = $pinned->error_of('SELECT count(snowflake_nextval()) FROM generate_series(1, 20000)');
};
like($error, qr/the clock has not caught up/, 'a clock that stands still is an error');
cmp_ok($took, '<', $at_once, '... before long');
$pinned->set_clock(0);
is(scalar $pinned->draw(20_000), 20_000, '... until it moves');

done_testing();
