# Each line of doc/security.md that promises something names a test, and the test is there.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/..";
my ($rows, $in_tests) = (0, 0);
foreach my $line (split /\n/, slurp_file("$top/doc/security.md"))
{
	$in_tests = 1 if $line =~ /^\| what \| test \|$/;
	$in_tests = 0 if $line !~ /^\|/;
	next if !$in_tests || $line =~ /^\|(---\||\s*what )/;
	$rows++;
	my ($what, $file, $name) = $line =~ /^\| (.*) \| `([^`]+)`: (.+) \|$/;
	if (!defined $name)
	{
		fail("a test is named for: $line");
		next;
	}
	my $tests = -e "$top/$file" ? slurp_file("$top/$file") =~ s/\\'/'/gr : '';
	ok(index($tests, $name) >= 0, "$file has: $name");
}
cmp_ok($rows, '>', 30, 'there are lines');

# A function with more rights than its caller's has to be in the document.
my %definers = map { $_ => 1 } join("\n", map { slurp_file($_) } glob "$top/src/*/*.sql") =~
  /CREATE OR REPLACE FUNCTION \@extschema\@\.(\w+)\([^;]*?SECURITY DEFINER/g;
cmp_ok(scalar keys %definers, '>', 3, 'there are such functions');
my $text = slurp_file("$top/doc/security.md");
like($text, qr/`$_`/, "the document names $_") foreach sort keys %definers;

done_testing();
