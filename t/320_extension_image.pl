# The extension in directories of its own, as an extension image of CloudNativePG has
# it: a server finds it by extension_control_path and dynamic_library_path, and so does
# the keeper.
# Runs from PostgreSQL 18 on, which has extension_control_path.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use File::Basename qw(basename);
use File::Copy qw(copy);
use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

# The version of the release, as META.json has it.
sub release
{
	my ($version) = slurp_file("$FindBin::RealBin/../META.json") =~ /^    "version": "(.*)",/m;
	return $version;
}

my $server = new_server('image', extension => 0);
plan skip_all => 'it runs from PostgreSQL 18 on'
  if $server->pg_version < 18;

# As packaging/cloudnativepg/collect.sh lays it out. A name that is installed nowhere
# else shows that nothing but this directory was used; the library keeps its own.
my $image = $server->basedir . '/image';
make_path("$image/lib", "$image/share/extension");
my $from = $server->config_data('--sharedir') . '/extension';
foreach my $file (glob "$from/snowflake--*.sql $from/snowflake.control")
{
	copy($file, "$image/share/extension/" . basename($file) =~ s/^snowflake/snowflake_image/r)
	  or die "$file: $!";
}
my $library = $server->config_data('--pkglibdir') . '/snowflake.so';
copy($library, "$image/lib/snowflake.so") or die "$library: $!";

$server->append_conf('postgresql.conf', <<"EOC");
extension_control_path = '\$system:$image/share'
dynamic_library_path = '$image/lib:\$libdir'
EOC
$server->restart;

$server->safe_psql('postgres', 'CREATE EXTENSION snowflake_image');
my @ids = $server->draw(100);
ok(is_increasing(@ids), 'IDs are drawn');
is( $server->safe_psql('postgres', 'SELECT count(*) FROM snowflake_lease_status WHERE mine'),
	1, 'the keeper has got a lease');
my $session = $server->session;
push @ids, scalar $session->query('SELECT snowflake_nextval()');
like(slurp_file('/proc/' . $session->pid . '/maps'),
	qr{\Q$image\E/lib/snowflake\.so}, 'with the library of that directory');
is( $session->query(
		q{SELECT version FROM pg_get_loaded_modules() WHERE module_name = 'snowflake'}),
	release(), 'which tells its version');
$session->quit;

$server->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
$server->restart;
ok(is_increasing(@ids, $server->draw(100)), 'and so they are when it is preloaded');

done_testing();
