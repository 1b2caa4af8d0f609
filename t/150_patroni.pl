# A Patroni cluster with a synchronous standby: IDs go on at once under the new leader,
# and no ID that reached a client comes twice, whether the registry is the application's
# own database or one that is shared, beside it on the cluster.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use HTTP::Tiny;
use IPC::Run ();
use MIME::Base64;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

sub is_installed { return scalar grep { -x "$_/$_[0]" } split /:/, $ENV{PATH}; }

foreach my $program ('patroni', 'etcd')
{
	plan(skip_all => "$program is not installed") if !is_installed($program);
}

# How long a new leader may be without IDs once it takes writes.
my $longest_pause = 1;

# Patroni's least; after it a leader that has died is replaced.
my $leader_ttl = 20;

#----------------------------------------------------------------------
# The cluster
#----------------------------------------------------------------------

my $dir = PostgreSQL::Test::Utils::tempdir('patroni');
my $socket_dir = PostgreSQL::Test::Utils::tempdir_short();
my ($etcd_port, $peer_port) = map { PostgreSQL::Test::Cluster::get_free_port() } 1 .. 2;
my %node = map {
	$_ => {
		name => $_,
		data => "$dir/$_",
		port => PostgreSQL::Test::Cluster::get_free_port(),
		rest => PostgreSQL::Test::Cluster::get_free_port()
	}
} 'node1', 'node2';
chomp(my $bindir = `pg_config --bindir`);

my %started;    # process IDs by name

sub start_program
{
	my ($name, @command) = @_;
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		open(STDOUT, '>>', "$dir/$name.log") or die "$dir/$name.log: $!";
		open(STDERR, '>&', \*STDOUT) or die "$dir/$name.log: $!";
		exec(@command) or die "$command[0]: $!";
	}
	$started{$name} = $pid;
	return;
}

sub kill_program
{
	my ($name) = @_;
	my $pid = delete $started{$name} // return;
	kill('KILL', $pid);
	waitpid($pid, 0);
	return;
}

sub postmaster_of
{
	my ($node) = @_;
	open(my $file, '<', "$node->{data}/postmaster.pid") or return;
	my $pid = <$file> // return;
	return $pid + 0;
}

# All at once, as if the power had gone.
sub kill_node
{
	my ($node) = @_;
	my $postmaster = postmaster_of($node);
	my @all = ($postmaster, SnowflakeTest::children_of($postmaster));
	kill('STOP', $started{ $node->{name} }, @all);
	kill_program($node->{name});
	kill('KILL', @all);
	return;
}

# What runs with files of this test.
sub processes_of_test
{
	my @found;
	foreach my $file (glob '/proc/[0-9]*/cmdline')
	{
		open(my $cmdline, '<', $file) or next;
		my $command = <$cmdline> // '';
		push @found, $1 if index($command, "$dir/") >= 0 && $file =~ /(\d+)/;
	}
	return @found;
}

END
{
	my $status = $?;
	stop_clients();
	kill_program($_) foreach sort grep { $_ ne 'etcd' } keys %started;
	foreach my $node (values %node)
	{
		PostgreSQL::Test::Utils::system_log('pg_ctl', '-D', $node->{data}, '-m', 'immediate', 'stop')
		  if postmaster_of($node);
	}
	kill_program('etcd');
	# a server that Patroni was just about to start
	eval {
		wait_until('all to have ended', 30, sub { !kill('KILL', processes_of_test()) });
	} or warn $@;
	if ($status != 0)
	{
		diag("end of $_:\n" . qx(tail -n 30 $_)) foreach glob("$dir/*.log");
	}
	$? = $status;
}

sub configuration
{
	my ($node) = @_;
	return <<"YAML";
scope: snowflake
name: $node->{name}
restapi:
  listen: 127.0.0.1:$node->{rest}
  connect_address: 127.0.0.1:$node->{rest}
etcd3:
  hosts: 127.0.0.1:$etcd_port
bootstrap:
  dcs:
    ttl: $leader_ttl
    loop_wait: 1
    retry_timeout: 3
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters:
        max_wal_senders: 5
        max_replication_slots: 5
        wal_keep_size: 64MB
        fsync: "off"
        snowflake.lease_ttl: 5s
  initdb:
    - encoding: UTF8
    - data-checksums
    - locale: C
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
postgresql:
  listen: 127.0.0.1:$node->{port}
  connect_address: 127.0.0.1:$node->{port}
  data_dir: $node->{data}
  bin_dir: $bindir
  basebackup:
    - checkpoint: fast
  pgpass: $dir/$node->{name}.pgpass
  authentication:
    superuser: {username: postgres, password: unused}
    replication: {username: replicator, password: unused}
    rewind: {username: rewinder, password: unused}
  parameters:
    unix_socket_directories: $socket_dir
    shared_buffers: 32MB
    max_connections: 50
YAML
}

