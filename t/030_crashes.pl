# Processes are killed in the middle of inserting, and the clock is set back while
# the server restarts.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

my $writers = 4;
my $enough = 3000;    # IDs of one writer, in one stretch

# What clients do, over and over: they get IDs that are committed, and IDs that are not.
my $work = <<'SQL';
INSERT INTO item DEFAULT VALUES RETURNING id;
BEGIN;
INSERT INTO item SELECT FROM generate_series(1, 20) RETURNING id;
ROLLBACK;
INSERT INTO item SELECT FROM generate_series(1, 20) RETURNING id;
SELECT snowflake_nextvals(20);
SQL
my $script = "$PostgreSQL::Test::Utils::tmp_check/t_030_writer.sql";
PostgreSQL::Test::Utils::append_to_file($script, $work x 5000);

my $files = 0;

# Starts sessions that write, and waits until each has got enough IDs.
sub start_writers
{
	my ($server) = @_;
	my @started;
	foreach my $i (1 .. $writers)
	{
		my $file = $server->basedir . '/ids_' . ++$files;
		my $psql = IPC::Run::start(
			[ 'psql', '-XAtq', '-d', $server->connstr('postgres'), '-f', $script ],
			'<', \undef, '>', $file, '2>', "$file.messages",
			IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
		push @started, { psql => $psql, file => $file };
	}
	foreach my $writer (@started)
	{
		wait_until('a writer to get IDs', 60,
			sub { -s $writer->{file} > $enough * length('123456789012345678 ') });
	}
	return @started;
}

# Ends writers whose server has gone, and returns the IDs that they got.
sub ids_of
{
	my @ids;
	foreach my $writer (@_)
	{
		$writer->{psql}->finish;
		# A row that was cut short is no ID.
		push @ids, slurp_file($writer->{file}) =~ /^(\d+)\n/mg;
	}
	return @ids;
}

sub last_time_of
{
	my $last = 0;
	foreach my $id (@_)
	{
		$last = time_of($id) if time_of($id) > $last;
	}
	return $last;
}

# Has the server start again with its clock two seconds before the last of these IDs,
# and sets it there once more, however long the start took.
sub start_behind
{
	my ($server, $start, @ids) = @_;
	my $time = last_time_of(@ids) - 2000;
	$server->set_clock_to($time);
	$start->();
	$server->set_clock_to($time);
	return;
}

sub starts_by_itself
{
	my ($server) = @_;
	ok($server->poll_query_until('postgres', 'SELECT true'), 'the server restarts by itself');
	return;
}

# A server that has but one machine ID has to use it again after each crash, so what
# happens after it would repeat what was drawn before it, if anything could.
foreach my $preload (0, 1)
{
	my $how = $preload ? 'preloaded' : 'not preloaded';
	my $server = new_server(
		$preload ? 'preloaded' : 'main',
		clock => 1,
		preload => $preload,
		conf => qq{
			restart_after_crash = on
			snowflake.machine_ids = '5'
			snowflake.lease_ttl = '1s'
			snowflake.acquire_timeout = '60s'
			synchronous_commit = off
			wal_writer_delay = '10s'
			autovacuum = off
		});
	$server->safe_psql('postgres', 'CREATE TABLE item (id bigint DEFAULT snowflake_nextval())');
	$server->safe_psql('postgres', 'CHECKPOINT');
	my @ids;

	note "a backend is killed ($how)";
	my @running = start_writers($server);
	kill('KILL', $server->safe_psql('postgres', q{SELECT min(pid) FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}));
	push @ids, ids_of(@running);
	start_behind($server, sub { starts_by_itself($server) }, @ids);

	note "the keeper is killed ($how)";
	@running = start_writers($server);
	my $locker = $server->session;
	$locker->query('BEGIN; LOCK TABLE snowflake_lease');
	# Past its horizon nobody draws on a lease.
	my $keeper = wait_until('all writers to wait for the keeper, which waits for the table', 30, sub {
		$server->safe_psql('postgres', qq{SELECT pid FROM pg_stat_activity
			WHERE backend_type = 'snowflake keeper' AND wait_event_type = 'Lock'
			AND (SELECT count(*) FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND wait_event_type = 'Extension') = $writers});
	});
	kill('KILL', $keeper);
	push @ids, ids_of(@running);
	$locker->quit;
	start_behind($server, sub { starts_by_itself($server) }, @ids);

	note "the postmaster is killed ($how)";
	@running = start_writers($server);
	$server->crash;
	push @ids, ids_of(@running);
	start_behind($server, sub { $server->start }, @ids);

	# With its WAL writer held up, a server has nothing on disk that it did not itself
	# wait for. The session draws for longer than a lease lasts.
	note "everything is killed at once ($how)";
	push @ids, $server->draw;
	my $wal_writer = wait_until('the WAL writer to be idle', 30, sub {
		$server->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity
			WHERE backend_type = 'walwriter' AND wait_event = 'WalWriterMain'});
	});
	kill('STOP', $wal_writer);
	push @ids, split /\n/, $server->safe_psql('postgres', q{SELECT snowflake_nextvals(100)
		FROM generate_series(1, 1500) WHERE pg_sleep(0.001) IS NOT NULL});
	$server->crash('everything');
	start_behind($server, sub { $server->start }, @ids);

	# An administrator who ends the lease does not end what it was granted for.
	$server->safe_psql('postgres', q{SELECT snowflake_release_lease('default', 5)});
	push @ids, $server->draw(100_000);

	is_deeply([ grep { machine_id_of($_) != 5 } @ids ], [], "all IDs are of one machine ID ($how)");
	cmp_ok(scalar @ids, '>', 3 * $writers * $enough, "clients got many IDs ($how)");
	is_deeply([ duplicates_of(@ids) ], [], "no ID came twice ($how)");
	is($server->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM item'),
		0, "no committed ID is there twice ($how)");
	$server->stop;
}

#----------------------------------------------------------------------
# Other machine IDs are free
#----------------------------------------------------------------------

my $server = new_server('free', clock => 1);
my @before = $server->draw(1000);
$server->crash;
start_behind($server, sub { $server->start }, @before);
my @after;
my $took = seconds_of { @after = $server->draw(1000); };
cmp_ok($took, '<', 5, 'after a crash the first ID does not wait while a machine ID is free');
isnt(machine_id_of($after[0]), machine_id_of($before[0]), '... since it has another machine ID');
is_deeply([ duplicates_of(@before, @after) ], [], '... and no ID came twice');

done_testing();
