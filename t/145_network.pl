# A network that loses packets between a server and its registry, without a word to
# either: sessions go on to the end of their lease, then get an error that says so, never
# wait for longer than snowflake.acquire_timeout, and go on by themselves when the network
# is well again. What it cut in the middle does not stay in the registry.
#
# The test runs in a network of its own, which an ordinary user may have where the kernel
# lets him, and the registry in another one. Packets are lost because a wrong hardware
# address is used for them.
use strict;
use warnings FATAL => 'all';

use Test::More;

# Before anything that takes hold of the test's output.
BEGIN
{
	my @own_network = qw(unshare --user --map-current-user --keep-caps --net);
	if (!$ENV{OWN_NETWORK})
	{
		plan skip_all => 'iproute2 is not installed' if !grep { -x "$_/ip" } split /:/, $ENV{PATH};
		my $why = qx(@own_network ip link add name here type veth peer name there 2>&1);
		plan skip_all => "no network of its own may be made here: $why" if $? != 0;
		$ENV{OWN_NETWORK} = 1;
		exec(@own_network, $^X, (map { "-I$_" } @INC), $0) or die "unshare: $!";
	}
}

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeFleet;
use SnowflakeTest;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time);

my $ttl = 2;
my $acquire_timeout = 1;

# For the way of an error from the server to the test, on a busy machine.
my $margin = 1.5;

#----------------------------------------------------------------------
# The network
#----------------------------------------------------------------------

my %address = (here => '192.0.2.1', there => '192.0.2.2', nowhere => '192.0.2.3');

