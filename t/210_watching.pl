# doc/watching.md tells of every message that the sources can give and of every figure
# of the views, and of nothing else; and counters count.
use strict;
use warnings FATAL => 'all';

use File::Basename qw(basename);
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/..";
my $document = slurp_file("$top/doc/watching.md");

#----------------------------------------------------------------------
# Messages
#----------------------------------------------------------------------

my $STRING = qr/"((?:[^"\\]|\\.)*)"/;

# The first argument of each call of a function in C++ source, as its text.
sub first_arguments
{
	my ($function, $source) = @_;
	my @arguments;
	while ($source =~ /\b$function\(/g)
	{
		my ($depth, $argument) = (0, '');
		while ($source =~ /\G($STRING|.)/gcs)
		{
			my $token = $1;
			last if $depth == 0 && $token =~ /^[,)]$/;
			$depth++ if $token eq '(';
			$depth-- if $token eq ')';
			$argument .= $token;
		}
		push @arguments, $argument;
	}
	return @arguments;
}

# The messages in such an argument: adjacent strings are one, a condition chooses among
# several. Values are shown as "…", as they are in the document.
sub messages_in
{
	my ($argument) = @_;
	my @messages = ('');
	while ($argument =~ /\G(?:$STRING|(INT64_FORMAT)|(\?)|(:)|.)/gcs)
	{
		if (defined $1) { $messages[-1] .= $1 }
		elsif (defined $2) { $messages[-1] .= '%d' }
		elsif (defined $3) { $messages[-1] = '' }
		elsif (defined $4) { push @messages, '' }
	}
	return map { s/\\"/"/gr =~ s/%(?:\.\*)?[a-zA-Z]/…/gr } @messages;
}

my (%said, @odd);
foreach my $file (sort glob "$top/src/*/*.cpp $top/src/*/*.h")
{
	my $source = slurp_file($file) =~ s{/\*.*?\*/}{}gsr;
	my ($name) = $file =~ m{([^/]+)$};
	$said{$_} = $name foreach map { messages_in($_) } first_arguments('errmsg', $source);
	# a setting's check: the message is PostgreSQL's
	push @odd, map { "$name: $_" }
	  $source =~ /\b((?:errmsg_\w+|GUC_check_errmsg|elog\((?!ERROR,)\w+|ereport_\w+).*)/g;
}
my %raised;
foreach my $file (sort glob "$top/src/*/*.sql")
{
	my $script = slurp_file($file) =~ s/^\s*--.*$//mgr;
	$raised{$_} = basename($file) foreach $script =~ /\bRAISE\s+(.*?);/gs;
}
foreach my $raise (sort keys %raised)
{
	my ($message) = $raise =~ /\bMESSAGE\s*=\s*(?:format\()?'((?:[^']|'')*)'/;
	($message) = $raise =~ /^(?:NOTICE|WARNING|EXCEPTION|LOG|INFO)\s+'((?:[^']|'')*)'/ unless defined $message;
	if (!defined $message) { push @odd, "RAISE $raise"; next }
	$said{ $message =~ s/''/'/gr =~ s/%[sIL]?/…/gr } = $raised{$raise};
}
is_deeply(\@odd, [], 'every message is given in a way that this test can read');
cmp_ok(scalar keys %said, '>', 60, 'messages are found in the sources');

