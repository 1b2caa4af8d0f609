# Three servers draw from one registry, on one of them, with clocks that are hours
# apart: no ID comes twice, and no machine ID has two holders.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;

my $hour = 3600;

# So few machine IDs that they are used again by servers that were restarted.
my $conf = listen_on_loopback() . <<'CONF';
snowflake.lease_ttl = 3s
snowflake.acquire_timeout = 20s
snowflake.machine_ids = '0-5'
snowflake.max_machine_ids = 1
CONF

my %clock = (right => 0, fast => $hour, slow => -$hour);
my %server = map { $_ => new_server($_, clock => 1, conf => $conf) } sort keys %clock;
my $registry = make_registry($server{right}, 'ids');

# All that happens to leases, so that nothing is missed between two looks.
$server{right}->safe_psql('ids', <<'SQL');
CREATE TABLE history (
    n bigserial, at timestamptz DEFAULT clock_timestamp(),
    machine_id int, instance bigint, holder text, horizon bigint, expires_at timestamptz);
CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.history (machine_id, instance, holder, horizon, expires_at)
    VALUES (NEW.machine_id, NEW.instance, NEW.holder, NEW.horizon, NEW.expires_at);
    RETURN NULL;
END $$;
CREATE TRIGGER remember AFTER INSERT OR UPDATE ON snowflake_lease
    FOR EACH ROW EXECUTE FUNCTION remember();
SQL

foreach my $name (sort keys %server)
{
	my $it = $server{$name};
	make_client_table($it);
	$it->safe_psql('postgres', 'CREATE DATABASE second TEMPLATE postgres');
	$it->append_conf('postgresql.conf', "snowflake.registry = '$registry'");
	$it->set_clock($clock{$name});
	$it->restart;
}

sub registry_value { return $server{right}->safe_psql('ids', $_[0]); }

#----------------------------------------------------------------------
# Under load, with restarts
#----------------------------------------------------------------------

# A server's clients by run, since each run is another holder.
my %run;

sub start_clients_of
{
	my ($name) = @_;
	my $who = "$name, run " . ++$run{$name};
	start_client($server{$name}->connstr($_), $who) foreach 'postgres', 'second';
	wait_until("IDs of $who", 60, sub { count_drawn($who) > 100 });
	return;
}

# True once the run's clients have seen their lease renewed a few times.
sub wait_for_renewals
{
	my ($name, $count) = @_;
	wait_until("renewals at $name", 60, sub {
		$server{$name}->safe_psql('postgres', 'SELECT renewals FROM snowflake_stats') >= $count;
	});
	return;
}

start_clients_of($_) foreach sort keys %server;
wait_for_renewals($_, 3) foreach sort keys %server;

foreach my $round (1 .. 5)
{
	# the machine IDs of the fast one lie in the others' future, those of the others are
	# free for it at once
	stop_clients("fast, run $run{fast}");
	$server{fast}->stop('immediate');
	$server{fast}->start;
	start_clients_of('fast');
}
wait_for_renewals($_, 5) foreach sort keys %server;
stop_clients();

foreach my $name (sort keys %server)
{
	cmp_ok($_->{count}, '>', 100, "$_->{who}: drew IDs")
	  foreach map { { who => $_, count => count_drawn($_) } }
	  map { "$name, run $_" } 1 .. $run{$name};
}
is_deeply([ drawn_twice() ], [], 'no ID came twice');

#----------------------------------------------------------------------
# Who held what
#----------------------------------------------------------------------

# For each run and machine ID, the range of ticks that it was used in.
my %used;
foreach my $who (map { $_->{who} } drawings())
{
	next if $used{$who};
	foreach my $id (ids_drawn($who))
	{
		my $range = $used{$who}{ machine_id_of($id) } //= [ tick_of($id), tick_of($id) ];
		$range->[0] = tick_of($id) if tick_of($id) < $range->[0];
		$range->[1] = tick_of($id) if tick_of($id) > $range->[1];
	}
}

