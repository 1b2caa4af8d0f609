# Servers, clients, and everything that may happen to them, for a while: no ID that
# reached a client may ever come again.
#
#     make chaos [MINUTES=2] [SEED=n]
#
# Four registries: two databases of server "a" (preloaded, with a synchronous standby
# that is promoted when its primary dies), the database of server "b" (not preloaded,
# few worker slots), and one that server "c" uses from afar, on "b". Clients draw IDs
# on all of them, one by one and in batches, and in transactions that are committed,
# rolled back or cut off. Every ID that has reached a client counts.
#
# It prints what was done, and for each kind of fault the longest time that clients of
# the server it befell were without an ID.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);

my $minutes = $ENV{MINUTES} || 2;
my $seed = $ENV{SEED} || int(rand(1 << 31));
srand($seed);
note("seed $seed");

my $dir = PostgreSQL::Test::Utils::tempdir('chaos');
my $client = "$dir/client";
system_or_bail($ENV{CXX} // 'c++', '-std=c++17', '-O2', '-o', $client,
	"$FindBin::RealBin/client.cpp", '-I/usr/include/postgresql', '-lpq');

#----------------------------------------------------------------------
# Servers and clients
#----------------------------------------------------------------------

my $conf = <<'CONF';
snowflake.lease_ttl = 2s
snowflake.max_clock_wait = 300ms
shared_buffers = 16MB
max_connections = 40
log_statement = none
log_min_messages = warning
restart_after_crash = on
CONF

my %server;
$server{a} = new_server('a', clock => 1, preload => 1, streaming => 1, conf => $conf);
$server{b} =
  new_server('b', clock => 1, conf => "$conf\nmax_worker_processes = 2\nmax_logical_replication_workers = 0");