# What follows "could not get a lease": what keepers say is among the above, and sessions
# have reasons of their own.
my $sessions = slurp_file("$top/src/lease/lease_request.cpp");
foreach my $call (split /(?=ereport\()/, $sessions)
{
	next unless $call =~ /errmsg\("could not get a lease/;
	$said{$_} = 'lease_request.cpp' foreach grep { $_ ne '….' } map { messages_in($_) } first_arguments('errdetail', $call);
}
my $keeper = slurp_file("$top/src/lease/keeper.cpp");
$said{$_} = 'keeper.cpp' foreach $keeper =~ /\.message, $STRING/g;

# Rows of the document's tables whose header begins so: the cells of each.
sub rows_of
{
	my ($header, $text) = @_;
	my @rows;
	foreach my $table ($text =~ /^\| $header \|.*\n\|[-:|]+\|\n((?:\|.*\n)*)/mg)
	{
		push @rows, map { [ split / ?\| ?/, s/^\| //r, -1 ] } split /\n/, $table;
	}
	return @rows;
}

my %explained = map { $_->[0] =~ /^`(.*)`$/ ? ($1 => $_) : ($_->[0] => $_) } rows_of('message', $document);
is_deeply([ map { "$said{$_}: $_" } grep { !$explained{$_} } sort keys %said ], [],
	'every message of the sources is in doc/watching.md');
is_deeply([ grep { !$said{$_} } sort keys %explained ], [], 'and every message there is in the sources');

my ($short) = slurp_file("$top/README.md") =~ /^## Troubleshooting\n(.*?)^## /ms;
my @unknown = grep {
	my $beginning = s/ …$//r;
	!grep { index($_, $beginning) == 0 } keys %said;
} map { $_->[0] =~ /`(.*)`/ } rows_of('message', $short);
is_deeply(\@unknown, [], 'those in the README are in the sources, as far as it shows them');

#----------------------------------------------------------------------
# Figures
#----------------------------------------------------------------------

my $server = new_server('main', clock => 1, conf => <<'CONF');
snowflake.lease_ttl = 3s
CONF

foreach my $view ('snowflake_stats', 'snowflake_generators', 'snowflake_lease_status', 'snowflake_backends')
{
	my ($section) = $document =~ /^### `$view`\n(.*?)(?=^##)/ms;
	my @columns = split /\n/, $server->safe_psql('postgres', <<"SQL");
SELECT attname FROM pg_attribute WHERE attrelid = '$view'::regclass AND attnum > 0 ORDER BY attnum
SQL
	is_deeply([ map { $_->[0] =~ s/`//gr } rows_of('figure', $section // '') ], \@columns,
		"doc/watching.md tells of the columns of $view, in their order");
}
my %named = map { $_ => 1 } map { slurp_file($_) =~ /\bwait_event\("(\w+)"\)/g } glob "$top/src/*/*.cpp";
is_deeply([ sort map { $_->[0] =~ s/`//gr } rows_of('event', $document) ], [ sort keys %named ],
	'and of the wait events');

#----------------------------------------------------------------------
# Counters
#----------------------------------------------------------------------

# What snowflake_stats shows, by column.
sub stats
{
	my $row = $server->safe_psql('postgres', 'SELECT to_json(s) FROM snowflake_stats AS s');
	return decode_json($row);
}

# Waits until a statement in a session waits for this event.
sub sees_wait
{
	my ($session, $event) = @_;
	$event = 'Extension' if $server->pg_version < 17;
	my $pid = $session->pid;
	return $server->poll_query_until('postgres', <<"SQL");
SELECT wait_event_type = 'Extension' AND wait_event = '$event' FROM pg_stat_activity WHERE pid = $pid
SQL
}

$server->safe_psql('postgres', 'CREATE ROLE exporter LOGIN IN ROLE pg_monitor; CREATE ROLE visitor LOGIN');
sub query_as
{
	my ($role, $sql) = @_;
	local $ENV{PGUSER} = $role;
	$server->psql('postgres', $sql, stdout => \my $rows, stderr => \my $messages);
	return $messages eq '' ? $rows : $messages;
}

my $holder = $server->session;
my $id = $holder->query('SELECT snowflake_nextval()');
my $others = 'SELECT last_id FROM snowflake_backends WHERE pid = ' . $holder->pid;
is(query_as('exporter', $others), $id, 'a member of pg_monitor sees the IDs of others');
is(query_as('visitor', $others), '', 'a role that is none does not');
foreach my $role ('exporter', 'visitor')
{
	is(query_as($role, <<'SQL'), '1|1|1|1', "the $role may read all views");
SELECT (SELECT sign(issued) FROM snowflake_stats),
       (SELECT machine_ids FROM snowflake_generators WHERE name = 'default'),
       (SELECT count(*) FROM snowflake_lease_status WHERE mine AND NOT free),
       (SELECT issued FROM snowflake_backends WHERE last_id IS NOT NULL OR machine_id IS NOT NULL)
SQL
	like(query_as($role, 'SELECT snowflake_stats_reset()'), qr/permission denied/, '... but not reset them');
}

# Several sessions at once that end, twice in the same places.
my $before = stats();
my $draws = $server->basedir . '/draws.sql';
append_to_file($draws, "SELECT snowflake_nextval();\nSELECT count(*) FROM snowflake_nextvals(7);\n");
foreach my $round (1, 2)
{
	$server->run_log([ 'pgbench', '--no-vacuum', '--client=8', '--transactions=200',
		"--file=$draws", $server->connstr('postgres') ]) or die 'pgbench failed';
}
is(stats()->{issued} - $before->{issued}, 2 * 8 * 200 * 8, 'no ID of sessions that have ended is lost, or counted twice');
is($server->safe_psql('postgres', <<'SQL'), stats()->{issued}, 'backends, generators and the server count the same');
SELECT DISTINCT issued
FROM (SELECT sum(issued) AS issued FROM snowflake_backends UNION ALL SELECT sum(issued) FROM snowflake_generators) AS s
SQL
is($server->safe_psql('postgres', 'SELECT count(*) > 1 AND count(pid) = 1 FROM snowflake_backends'), 't',
	'rows of sessions that have ended stay, without a pid');

# The clock
$before = stats();
$server->append_conf('postgresql.conf', "snowflake.max_clock_wait = '10min'");
$server->reload;
my $other = $server->session;
$_->query('SELECT snowflake_nextval()') foreach $holder, $other;
$server->poll_query_until('postgres', "SELECT current_setting('snowflake.max_clock_wait') = '10min'");
$server->set_clock(-100);
$_->send('SELECT snowflake_nextval()') foreach $holder, $other;
ok(sees_wait($_, 'SnowflakeClock'), 'a session waits for the clock') foreach $holder, $other;
$server->set_clock(0);
$_->result foreach $holder, $other;
my $after = stats();
is_deeply([ map { $after->{$_} - $before->{$_} } 'clock_steps', 'clock_waits', 'switches' ], [ 2, 2, 0 ],
	'each session counts its step and its wait');
like($after->{$_}, qr/^00:01:(?:40|[0-3]\d)/, "and $_ tells how far it went") foreach 'largest_clock_step', 'last_clock_step';

# Sequences: two in a millisecond
$before = $after;
$server->safe_psql('postgres', <<'SQL');
SELECT snowflake_create_generator('narrow', 'epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m3,s1');
SELECT count(*) FROM snowflake_nextvals(20, 'narrow');
SQL
$after = stats();
cmp_ok($after->{sequence_waits}, '>', $before->{sequence_waits}, 'waits for sequences are counted');
isnt($after->{sequence_waited}, $before->{sequence_waited}, 'and their time');
is($after->{clock_waits}, $before->{clock_waits}, '... as nothing else');

# Leases: the keeper cannot renew, nor claim
$before = $after;
my $lock = $server->session;
$lock->query('BEGIN; LOCK snowflake_lease');
$holder->query(q{SET snowflake.acquire_timeout = '1min'});
$server->set_clock('+1000');    # past the horizon
$holder->send('SELECT snowflake_nextval()');
ok(sees_wait($holder, 'SnowflakeLease'), 'a session waits for the keeper');
$lock->query('COMMIT');
is(($holder->result)[1], '', 'which works when it can');
$after = stats();
cmp_ok($after->{lease_waits}, '>', $before->{lease_waits}, 'the wait is counted');
isnt($after->{lease_waited}, $before->{lease_waited}, 'and its time');
cmp_ok($after->{renewals} + $after->{claims}, '>', $before->{renewals} + $before->{claims},
	'and what the keeper did');

# A keeper that fails: another server has the only machine ID that is allowed.
$before = $after;
$server->safe_psql('postgres', <<'SQL');
SELECT snowflake_claim_lease('pinned', layout, 1, 1, 'another server', '1 h', 0, (2 ^ 40)::bigint, '{[5,6)}', '{}')
FROM snowflake_generators WHERE name = 'narrow';
SELECT snowflake_create_generator('pinned', layout) FROM snowflake_generators WHERE name = 'narrow';
ALTER SYSTEM SET snowflake.machine_ids = '5';
SELECT pg_reload_conf();
SQL
$server->poll_query_until('postgres', "SELECT current_setting('snowflake.machine_ids') = '5'");
like($server->error_of(q{SELECT snowflake_nextval('pinned')}), qr/is leased to another server/, 'a keeper fails');
cmp_ok(stats()->{failures}, '>', $before->{failures}, 'which is counted');
$server->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.machine_ids');
$server->reload;

# Reset
my $generators = $server->safe_psql('postgres', 'SELECT name, issued FROM snowflake_generators ORDER BY name');
$before = stats();
$server->safe_psql('postgres', 'SELECT snowflake_stats_reset()');
$after = stats();
is_deeply([ grep { ($after->{$_} // 0) !~ /^(0|00:00:00)$/ && $_ ne 'stats_reset' } sort keys %$after ], [],
	'a reset sets all to 0');
cmp_ok($after->{stats_reset}, 'gt', $before->{stats_reset}, 'and says since when');
is($server->safe_psql('postgres', 'SELECT name, issued FROM snowflake_generators ORDER BY name'), $generators,
	'what generators have issued stays');
$server->safe_psql('postgres', 'SELECT count(*) FROM snowflake_nextvals(3)');
is(stats()->{issued}, 3, 'and counting goes on');
$_->quit foreach $holder, $other, $lock;

done_testing();