sub start_node
{
	my ($node) = @_;
	my $file = "$dir/$node->{name}.yml";
	open(my $yaml, '>', $file) or die "$file: $!";
	print $yaml configuration($node);
	close $yaml;
	start_program($node->{name}, 'patroni', $file);
	return;
}

# A node's REST interface: the status, and what it said.
sub ask
{
	my ($node, $method, $path, $content) = @_;
	my $answer = HTTP::Tiny->new(timeout => 60)->request($method,
		"http://127.0.0.1:$node->{rest}/$path", { content => $content // '' });
	return wantarray ? ($answer->{status}, $answer->{content}) : $answer->{status};
}

sub wait_for_role
{
	my ($node, $role, $bound) = @_;
	wait_until("$node->{name} to be $role", $bound // 90, sub { ask($node, 'GET', $role) == 200 });
	return;
}

sub connstr { return "host=127.0.0.1 port=$_[0]->{port} user=postgres dbname=$_[1]"; }

sub sql
{
	my ($node, $database, $sql) = @_;
	my ($rows, $messages) = ('', '');
	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', connstr($node, $database), '-f', '-' ],
		'<', \$sql, '>', \$rows, '2>', \$messages) or die "psql: $messages";
	chomp $rows;
	return $rows;
}

start_program(
	'etcd', 'etcd',
	'--name' => 'etcd', '--data-dir' => "$dir/etcd", '--unsafe-no-fsync',
	'--listen-client-urls' => "http://127.0.0.1:$etcd_port",
	'--advertise-client-urls' => "http://127.0.0.1:$etcd_port",
	'--listen-peer-urls' => "http://127.0.0.1:$peer_port",
	'--initial-advertise-peer-urls' => "http://127.0.0.1:$peer_port",
	'--initial-cluster' => "etcd=http://127.0.0.1:$peer_port");
wait_until('etcd', 60, sub {
	HTTP::Tiny->new(timeout => 5)->get("http://127.0.0.1:$etcd_port/health")->{status} == 200;
});
start_node($node{node1});
wait_for_role($node{node1}, 'primary');
start_node($node{node2});

# The application's database, one to be shared as a registry, and one whose IDs are
# from a sequence: it shows when the cluster takes writes.
sql($node{node1}, 'postgres', "CREATE DATABASE $_") foreach 'app', 'ids', 'plain';
sql($node{node1}, 'app', <<'SQL');
CREATE EXTENSION snowflake;
CREATE TABLE chaos (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int);
SQL
sql($node{node1}, 'ids', "CREATE EXTENSION snowflake;\n" . SnowflakeFleet::documented_setup());
sql($node{node1}, 'plain', <<'SQL');
CREATE SEQUENCE plain;
CREATE TABLE chaos (id bigint DEFAULT nextval('plain'), n int);
CREATE FUNCTION snowflake_nextvals(count int) RETURNS SETOF bigint LANGUAGE sql
    AS $$ SELECT nextval('plain') FROM generate_series(1, count) $$;
SQL
wait_for_role($node{node2}, 'synchronous');

my $ports = join ',', map { $node{$_}{port} } 'node1', 'node2';
my $cluster = "host=127.0.0.1,127.0.0.1 port=$ports target_session_attrs=read-write";

sub set_registry
{
	my ($value) = @_;
	my ($status, $answer) = ask($node{node1}, 'PATCH', 'config',
		qq({"postgresql": {"parameters": {"snowflake.registry": "$value"}}}));
	die "could not change the configuration: $answer" if $status != 200;
	foreach my $node (values %node)
	{
		my $setting = q{SELECT coalesce(current_setting('snowflake.registry', true), '')};
		wait_until("$node->{name} to have the setting", 60,
			sub { sql($node, 'app', $setting) eq $value });
	}
	return;
}

sub roles
{
	return ask($node{node1}, 'GET', 'primary') == 200 ? @node{ 'node1', 'node2' } : @node{ 'node2', 'node1' };
}

#----------------------------------------------------------------------
# Under load
#----------------------------------------------------------------------

start_client("$cluster user=postgres dbname=$_", $_) foreach 'app', 'app', 'plain', 'plain';
wait_until("IDs of $_", 60, sub { count_drawn($_) > 100 }) foreach 'app', 'plain';

# After `lead` has the lead: how long IDs were away, and how much of that time the
# cluster took writes.
sub check_pause
{
	my ($name, $lead, $began) = @_;
	wait_for_role($lead, 'primary', $leader_ttl + 60);
	# of the new leader, not the last ones of the old
	my $promoted = sql($lead, 'app', "SELECT 1") && clock_gettime(CLOCK_MONOTONIC) * 1e6;
	foreach my $who ('app', 'plain')
	{
		wait_until("IDs of $who again", 60, sub { last_drawn_at($who) > $promoted });
	}
	# the longest pause since it began is the failover
	my %back;
	foreach my $who ('app', 'plain')
	{
		my ($longest, $before) = (0, undef);
		foreach my $time (times_drawn($who))
		{
			if (defined $before && $time >= $began && $time - $before > $longest)
			{
				$longest = $time - $before;
				$back{$who} = $time;
			}
			$before = $time;
		}
		note(sprintf('%s: %s was without writes for %.2f s', $name, $who, $longest / 1e6));
	}
	my $pause = ($back{app} - $back{plain}) / 1e6;
	cmp_ok($pause, '<', $longest_pause,
		sprintf('%s: IDs are back %.2f s after the new leader takes writes', $name, $pause));
	return;
}

sub switch_over
{
	my ($name) = @_;
	my ($leader, $standby) = roles();
	wait_for_role($standby, 'synchronous');
	my $began = clock_gettime(CLOCK_MONOTONIC) * 1e6;
	my ($status, $answer) = ask($leader, 'POST', 'switchover',
		qq({"leader": "$leader->{name}", "candidate": "$standby->{name}"}));
	is($status, 200, "$name: $answer");
	check_pause($name, $standby, $began);
	wait_for_role($leader, 'synchronous');
	return;
}

switch_over('switchover, own registry');
set_registry("$cluster dbname=ids user=snowflake_keeper");
switch_over('switchover, shared registry');
is(sql((roles())[0], 'ids', 'SELECT count(*) > 1 FROM snowflake_lease'), 't',
	'the registry knows of leases of both');

# Patroni and PostgreSQL die at once.
my ($leader, $standby) = roles();
wait_for_role($standby, 'synchronous');
my $began = clock_gettime(CLOCK_MONOTONIC) * 1e6;
kill_node($leader);
check_pause('kill -9 of the leader, shared registry', $standby, $began);
start_node($leader);
wait_for_role($leader, 'synchronous');
is(sql($leader, 'app', 'SELECT pg_is_in_recovery() AND count(*) > 0 FROM chaos'), 't',
	'the old leader joins again, with the rows');

# Patroni dies and PostgreSQL stays: a leader that nobody has told, beside the new one.
set_registry('');
stop_clients();
($leader, $standby) = roles();
my $old = 'the old leader';
my $new = 'the new leader';
start_client(connstr($leader, 'app') . ' target_session_attrs=read-write', $old) foreach 1 .. 2;
start_client(connstr($standby, 'app') . ' target_session_attrs=read-write', $new) foreach 1 .. 2;
wait_until("IDs of $old", 60, sub { count_drawn($old) > 100 });
kill_program($leader->{name});
# what is done by itself when the leader's time is over
my $gone = HTTP::Tiny->new(timeout => 60)->post("http://127.0.0.1:$etcd_port/v3/kv/deleterange",
	{ content => '{"key": "' . encode_base64('/service/snowflake/leader', '') . '"}' });
like($gone->{content}, qr/"deleted":"1"/, 'the leader has lost its lock') or diag explain $gone;
wait_for_role($standby, 'primary');

# Its inserts and its renewals wait for the standby that it has no longer. What only
# draws IDs does not, until its lease ends.
my (@late, $error);
wait_until("$old to be without IDs", 60, sub {
	my $ids = eval {
		sql($leader, 'app', q{SET snowflake.acquire_timeout = '1s'; SELECT snowflake_nextvals(1000)});
	};
	push @late, split /\n/, $ids if defined $ids;
	return $error = $@;
});
wait_until("IDs of $new", 60, sub { count_drawn($new) > 1000 });
is(sql($leader, 'app', 'SELECT pg_is_in_recovery()'), 'f', 'both take themselves for the leader');
keep_id($old, @late);
cmp_ok(scalar @late, '>', 0, sprintf('the old one draws %d IDs more', scalar @late));
like($error, qr/could not get a lease for generator "default"/, '... and then gets no lease');
cmp_ok(tick_of($late[-1]) >> 12, '<', sql($leader, 'app', 'SELECT max(horizon) FROM snowflake_lease'),
	'... none is past its horizon');

stop_clients();
cmp_ok(count_drawn('app'), '>', 1000, 'IDs were drawn all the time');
is_deeply([ drawn_twice('app', $old, $new) ], [], 'no ID that reached a client came twice');
done_testing();
