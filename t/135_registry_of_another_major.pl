# A registry is shared by servers of two major versions of PostgreSQL, wherever it is:
# leases are claimed, renewed and resumed, and no ID comes twice.
# Runs from PostgreSQL 16 on, with the extension in an older one too, beside this one;
# scripts/check-majors sees to that.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;

my $older = older_installation()
  or plan skip_all => 'no older PostgreSQL with the extension is here';

my $conf = listen_on_loopback() . <<'CONF';
snowflake.lease_ttl = 3s
snowflake.acquire_timeout = 20s
snowflake.max_machine_ids = 1
CONF
my %server = (
	older => new_server('older', preload => 1, conf => $conf, installation => $older),
	newer => new_server('newer', preload => 1, conf => $conf));
make_client_table($_) foreach values %server;

sub set
{
	my ($server, $name, $value) = @_;
	$server->append_conf('postgresql.conf', "$name = '$value'");
	$server->reload;
	$server->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'")
	  or die "$name has not changed";
	return;
}

foreach my $where (sort keys %server)
{
	my $far = $where eq 'older' ? 'newer' : 'older';
	my $registry = make_registry($server{$where}, 'ids');
	set($_, 'snowflake.registry', $registry) foreach values %server;

	my %who = map { $_ => "$_ server, registry on the $where one" } keys %server;
	foreach my $name (sort keys %server)
	{
		$server{$name}->safe_psql('postgres', 'SELECT snowflake_stats_reset()');
		start_client($server{$name}->connstr('postgres'), $who{$name});
	}
	foreach my $name (sort keys %server)
	{
		wait_until("renewals of the $who{$name}", 60, sub {
			$server{$name}->safe_psql('postgres', 'SELECT renewals FROM snowflake_stats') >= 3;
		});
	}
	stop_clients();
	cmp_ok(count_drawn($who{$_}), '>', 100, "$who{$_}: drew IDs while its lease was renewed")
	  foreach sort keys %server;
	is($server{$where}->safe_psql('ids', 'SELECT count(DISTINCT instance) FROM snowflake_lease WHERE expires_at > now()'),
		2, '... each under a lease of its own');

	my ($before) = $server{$far}->draw(1);
	$server{$far}->restart;
	my ($after) = $server{$far}->draw(1);
	keep_id($who{$far}, $before, $after);
	is(machine_id_of($after), machine_id_of($before), "$who{$far}: goes on with its lease after a restart");

	my ($others) = $server{$where}->draw(1);
	keep_id($who{$where}, $others);
	set($server{$far}, 'snowflake.machine_ids', machine_id_of($others));
	$server{$far}->restart;
	like($server{$far}->error_of(q{SET snowflake.acquire_timeout = '100ms'; SELECT snowflake_nextval()}),
		qr/DETAIL:  machine ID \d+ of generator "default" is leased to \S+:@{[ $server{$where}->port ]} until/,
		'... and is told who has a machine ID');
	set($server{$far}, 'snowflake.machine_ids', '');
}
# the two registries know nothing of each other
foreach my $where (sort keys %server)
{
	is_deeply([ drawn_twice(map { "$_ server, registry on the $where one" } keys %server) ], [],
		"registry on the $where server: no ID came twice");
}
done_testing();
