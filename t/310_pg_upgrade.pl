# pg_upgrade from an older major version: generators, IDs and horizons come along; the
# old server's leases are nobody's, and no ID is drawn twice.
# Runs from PostgreSQL 16 on, with the extension in an older one too, beside this one;
# scripts/check-majors sees to that.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $older = older_installation()
  or plan skip_all => 'no older PostgreSQL with the extension is here';

my $leases = 'SELECT generator, machine_id, horizon, instance, database FROM snowflake_lease ORDER BY 1, 2';
my $create = <<'SQL';
CREATE EXTENSION snowflake;
SELECT snowflake_create_generator('tickets', 'js_safe');
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE ticket (id bigint PRIMARY KEY DEFAULT snowflake_nextval('tickets'));
SQL
my $insert = <<'SQL';
INSERT INTO item SELECT FROM generate_series(1, 1000);
INSERT INTO ticket SELECT FROM generate_series(1, 1000);
SQL

sub init_to_upgrade_to
{
	my ($new) = @_;
	$new->init($new->pg_version < 18 ? () : (extra => ['--no-data-checksums']));
	return;
}

sub upgrade_of
{
	my ($old, $new) = @_;
	return (
		'pg_upgrade', '--no-sync',
		'--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
		'--old-bindir', "$older/bin", '--new-bindir', $new->config_data('--bindir'),
		'--socketdir', $new->host, '--old-port', $old->port, '--new-port', $new->port);
}

# A later major version of an earlier date may not know what the older one's dump says.
{
	my $old = SnowflakeTest::Server->new('old_plain', install_path => $older);
	$old->init;
	$old->start;
	$old->safe_psql('postgres', 'CREATE TABLE plain (a int)');
	$old->stop;
	my $new = SnowflakeTest::Server->new('new_plain');
	init_to_upgrade_to($new);
	chdir $new->basedir or die $new->basedir . ": $!";
	plan skip_all => "pg_upgrade from $older fails, without the extension too"
	  if !run_log([ upgrade_of($old, $new) ]);
}

foreach my $preload (0, 1)
{
	my $how = $preload ? 'preloaded' : 'not preloaded';
	my $preloading = "shared_preload_libraries = 'snowflake'\n" x $preload;

	my $old = SnowflakeTest::Server->new("old_$preload", install_path => $older);
	$old->init;
	$old->append_conf('postgresql.conf', $preloading);
	$old->start;
	$old->safe_psql('postgres', $create . $insert);
	my $rows = $old->safe_psql('postgres', $leases);
	my $last = $old->safe_psql('postgres', 'SELECT max(id) FROM item');
	$old->stop;

	my $new = SnowflakeTest::Server->new("new_$preload");
	init_to_upgrade_to($new);
	$new->append_conf('postgresql.conf', $preloading);
	chdir $new->basedir or die $new->basedir . ": $!";
	command_ok([ upgrade_of($old, $new) ], "$how: pg_upgrade from $older");
	$new->start;

	is($new->safe_psql('postgres', $leases), $rows, "$how: leases come along as they were");
	is($new->safe_psql('postgres', 'SELECT count(*) FROM snowflake_lease_status WHERE mine'),
		0, "$how: none is taken for the new server's own");
	# the old server's IDs are in both tables: a repeated one would be refused
	$new->safe_psql('postgres', $insert);
	is( $new->safe_psql('postgres', 'SELECT count(*) FROM item UNION ALL SELECT count(*) FROM ticket'),
		"2000\n2000", "$how: IDs are drawn on, from both generators, and none is repeated");
	is( $new->safe_psql('postgres', <<"SQL"), 0, "$how: under other machine IDs than before");
SELECT count(*) FROM (
	SELECT snowflake_machine_id(id) FROM item WHERE id <= $last
	INTERSECT SELECT snowflake_machine_id(id) FROM item WHERE id > $last) AS both_drew
SQL
	is( $new->safe_psql('postgres', <<"SQL"), 0, "$how: no horizon went down");
SELECT count(*) FROM snowflake_lease
JOIN (VALUES @{[ join ', ', map { my @f = split /\|/; "('$f[0]', $f[1], $f[2])" } split /\n/, $rows ]})
	AS before (generator, machine_id, horizon) USING (generator, machine_id)
WHERE snowflake_lease.horizon < before.horizon
SQL
	$new->stop;
}

done_testing();