$server{b}->safe_psql('postgres', 'CREATE DATABASE reg');
$server{b}->safe_psql('reg', 'CREATE EXTENSION snowflake');
$server{c} = new_server('c', clock => 1,
	conf => "$conf\nsnowflake.registry = '" . $server{b}->connstr('reg') =~ s/'/''/gr . "'");
$server{a}->safe_psql('postgres', 'CREATE DATABASE second');
$server{a}->safe_psql('second', 'CREATE EXTENSION snowflake');

# Where clients draw: the server and database, and the registry that answers for it.
my @places = (
	[ 'a', 'postgres', 'a/postgres' ],
	[ 'a', 'second', 'a/second' ],
	[ 'b', 'postgres', 'b/postgres' ],
	[ 'c', 'postgres', 'b/reg' ]);
foreach my $place (@places)
{
	$server{ $place->[0] }->safe_psql($place->[1],
		'CREATE TABLE chaos (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)');
}

my (%files, @clients, $started);

# A file for the IDs of a registry that were drawn at a server.
sub file_for
{
	my ($registry, $at) = @_;
	my $file = "$dir/ids." . ++$started;
	push @{ $files{$registry} }, { path => $file, at => $at };
	return $file;
}

sub start_clients
{
	my ($name) = @_;
	foreach my $place (grep { $_->[0] eq $name } @places)
	{
		foreach my $number (1, 2)
		{
			my $file = file_for($place->[2], $name);
			my $pid = fork() // die "fork: $!";
			if ($pid == 0)
			{
				open(STDERR, '>', "$file.errors");
				exec($client, $server{$name}->connstr($place->[1]) . ' connect_timeout=3',
					$file, $seed + $started);
				die "$client: $!";
			}
			push @clients, { pid => $pid, at => $name };
		}
	}
	return;
}

sub stop_clients
{
	my ($name) = @_;
	foreach my $client (grep { !defined $name || $_->{at} eq $name } @clients)
	{
		kill('TERM', $client->{pid});
		# one that waits for a server that does not answer ends the hard way
		eval { wait_until('a client to end', 10, sub { waitpid($client->{pid}, 1) != 0 }); 1 }
		  or kill('KILL', $client->{pid});
	}
	@clients = grep { defined $name && $_->{at} ne $name } @clients;
	return;
}

# IDs that the test itself draws count like those of clients.
sub draw_here
{
	my ($registry, $name, $database) = @_;
	my $status = $server{$name}->psql($database, 'SELECT snowflake_nextvals(100)', stdout => \my $ids);
	open(my $file, '>>', file_for($registry, 'test'));
	print $file "0 $_\n" foreach split /\n/, $ids // '';
	close $file;
	return $status == 0;
}

my $standby_number = 0;
my $standby;

sub add_standby
{
	my $primary = $server{a};
	my $name = 'standby' . ++$standby_number;
	$primary->backup($name);
	$standby = SnowflakeTest::Server->new($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->own_clock;
	$standby->start;
	$primary->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '*'");
	$primary->safe_psql('postgres', 'SELECT pg_reload_conf()');
	$primary->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	  or die 'the standby does not follow';
	return;
}

#----------------------------------------------------------------------
# Faults
#----------------------------------------------------------------------

sub any { return $_[ int(rand(@_)) ]; }

sub any_server { return any(sort keys %server); }

sub kill_process_named
{
	my ($name, $pattern, $seconds) = @_;
	my $postmaster = $server{$name}{_pid};
	my $deadline = clock_gettime(CLOCK_MONOTONIC) + $seconds;
	while (clock_gettime(CLOCK_MONOTONIC) < $deadline)
	{
		foreach my $pid (SnowflakeTest::children_of($postmaster))
		{
			open(my $file, '<', "/proc/$pid/cmdline") or next;
			my $command = <$file> // '';
			return 1 if $command =~ $pattern && kill('KILL', $pid);
		}
		usleep(500);
	}
	return 0;
}

sub wait_for_server
{
	my ($name) = @_;
	$server{$name}->poll_query_until('postgres', 'SELECT true') or die "server $name is not back";
	return;
}

my %fault = (
	'clock steps back a little' => sub {
		my $name = any_server();
		$server{$name}->set_clock(-rand(0.3));
		return $name;
	},
	'clock steps back far' => sub {
		my $name = any_server();
		$server{$name}->set_clock(-any(1, 5, 60, 3600) * (1 + rand()));
		return $name;
	},
	'clock jumps ahead' => sub {
		my $name = any_server();
		$server{$name}->set_clock('+' . any(1, 60, 3600, 86400, 30 * 86400));
		return $name;
	},
	'clock is set right' => sub {
		my $name = any_server();
		$server{$name}->set_clock(0);
		return $name;
	},
	'backend is killed' => sub {
		my $name = any_server();
		kill_process_named($name, qr/^postgres: .*\[local\]/, 1) or return;
		wait_for_server($name);
		return $name;
	},
	'keeper is killed' => sub {
		my $name = any_server();
		kill_process_named($name, qr/snowflake keeper/, 3) or return;
		wait_for_server($name);
		return $name;
	},
	'postmaster is killed' => sub {
		my $name = any_server();
		$server{$name}->crash;
		$server{$name}->start;
		return $name;
	},
	'power cut' => sub {
		my $name = any_server();
		$server{$name}->crash(1);
		$server{$name}->start;
		return $name;
	},
	'server is restarted' => sub {
		my $name = any_server();
		$server{$name}->stop(any('fast', 'immediate'));
		$server{$name}->start;
		return $name;
	},
	'worker slots fill up' => sub {
		my $occupant = $server{b}->session;
		$occupant->query('SET max_parallel_workers_per_gather = 2; SET ' . $server{b}->parallel_setting
			  . ' = on; SELECT pg_sleep(2.5)', 60);
		$occupant->quit;
		return 'b';
	},
	'database is copied and dropped' => sub {
		my $name = any('a', 'b');
		my $database = 'db' . ++$started;
		my $copy = $database . '_copy';
		my $it = $server{$name};
		$it->safe_psql('postgres', "CREATE DATABASE $database");
		$it->safe_psql($database, 'CREATE EXTENSION snowflake');
		draw_here("$name/$database", $name, $database);
		$it->psql('postgres', "CREATE DATABASE $copy TEMPLATE $database");
		draw_here("$name/$database", $name, $_) foreach ($database, $copy);
		$it->psql('postgres', "DROP DATABASE IF EXISTS $_") foreach ($copy, $database);
		return $name;
	},
	'standby is promoted' => sub {
		return if !defined $standby;
		stop_clients('a');
		$server{a}->crash(1);
		unlink $standby->data_dir . '/postgresql.auto.conf';
		$standby->reload;
		$standby->promote;
		$server{a} = $standby;
		undef $standby;
		start_clients('a');
		add_standby();
		return 'a';
	});

#----------------------------------------------------------------------
# The run
#----------------------------------------------------------------------

add_standby();
start_clients($_) foreach sort keys %server;

my (@events, %done);
my $end = clock_gettime(CLOCK_MONOTONIC) + $minutes * 60;
my @turn;
while (clock_gettime(CLOCK_MONOTONIC) < $end)
{
	# each kind in turn, in an order of chance
	@turn = sort { rand() <=> 0.5 } sort keys %fault if !@turn;
	my $kind = shift @turn;
	my $began = clock_gettime(CLOCK_MONOTONIC);
	my $at = $fault{$kind}->();
	next if !defined $at;
	$done{$kind}++;
	push @events, { kind => $kind, at => $at, began => $began * 1e6 };
	note(sprintf('%6.1f s: %s, %s', $minutes * 60 - $end + $began, $kind, $at));
	usleep(rand(1_500_000));
}

# After all of it everyone draws IDs again.
$server{$_}->set_clock(0) foreach keys %server;
foreach my $place (@places)
{
	wait_until("IDs of $place->[2]", 30, sub { draw_here($place->[2], $place->[0], $place->[1]) });
	pass("$place->[2]: IDs are drawn in the end");
}
stop_clients();

#----------------------------------------------------------------------
# What was found
#----------------------------------------------------------------------

my $total = 0;
foreach my $registry (sort keys %files)
{
	my @paths = grep { -e } map { $_->{path} } @{ $files{$registry} };
	my $count = qx(cat @paths | wc -l) + 0;
	my $twice = qx(cat @paths | cut -d' ' -f2 | sort -n -S 200M | uniq -d | head);
	$total += $count;
	cmp_ok($count, '>', 0, "$registry: IDs were drawn");
	is($twice, '', "$registry: no ID came twice");
}

# The longest time without an ID at each server, by the kind of the fault before it.
my %longest;
foreach my $name (sort keys %server)
{
	my @paths = grep { -e } map { $_->{path} } grep { $_->{at} eq $name } map { @$_ } values %files;
	my @here = grep { $_->{at} eq $name } @events;
	open(my $times, '-|', "cat @paths | cut -d' ' -f1 | sort -n -u -S 200M") or die "sort: $!";
	my ($before, $event) = (undef, undef);
	while (my $time = <$times>)
	{
		chomp $time;
		while (@here && $here[0]{began} < $time) { $event = shift @here }
		if (defined $before && defined $event && $time - $before > ($longest{ $event->{kind} } // 0))
		{
			$longest{ $event->{kind} } = $time - $before;
		}
		$before = $time;
	}
	close $times;
}

diag(sprintf('%d IDs in %s min, seed %d', $total, $minutes, $seed));
diag(sprintf('%-32s %6s %22s', 'fault', 'times', 'longest without an ID'));
foreach my $kind (sort keys %fault)
{
	diag(sprintf('%-32s %6d %20.2f s', $kind, $done{$kind} // 0, ($longest{$kind} // 0) / 1e6));
}
if ($minutes >= 2)
{
	ok(defined $done{$_}, "fault happened: $_") foreach sort keys %fault;
}

$_->stop('immediate') foreach grep { defined } values %server, $standby;
done_testing();