# What holds the registry's network ends when this test does.
my $there = open(my $holder, '|-', 'unshare', '--net', 'cat') // die "unshare: $!";
my %in = (here => [], there => [ 'nsenter', "--net=/proc/$there/ns/net" ]);
my $own = readlink '/proc/self/ns/net';
wait_until('another network', 30, sub { (readlink("/proc/$there/ns/net") // $own) ne $own });

system_or_bail(qw(ip link add name here type veth peer name there netns), $there);
foreach my $side ('here', 'there')
{
	system_or_bail(@{ $in{$side} }, qw(ip link set lo up));
	system_or_bail(@{ $in{$side} }, qw(ip address add), "$address{$side}/29", 'dev', $side);
	system_or_bail(@{ $in{$side} }, qw(ip link set), $side, 'up');
}

# Loses all packets from `side` to `other`.
sub lose_packets
{
	my ($side, $other) = @_;
	system_or_bail(@{ $in{$side} }, qw(ip neighbour replace), $address{$other},
		qw(lladdr 02:00:00:00:00:99 nud permanent dev), $side);
	return;
}

my %opposite = (here => 'there', there => 'here');

sub lose_packets_of { lose_packets($_, $opposite{$_}) foreach @_; return; }

sub lose_none
{
	system_or_bail(@{ $in{$_} }, qw(ip neighbour flush to), $address{ $opposite{$_} }, 'nud', 'all')
	  foreach sort keys %opposite;
	return;
}

#----------------------------------------------------------------------
# The servers
#----------------------------------------------------------------------

my $registry = SnowflakeTest::Server->new('registry');
$registry->init;
$registry->append_conf('postgresql.conf', "listen_addresses = '$address{there}'");
$registry->append_conf('pg_hba.conf', "host all all $address{here}/32 trust");
system_or_bail(@{ $in{there} }, 'pg_ctl', '-w', '-D', $registry->data_dir, '-l', $registry->logfile, 'start');
$registry->_update_pid(1);
my $conninfo = make_registry($registry, 'ids', "host=$address{there} port=" . $registry->port);
my $where = qr/"\Q$address{there}\E", port \d+/;

my $server = new_server('server', preload => 1, conf => <<"CONF");
snowflake.lease_ttl = ${ttl}s
snowflake.acquire_timeout = ${acquire_timeout}s
snowflake.max_machine_ids = 1
snowflake.registry = '$conninfo'
CONF

my (@ids, $longest);
my $session = $server->session;

# One ID, or the error in its place.
sub draw
{
	my ($id, $error);
	my $took = seconds_of { ($id, $error) = $session->query('SELECT snowflake_nextval()') };
	$longest = $took if $took > $longest;
	push @ids, $id if $error eq '';
	return $error;
}

sub draw_until
{
	my ($what, $condition) = @_;
	return wait_until($what, 60, sub { my $error = draw(); return $condition->($error) });
}

# In the registry, where no packet is needed for it.
sub newest_horizon
{
	return $registry->safe_psql('ids', 'SELECT max(horizon) FROM snowflake_lease');
}

sub draw_with_fresh_lease
{
	my $renewals = 'SELECT renewals + claims FROM snowflake_stats';
	my $before = $session->query($renewals);
	draw_until('a fresh lease', sub { $session->query($renewals) > $before });
	return;
}

# The process in the registry that serves a keeper and is in some state, or undef.
sub keeper_that
{
	my ($condition) = @_;
	return $registry->safe_psql('ids',
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'snowflake keeper' AND $condition")
	  || undef;
}

sub check_messages
{
	my ($name, $says) = @_;
	like($server->error_of('SELECT snowflake_nextval()'),
		qr/ERROR:  could not get a lease for generator "default".*DETAIL:  .*$says.*HINT:  /s,
		"$name: an error says what is wrong");
	cmp_ok($longest, '<', $acquire_timeout + $margin,
		sprintf('... and no call took much longer than snowflake.acquire_timeout (%.2f s)', $longest));
	return;
}

sub check_healing
{
	lose_none();
	my $took = seconds_of { draw_until('an ID again', sub { $_[0] eq '' }) };
	cmp_ok($took, '<', 15, sprintf('... all is well when it is over (%.2f s)', $took));
	return;
}

#----------------------------------------------------------------------
# Between two renewals
#----------------------------------------------------------------------

$longest = 0;
foreach my $lost ([ 'here', 'there' ], ['here'], ['there'])
{
	my $name = @$lost == 2 ? 'no packet arrives' : "no packet from $lost->[0] arrives";
	draw_with_fresh_lease();
	my $horizon = newest_horizon();
	lose_packets_of(@$lost);
	my $began = time;
	$longest = 0;
	draw_until("$name: an error", sub { $_[0] });
	cmp_ok(time * 1000, '>', $horizon + EPOCH_MS, "$name: the session goes on to the end of its lease");
	cmp_ok(time_of($ids[-1]), '<', ($began + $ttl) * 1000 + 100, '... and not past it');
	check_messages($name, qr/could not connect to the registry: connection to $where timed out/);
	check_healing();
}

#----------------------------------------------------------------------
# In the middle of a renewal
#----------------------------------------------------------------------

# Packets are lost while a renewal waits at $lock in the registry, and then it goes on.
# Returns its session's process there, and the horizon until then.
sub lose_in_the_middle
{
	my ($lock, @lost) = @_;
	my $holding = $registry->session('ids');
	draw_with_fresh_lease();
	$holding->query("BEGIN; $lock");
	my $waiting;
	draw_until('the keeper to wait', sub { $waiting = keeper_that("wait_event_type = 'Lock'") });
	lose_packets_of(@lost);
	my $horizon = $holding->query('SELECT max(horizon) FROM snowflake_lease');
	$holding->quit;
	return ($waiting, $horizon);
}

sub check_in_the_middle
{
	my ($name, $horizon) = @_;
	$longest = 0;
	draw_until("$name: an error", sub { $_[0] });
	cmp_ok(tick_of($ids[-1]) >> 12, '<', $horizon, '... no ID is past the horizon that was heard of');
	check_messages($name, $where);
	check_healing();
	return;
}

foreach my $lost ([ 'here', 'there' ], ['there'])
{
	my $name = 'the answer to a renewal is lost' . (@$lost == 2 ? ', and all else' : '');
	my ($pid, $horizon) = lose_in_the_middle('LOCK TABLE snowflake_lease', @$lost);
	# nothing tells the registry that the other side is gone
	my $ended = eval { wait_until('its end', 30, sub { !keeper_that("pid = $pid") }) };
	ok($ended, "$name: the registry does not keep its transaction");
	check_in_the_middle($name, $horizon);
}

$registry->safe_psql('ids', <<'SQL');
CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT OR UPDATE ON snowflake_lease
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit();
SQL
my $name = 'the answer to a commit is lost';
my ($pid, $horizon) = lose_in_the_middle('SELECT pg_advisory_xact_lock(1)', 'there');
wait_until('the commit', 30, sub { keeper_that("pid = $pid AND state = 'idle'") });
cmp_ok(newest_horizon(), '>', $horizon, "$name: the registry has the new horizon");
check_in_the_middle($name, $horizon);

#----------------------------------------------------------------------
# Several hosts, the first of which is gone
#----------------------------------------------------------------------

lose_packets('here', 'nowhere');
$server->append_conf('postgresql.conf',
	"snowflake.registry = '" . $conninfo =~ s/host=\S+/host=$address{nowhere},$address{there}/r . "'");
$server->restart;
$session = $server->session;
$longest = 0;
is(draw(), '', 'of several hosts one that is gone does not use up the time of the others');
cmp_ok($longest, '<', $acquire_timeout + $margin, sprintf('... (%.2f s)', $longest));

ok(is_increasing(@ids), q{a session's IDs increase, whatever is lost});
done_testing();
