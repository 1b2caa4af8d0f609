# What the library needs at run time: libc. The client of shared registries, and libpq and all
# that it brings, is a module of its own that no session loads; where it is missing, the error
# says what to install.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use File::Copy qw(copy);
use PostgreSQL::Test::Utils;
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;

my $server = new_server('modules', conf => listen_on_loopback() . "jit = off\nsnowflake.lease_ttl = 1s\n");
my $installed = $server->config_data('--pkglibdir');

sub output_of
{
	my ($stdout, $stderr) = run_command([@_]);
	die "@_: $stderr" if $stdout eq '';
	return $stdout;
}

# The libraries that a module names.
sub needs
{
	my ($module) = @_;
	return join ' ', sort(output_of('readelf', '-dW', "$installed/$module") =~ /\(NEEDED\).*\[(.*)\]/g);
}

is(needs('snowflake.so'), 'libc.so.6', 'the library needs libc and no other');
is(needs('snowflake_libpq.so'), 'libc.so.6 libpq.so.5', 'the client needs libpq as well');

# What is named nowhere would be found in whatever the server happens to be linked with.
my @undefined = output_of('nm', '-D', '--undefined-only', "$installed/snowflake.so") =~ /^ +\w (\S+)$/mg;
cmp_ok(scalar @undefined, '>', 100, 'it uses functions of the server');
is_deeply([ grep { /^(_Z|__gxx|__cxa(?!_finalize)|_Unwind|PQ|lo_)/ } @undefined ],
	[], '... none of them of the C++ library or of libpq');

# What a session's process has loaded beside the server's own libraries.
sub loaded
{
	my ($session) = @_;
	my @all = slurp_file('/proc/' . $session->pid . '/maps') =~ m{/([^/\s]+\.so[.\d]*)$}mg;
	return { map { $_ => 1 } @all };
}

# All that a session does with IDs, but for a keeper's work.
my $everything = <<'SQL';
SELECT snowflake_timestamp(1), snowflake_describe(snowflake_nextval());
SELECT count(*) FROM snowflake_lease_status, snowflake_stats, snowflake_generators, snowflake_backends;
SELECT snowflake_friendly(1, 'Europe/Berlin'), snowflake_to_base62(1);
SELECT count(*) FROM pg_class WHERE snowflake_timestamp(oid::bigint) > now();
SQL

my $before = $server->session;
my $plain = loaded($before);
$before->query($everything);
is_deeply([ grep { !$plain->{$_} } sort keys %{ loaded($before) } ],
	['snowflake.so'], 'a session that uses the extension loads its library and nothing else');

my $registry = make_registry($server, 'ids');
$server->set_registry($registry);
my $after = $server->session;
$after->query($everything);
is_deeply([ grep { !$plain->{$_} } sort keys %{ loaded($after) } ],
	['snowflake.so'], '... also where the registry is shared');
is($server->safe_psql('ids', q{SELECT count(*) FROM snowflake_lease WHERE holder !~ '/'}),
	1, '... which has given the lease');

# A library that is loaded where PostgreSQL does not apply settings to it is not loaded.
$server->append_conf('postgresql.conf', "snowflake.machine_ids = '7'\n");
$server->restart;
$server->safe_psql('postgres', <<'SQL');
CREATE TABLE rows AS SELECT generate_series(1, 1000) AS i;
CREATE FUNCTION draw() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS $$BEGIN RETURN snowflake_nextval(); END$$;
SQL
my $in_parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; '
  . 'SELECT count(DISTINCT id), min((id >> 12) & 1023), max((id >> 12) & 1023) FROM (SELECT draw() AS id FROM rows) AS r';
like(
	$server->error_of($in_parallel),
	qr/cannot load library "snowflake" during a parallel operation.*DETAIL:  "snowflake\.\w+" is set/s,
	'in a parallel operation the library is not loaded without its settings');
is($server->safe_psql('postgres', "SELECT snowflake_machine_id(snowflake_nextval()); $in_parallel"),
	"7\n1000|7|7", '... loaded before, it has them');

# A server to which half of the package was copied.
my $half = $server->basedir . '/half';
mkdir $half or die $!;
copy("$installed/snowflake.so", $half) or die $!;
my $partial = new_server('partial', conf => "dynamic_library_path = '$half'\n");
cmp_ok(scalar $partial->draw(10), '==', 10, 'without the client, a server draws IDs');
my $log = $partial->log_position;
like(
	$partial->error_of("LOAD 'snowflake'; ALTER SYSTEM SET snowflake.registry = '$registry'"),
	qr/could not load module "snowflake_libpq".*DETAIL:.*snowflake_libpq.*HINT:  Install snowflake_libpq\.so/s,
	'... a shared registry it refuses, and says what to install');
$partial->set_registry($registry);
my $session = $partial->session;
my (undef, $error) = $session->query('SELECT snowflake_nextval()');
like(
	$error,
	qr/could not get a lease.*DETAIL:  could not load module "snowflake_libpq".*HINT:  Install snowflake_libpq\.so/s,
	'... so does a session that needs a lease of one set in the file');

# Not the version that the library was built with.
system_or_bail($ENV{CC} // 'cc', '-shared', '-o', "$half/snowflake_libpq.so", '-x', 'c', '/dev/null');
(undef, $error) = $session->query('SELECT snowflake_nextval()');
like($error, qr/could not load module "snowflake_libpq".*may need a restart/s,
	'... or finds a file of that name which is another');

unlink "$half/snowflake_libpq.so" or die $!;
copy("$installed/snowflake_libpq.so", $half) or die $!;
wait_until('the client is found', 60,
	sub { (my $id, $error) = $session->query('SELECT snowflake_nextval()'); $error eq '' });
pass('once it is there, the same session draws on');

done_testing();