my @overlaps;
my %holders;
foreach my $who (sort keys %used)
{
	foreach my $machine_id (keys %{ $used{$who} })
	{
		my $range = $used{$who}{$machine_id};
		foreach my $other (@{ $holders{$machine_id} })
		{
			push @overlaps, "$machine_id: $who and $other->[0]"
			  if $range->[0] <= $other->[2] && $other->[1] <= $range->[1];
		}
		push @{ $holders{$machine_id} }, [ $who, @$range ];
	}
}
is_deeply(\@overlaps, [], 'no two holders of a machine ID drew at the same time');

is(registry_value(<<'SQL'), '', 'in the registry no lease changed hands before it had ended');
SELECT machine_id, at FROM (
    SELECT *, lag(instance) OVER before AS old_instance, lag(expires_at) OVER before AS old_expiry
    FROM history WINDOW before AS (PARTITION BY machine_id ORDER BY n)) AS h
WHERE old_instance <> instance AND at < old_expiry
SQL
is(registry_value(<<'SQL'), '', '... and no horizon went down');
SELECT machine_id, at FROM (
    SELECT *, lag(horizon) OVER (PARTITION BY machine_id ORDER BY n) AS old_horizon
    FROM history) AS h
WHERE horizon < old_horizon
SQL
cmp_ok(registry_value('SELECT count(*) - count(DISTINCT machine_id) FROM
	(SELECT DISTINCT machine_id, instance FROM history) AS h'),
	'>', 0, '... though some did change hands');
is(registry_value('SELECT count(*) FROM (SELECT instance FROM history
		GROUP BY instance HAVING count(DISTINCT machine_id) > 1) AS h'),
	0, 'all databases of a server draw from one lease');

#----------------------------------------------------------------------
# What administrators see
#----------------------------------------------------------------------

foreach my $name (sort keys %server)
{
	my $port = $server{$name}->port;
	my ($id) = $server{$name}->draw(1);
	keep_id("$name, last", $id);
	like(registry_value('SELECT holder FROM snowflake_lease WHERE machine_id = '
			. machine_id_of($id)), qr/:$port$/, "$name: snowflake_lease shows that it holds its lease");
	is($server{$name}->safe_psql('postgres', 'SELECT count(*) FROM snowflake_lease'), 0,
		'... and its own lease table is empty');
	my $skew = $server{$name}->safe_psql('postgres',
		'SELECT extract(epoch FROM registry_skew)::int FROM snowflake_stats');
	cmp_ok(abs($skew + $clock{$name}), '<=', 2, "... snowflake_stats shows a skew of $skew s");
	cmp_ok(abs(time_of($id) / 1000 - time - $clock{$name}), '<', 30, '... and its IDs are of its time');
}

#----------------------------------------------------------------------
# A role without rights
#----------------------------------------------------------------------

$server{right}->safe_psql('ids', 'CREATE ROLE stranger LOGIN');
$server{slow}->append_conf('postgresql.conf',
	"snowflake.registry = '" . $registry =~ s/user=\w+/user=stranger/r . "'");
$server{slow}->restart;
like($server{slow}->error_of('SELECT snowflake_nextval()'),
	qr/could not get a lease.*DETAIL: .*permission denied for function snowflake_claim_lease/s,
	'a role without rights is refused');
my $rights = registry_value(<<'SQL');
SELECT string_agg(p.proname, ',' ORDER BY p.proname)
FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'snowflake'
WHERE has_function_privilege('snowflake_keeper', p.oid, 'EXECUTE')
  AND NOT has_function_privilege('stranger', p.oid, 'EXECUTE')
SQL
is($rights, join(',', map { "snowflake_$_" } qw(claim_lease lease_outlook renew_lease resume_lease)),
	q{the keeper's role may call the lease functions});
is(registry_value(q{SELECT has_table_privilege('snowflake_keeper', 'snowflake_lease',
	'INSERT, UPDATE, DELETE, TRUNCATE')}), 'f', q{... and cannot write the table itself});

is_deeply([ drawn_twice() ], [], 'no ID came twice, to the end');
done_testing();
