# Many databases in one server, with PostgreSQL's own number of worker slots: IDs are
# drawn from all of them in turn, each from its own registry, then all from one.
#
# DATABASES=1000 is what it was made for; a few do for every day. What it measures is
# in its log.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use List::Util qw(max);
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $many = $ENV{DATABASES} || 30;

# A round through all of them takes about half of that.
my $ttl = max(3, int($many * 0.03));

my $server = new_server('main', preload => 1, conf => listen_on_loopback() . <<"CONF");
snowflake.lease_ttl = ${ttl}s
snowflake.acquire_timeout = 20s
autovacuum = off
log_statement = none
CONF
my $registry = make_registry($server, 'ids');

# KiB of memory that the server's processes use by themselves or, each its part, together.
sub memory_used
{
	my $sum = 0;
	foreach my $pid ($server->{_pid}, SnowflakeTest::children_of($server->{_pid}))
	{
		open(my $file, '<', "/proc/$pid/smaps_rollup") or next;
		$sum += $_ foreach map { /^Pss:\s+(\d+)/ } <$file>;
	}
	return $sum;
}

# One ID from each database, each in a session of its own: hashes of the ID and how
# long it took to draw, in ms.
sub round
{
	my $script = "\\timing on\n" . join '',
	  map { "\\connect db$_\nSELECT snowflake_nextval();\n" } 1 .. $many;
	my @drawn;
	foreach (split /\n/, $server->safe_psql('postgres', $script, timeout => 600))
	{
		push @drawn, { id => $_ } if /^\d+$/;
		$drawn[-1]{ms} = $1 if /^Time: ([\d.]+) ms/;
	}
	return @drawn;
}

sub stat_of { return $server->safe_psql('postgres', "SELECT $_[0] FROM snowflake_stats"); }

$server->safe_psql('postgres', join("\n", map { "CREATE DATABASE db$_ TEMPLATE postgres;" } 1 .. $many),
	timeout => 3000);

foreach my $kind ('own registries', 'one shared registry')
{
	my $shared = $kind =~ /shared/;
	$server->append_conf('postgresql.conf', "snowflake.registry = '$registry'") if $shared;
	$server->restart;
	my $before = memory_used();

	my @drawn = round();
	is(scalar @drawn, $many, "$many databases, $kind: each draws its first ID");
	my @times = sort { $a <=> $b } map { $_->{ms} } @drawn;
	my %machine_ids = map { machine_id_of($_->{id}) => 1 } @drawn;
	is(scalar keys %machine_ids, $shared ? 1 : $many,
		$shared ? '... all under one machine ID' : '... each under a machine ID of its own')
	  if $many < 1024;

	# in turn, until their leases have been renewed
	my $wanted = stat_of('renewals') + ($shared ? 3 : $many);
	my $began = clock_gettime(CLOCK_MONOTONIC);
	my @again;
	while (stat_of('renewals') < $wanted && @again < 20 * $many)
	{
		push @again, round();
	}
	my $took = clock_gettime(CLOCK_MONOTONIC) - $began;
	my $renewals = stat_of('renewals');
	cmp_ok($renewals, '>=', $wanted, '... leases are renewed while they draw');
	is(stat_of('failures'), 0, '... nor any keeper');
	my @ids = map { $_->{id} } @drawn, @again;
	is_deeply([ duplicates_of(@ids) ], [], '... no ID came twice') if $shared || $many < 1024;

	diag(sprintf('%d databases, %s: first ID %.1f ms (median), %.1f ms (99%%), %.1f ms (longest), %.2f s for all; '
			. '%d renewals in %.1f s, %.1f a second; memory %d KiB before, %d KiB after',
			$many, $kind, $times[ @times / 2 ], $times[ @times * 0.99 ], $times[-1], List::Util::sum(@times) / 1000,
			$renewals, $took, $renewals / $took, $before, memory_used()));
}
diag(sprintf('shared memory: %d KiB, whatever the number of databases',
	$server->safe_psql('postgres',
		q{SELECT sum(allocated_size) / 1024 FROM pg_shmem_allocations WHERE name LIKE '%snowflake%'})));
done_testing();
