# The ready files in doc/examples and packaging are of this version: the SQL in them is
# what the documents say, the settings are there and take the values, and a pod of the
# StatefulSet is pinned to its number.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;

my $top = "$FindBin::RealBin/..";
my $server = new_server('examples', preload => 1);

#----------------------------------------------------------------------
# Settings
#----------------------------------------------------------------------

my %settings;
foreach my $file (sort(glob "$top/doc/examples/*"), "$top/packaging/cloudnativepg/cluster.yaml")
{
	my $name = $file =~ s/^\Q$top\E\///r;
	# name: value, with a value in quotes, folded over lines (">-"), or as it is
	my $text = slurp_file($file);
	while ($text =~ /^( *)(snowflake\.\w+): (?:'(.*)'|>-((?:\n\1 +.*)+)|(.*))$/mg)
	{
		my ($setting, $value) = ($2, $3 // $4 // $5);
		$value =~ s/\s+/ /g;
		$settings{$name}{$setting} = $value =~ s/^ //r;
	}
	foreach my $setting (sort keys %{ $settings{$name} })
	{
		is($server->psql('postgres', "ALTER SYSTEM SET $setting = '$settings{$name}{$setting}'"),
			0, "$name: $setting takes its value");
		$server->safe_psql('postgres', "ALTER SYSTEM RESET $setting");
	}
}
is_deeply([ sort map { scalar keys %$_ } values %settings ], [ 0, 1, 2, 2 ], 'all settings were found');

#----------------------------------------------------------------------
# A registry
#----------------------------------------------------------------------

my ($in_example) =
  slurp_file("$top/doc/examples/cloudnative-pg.yaml") =~ /postInitApplicationSQL:\n(.*?)\n  postgresql:/s;
my $statements = join ' ', map { s/^\s*- (?:>-)?//r } split /\n/, $in_example;
my $documented = "CREATE EXTENSION snowflake; " . SnowflakeFleet::documented_setup();
is($statements =~ s/\s//gr, $documented =~ s/[\s;]//gr,
	'the registry of the CloudNativePG example is made as the document says');

#----------------------------------------------------------------------
# A pod
#----------------------------------------------------------------------

my ($arguments) = slurp_file("$top/doc/examples/statefulset.yaml") =~
  /exec docker-entrypoint\.sh postgres\n(.*?)\n +env:/s;
my @given = do
{
	local $ENV{HOSTNAME} = 'events-7';
	my $words = $arguments =~ s/\n/ /gr;
	map { s/\n//r } qx(printf '%s\\n' $words);
};
my $pod = SnowflakeTest::Server->new('events-7');
$pod->init;
foreach my $i (grep { $given[$_] eq '-c' } 0 .. $#given)
{
	$pod->append_conf('postgresql.conf', $given[ $i + 1 ] =~ s/=(.*)/ = '$1'/r);
}
$pod->start;
is($pod->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name LIKE 'snowflake.%'
	AND source = 'configuration file'}), 3, 'a pod has three settings');
$pod->safe_psql('postgres', 'CREATE EXTENSION snowflake');
is(machine_id_of(($pod->draw(1))[0]), 7, '... and draws under its own number');
done_testing();
