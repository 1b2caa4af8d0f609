# doc/reference.md says of each object what the catalog says, and each object and column
# has a comment.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $top = "$FindBin::RealBin/..";
my $server = new_server('reference');
my $made = $server->safe_psql('postgres', slurp_file("$top/scripts/reference.sql"));
my $kept = slurp_file("$top/doc/reference.md");
chomp $kept;

my @lines = split /\n/, $made;
cmp_ok(scalar @lines, '>', 300, 'the catalog tells something');
my %kept = map { $_ => 1 } split /\n/, $kept;
my %made = map { $_ => 1 } @lines;
is(join("\n", grep { !$kept{$_} } @lines), '', 'the document has all that the catalog has (else: make reference)');
is(join("\n", grep { !$made{$_} } split /\n/, $kept), '', 'and nothing that it has not');
ok($kept eq $made, 'in the same order');
is(join("\n", grep { /NO COMMENT/ } @lines), '', 'each object and each column has a comment');

foreach my $kind ([ 'functions', 'pg_proc', 'true' ], [ 'relations', 'pg_class', q{relkind <> 'i'} ])
{
	my ($what, $catalog, $condition) = @$kind;
	my $name = $catalog eq 'pg_proc' ? 'proname' : 'relname';
	foreach my $object (split /\n/, $server->safe_psql('postgres', <<"SQL"))
SELECT DISTINCT $name FROM $catalog AS c JOIN pg_depend AS d ON d.classid = '$catalog'::regclass AND d.objid = c.oid
JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE d.deptype = 'e' AND e.extname = 'snowflake' AND $condition ORDER BY 1
SQL
	{
		like($kept, qr/^### (View |Table )?$object$/m, "$what: $object has a heading");
	}
}
$server->stop;
done_testing();
