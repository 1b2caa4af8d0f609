# What packaging/monitoring has for Prometheus works with the real programs: the queries
# give what they declare, to a role that has no rights but pg_monitor's; the alerts
# rest on metrics that are there, and fire when they should.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use HTTP::Tiny;
use IPC::Run qw(run);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/..";
my $queries_file = "$top/packaging/monitoring/postgres_exporter.yaml";
my $alerts_file = "$top/packaging/monitoring/alerts.yaml";
my $alerts = slurp_file($alerts_file);

my $server = new_server('main', clock => 1);
$server->safe_psql('postgres', <<'SQL');
CREATE ROLE exporter LOGIN IN ROLE pg_monitor;
SELECT snowflake_create_generator('small', 'js_safe');
SELECT snowflake_nextval(), snowflake_nextval('small');
SQL

#----------------------------------------------------------------------
# The queries
#----------------------------------------------------------------------

my (%query, %usage);
foreach my $block (split /^(?=\w)/m, slurp_file($queries_file) =~ s/^#.*\n//mgr)
{
	my ($name, $sql, $metrics) = $block =~ /^(\w+):\n  query: \|\n((?:    .*\n)+)  metrics:\n((?:    - .*\n)+)\n?\z/
	  or next;
	$query{$name} = $sql;
	$usage{$name} = { $metrics =~ /^    - (\w+): \{ usage: (\w+),/mg };
}
is_deeply([ sort keys %query ], [ 'snowflake', 'snowflake_generator' ], 'there are queries');
foreach my $name (sort keys %query)
{
	local $ENV{PGUSER} = 'exporter';
	my $row = $server->safe_psql('postgres', "SELECT to_json(q) FROM ($query{$name}) AS q LIMIT 1");
	is_deeply([ sort keys %{ decode_json($row) } ], [ sort keys %{ $usage{$name} } ],
		"the columns of $name are its metrics");
	my @odd = grep { ($usage{$name}{$_} eq 'COUNTER') != /_total$/ } keys %{ $usage{$name} };
	is_deeply(\@odd, [], 'counters, and only they, are named so');
}

#----------------------------------------------------------------------
# The alerts
#----------------------------------------------------------------------

my @metrics = map { my $name = $_; map { "${name}_$_" } grep { $usage{$name}{$_} ne 'LABEL' } keys %{ $usage{$name} } }
  keys %query;
my %is_metric = map { $_ => 1 } @metrics;
my %used = map { $_ => 1 } map { /\b(snowflake_\w+)/g } $alerts =~ /^ +expr: (.*?)^ +(?:for|labels):/msg;
cmp_ok(scalar keys %used, '>=', 8, 'alerts use metrics');
is_deeply([ grep { !$is_metric{$_} } sort keys %used ], [], 'and only those that the queries give');

my @alerts = $alerts =~ /^ +- alert: (\w+)$/mg;
my ($told) = slurp_file("$top/doc/watching.md") =~ /^\| alert \|.*\n\|.*\n((?:\|.*\n)+)/m;
is_deeply([ $told =~ /^\| `(\w+)`/mg ], \@alerts, 'doc/watching.md tells of each, in their order');
my $unit_tests = slurp_file("$top/test/monitoring/alerts_test.yaml");
foreach my $alert (@alerts)
{
	like($unit_tests, qr/alertname: $alert\n\s+eval_time: \w+\n\s+exp_alerts:/, "$alert is tested to fire");
	like($unit_tests, qr/alertname: $alert, eval_time: \w+ \}/, '... and not to');
}

foreach my $program ('promtool', 'prometheus', 'prometheus-postgres-exporter')
{
	next if run([ 'which', $program ], '>', \my $path);
	if (must_be_installed()) { fail("$program is installed") }
	else { SKIP: { skip "$program is not installed", 1 } }
	$server->stop;
	done_testing();
	exit;
}

foreach my $command ([ 'check', 'rules', $alerts_file ], [ 'test', 'rules', "$top/test/monitoring/alerts_test.yaml" ])
{
	my $ran = run([ 'promtool', @$command ], '>', \my $out, '2>&1');
	ok($ran, "promtool $command->[0] $command->[1]") or diag($out);
}

#----------------------------------------------------------------------
# The exporter
#----------------------------------------------------------------------

my @running;

# Starts a program that serves HTTP, and returns where.
sub serve
{
	my ($name, $command, %environment) = @_;
	local %ENV = (%ENV, %environment);
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $log = $server->basedir . "/$name.log";
	push @running, IPC::Run::start([ @$command, "--web.listen-address=127.0.0.1:$port" ], '>', $log, '2>&1');
	return "http://127.0.0.1:$port";
}

sub get
{
	my ($url) = @_;
	my $response = HTTP::Tiny->new(timeout => 10)->get($url);
	return $response->{success} ? $response->{content} : '';
}

# The metrics that a server of them gives: series => value.
sub metrics_of
{
	my ($url) = @_;
	my %value;
	foreach my $line (split /\n/, get("$url/metrics"))
	{
		my ($name, $labels, $value) = $line =~ /^(\w+)(?:\{(.*)\})? (\S+)$/ or next;
		my ($generator) = ($labels // '') =~ /generator="(\w+)"/;
		$value{ $name . (defined $generator ? " of $generator" : '') } = $value;
	}
	return \%value;
}

my $exporter = serve('exporter',
	[ 'prometheus-postgres-exporter', "--extend.query-path=$queries_file", '--disable-default-metrics',
		'--disable-settings-metrics' ],
	DATA_SOURCE_NAME => 'host=' . $server->host . ' port=' . $server->port
	  . ' user=exporter dbname=postgres sslmode=disable');

my $values;
eval {
	wait_until('the exporter to give metrics', 60,
		sub { $values = metrics_of($exporter); defined $values->{snowflake_issued_total} });
};
is($@, '', 'the exporter runs the queries');
my @missing = grep { !defined $values->{$_} && !defined $values->{"$_ of default"} } sort @metrics;
is_deeply(\@missing, [], 'and gives all metrics that they declare');
is($values->{pg_exporter_last_scrape_error}, 0, 'without an error');

foreach my $generator ('default', 'small')
{
	my $machine_ids = $generator eq 'default' ? 1024 : 8;
	is($values->{"snowflake_generator_machine_ids of $generator"}, $machine_ids,
		"$generator: how many machine IDs there are");
	is($values->{"snowflake_generator_machine_ids_taken of $generator"}, 1, '... and how many are taken');
	is($values->{"snowflake_generator_issued_total of $generator"}, 1, '... and IDs issued');
	my $end = $server->safe_psql('postgres',
		"SELECT extract(epoch FROM last_timestamp)::float8 FROM snowflake_generators WHERE name = '$generator'");
	cmp_ok(abs($values->{"snowflake_generator_end_timestamp_seconds of $generator"} - $end), '<', 1,
		'... and when it ends');
	my $age = $values->{"snowflake_generator_lease_age_ratio of $generator"};
	ok($age > 0 && $age < 1, '... and how old its lease is') or diag($age);
}
is($values->{snowflake_issued_total}, 2, 'the whole server');

#----------------------------------------------------------------------
# Prometheus
#----------------------------------------------------------------------

my $configuration = $server->basedir . '/prometheus.yml';
append_to_file($configuration, <<"YAML" =~ s{http://}{}r);
global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms }
rule_files: [ "$alerts_file" ]
scrape_configs: [ { job_name: snowflake, static_configs: [ { targets: [ "$exporter" ] } ] } ]
YAML
my $prometheus = serve('prometheus',
	[ 'prometheus', "--config.file=$configuration", '--storage.tsdb.path=' . $server->basedir . '/tsdb' ]);

sub ask
{
	my ($path) = @_;
	my $answer = get("$prometheus/api/v1/$path");
	return $answer eq '' ? {} : decode_json($answer)->{data};
}

sub is_firing
{
	my ($alert) = @_;
	return scalar grep { $_->{labels}{alertname} eq $alert && $_->{state} eq 'firing' } @{ ask('alerts')->{alerts} // [] };
}

# Two samples at least: what grows is seen against the one before.
ok(eval {
		wait_until('Prometheus to have scraped', 60, sub {
			my ($count) = @{ ask('query?query=count_over_time(snowflake_clock_steps_total[1m])')->{result} // [] };
			defined $count && $count->{value}[1] >= 2;
		});
	}, 'Prometheus scrapes the exporter');
is_deeply(ask('alerts')->{alerts}, [], 'no alert fires');

my $session = $server->session;
$session->query('SELECT snowflake_nextval()');
$server->set_clock('-0.2');
$session->query('SELECT snowflake_nextval()');
ok(eval { wait_until('an alert', 60, sub { is_firing('SnowflakeClockStepped') }) },
	'an alert fires after the clock stepped back');

$server->safe_psql('postgres', <<'SQL');
SELECT snowflake_create_generator('pinned', 'js_safe');
SELECT snowflake_claim_lease('pinned', layout, 1, 1, 'another server', '1 h', 0, (2 ^ 40)::bigint, '{[5,6)}', '{}')
FROM snowflake_generators WHERE name = 'pinned';
ALTER SYSTEM SET snowflake.machine_ids = '5';
SELECT pg_reload_conf();
SQL
$server->poll_query_until('postgres', "SELECT current_setting('snowflake.machine_ids') = '5'");
like($server->error_of(q{SELECT snowflake_nextval('pinned')}), qr/is leased to another server/, 'a keeper fails');
ok(eval { wait_until('an alert', 60, sub { is_firing('SnowflakeKeeperFails') }) }, 'and an alert fires');
$session->quit;

$server->stop;
done_testing();

END
{
	my $status = $?;
	$_->kill_kill(grace => 5) foreach @running;
	$? = $status;
}
