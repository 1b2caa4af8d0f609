# Rows land in the partition of their time, with the recipes of doc/partitions.md.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $document = slurp_file("$FindBin::RealBin/../doc/partitions.md");

my $server = new_server('main', clock => 1, conf => "timezone = 'Europe/Berlin'");

# 2026-03-01 UTC, and the day after
use constant MONTH_END_MS => 1_772_323_200_000;
use constant DAY_MS => 86_400_000;
use constant MIDNIGHT_MS => MONTH_END_MS + DAY_MS;

# Draws IDs for a table in the last millisecond before a time and in the first one after.
sub draw_around
{
	my ($table, $unix_ms) = @_;
	foreach my $ms ($unix_ms - 1, $unix_ms)
	{
		$server->stop_clock_at($ms);
		$server->safe_psql('postgres', "INSERT INTO $table SELECT FROM generate_series(1, 100)");
	}
	return;
}

# In which partition of a table the rows are, against the times that name it.
sub partition_of_times
{
	my ($table, $pattern) = @_;
	return $server->safe_psql('postgres', <<"SQL");
SELECT count(*), count(DISTINCT tableoid), count(*) FILTER (WHERE tableoid = '${table}_default'::regclass),
       count(*) FILTER (WHERE tableoid::regclass::text <>
                              '$table' || to_char(snowflake_timestamp(id) AT TIME ZONE 'UTC', '$pattern'))
FROM $table
SQL
}

#----------------------------------------------------------------------
# Without any other extension
#----------------------------------------------------------------------

my ($recipe) = $document =~ /^(CREATE TABLE hits .*?^END \$\$;)$/ms or die 'no recipe in doc/partitions.md';
$server->safe_psql('postgres', $recipe);
$server->safe_psql('postgres', q{CALL make_hits_partitions('2026-01-15', 12)});
$server->safe_psql('postgres', q{CALL make_hits_partitions('2026-02-15', 12)});
is($server->safe_psql('postgres', <<'SQL'), 14, 'partitions that are there are left alone');
SELECT count(*) FROM pg_inherits WHERE inhparent = 'hits'::regclass
SQL

draw_around('hits', MONTH_END_MS);
is(partition_of_times('hits', '_YYYY_MM'), '200|2|0|0',
	'rows drawn over the end of a month are in the two of their time');

# the edges, with the first and last machine ID and sequence
$server->safe_psql('postgres', <<'SQL');
TRUNCATE hits;
INSERT INTO hits SELECT snowflake_min_id(t AT TIME ZONE 'UTC' + d)
    FROM generate_series('2026-02-01'::timestamp, '2027-01-01', interval '1 month') AS t,
         unnest('{-1 ms,0,1 ms}'::interval[]) AS d;
INSERT INTO hits SELECT snowflake_max_id(snowflake_timestamp(id)) FROM hits;
SQL
is(partition_of_times('hits', '_YYYY_MM'), '72|13|0|0', 'so are those at the edges of all months');

#----------------------------------------------------------------------
# pg_partman
#----------------------------------------------------------------------

SKIP:
{
	my $version = $server->safe_psql('postgres',
		q{SELECT default_version FROM pg_available_extensions WHERE name = 'pg_partman'});
	skip 'pg_partman 4 is not installed', 6 if $version !~ /^4\./;

	my @recipes = $document =~ /^```\n((?:CREATE SCHEMA|SELECT|UPDATE) .*?)^```$/msg;
	is(scalar @recipes, 3, 'the document has a recipe for pg_partman, and two for later');
	my ($create, $by_clock, $retention) = @recipes;

	$server->stop_clock_at(MIDNIGHT_MS - 1);
	$server->safe_psql('postgres', $create);
	draw_around('clicks', MIDNIGHT_MS);

	# Each partition is named for the first ID of its day.
	my $misplaced = <<'SQL';
SELECT count(DISTINCT tableoid), count(*) FILTER (WHERE tableoid::regclass::text <> 'clicks_p' ||
    snowflake_min_id(date_trunc('day', snowflake_timestamp(id), 'UTC'))) FROM clicks
SQL
	is($server->safe_psql('postgres', $misplaced), '2|0', 'rows drawn over midnight are in the two of their time');

	my $last = sub {
		return $server->safe_psql('postgres', <<'SQL');
SELECT max(substring(inhrelid::regclass::text FROM '\d+$')::bigint) FROM pg_inherits WHERE inhparent = 'clicks'::regclass
SQL
	};
	$server->safe_psql('postgres', 'CALL partman.run_maintenance_proc()');
	is(time_of($last->()), MIDNIGHT_MS + 7 * DAY_MS, 'maintenance makes those of the coming days');

	# no rows for longer than there are partitions; and summer time is about to begin
	$server->stop_clock_at(MIDNIGHT_MS + 25 * DAY_MS);
	$server->safe_psql('postgres', 'CALL partman.run_maintenance_proc()');
	$server->safe_psql('postgres', $by_clock);
	is(time_of($last->()), MIDNIGHT_MS + 32 * DAY_MS, 'those by the clock are made although there were no rows');
	$server->safe_psql('postgres', 'INSERT INTO clicks SELECT FROM generate_series(1, 100)');
	is($server->safe_psql('postgres', $misplaced), '3|0', 'and get the rows of their time');

	$server->stop_clock_at(MIDNIGHT_MS + 40 * DAY_MS);
	$server->safe_psql('postgres', $by_clock);
	$server->safe_psql('postgres', 'INSERT INTO clicks SELECT FROM generate_series(1, 100)');
	$server->safe_psql('postgres', $retention);
	$server->safe_psql('postgres', 'CALL partman.run_maintenance_proc()');
	is($server->safe_psql('postgres', 'SELECT min(id) > snowflake_min_id(now() - interval \'31 days\'), count(DISTINCT tableoid) FROM clicks'),
		't|2', 'retention drops what is older');
}

done_testing();
