# Runs TAP tests as prove does, and ends with the count of their points:
# "N passed, N failed, N skipped". A file that breaks off counts as failed once.
#
#   perl scripts/run_tap.pl [-j JOBS] [-I DIR]... FILE...
use strict;
use warnings;

use Getopt::Long qw(:config bundling);
use TAP::Harness;

my ($jobs, @lib) = (1);
GetOptions('j=i' => \$jobs, 'I=s' => \@lib) or exit 2;

my $result = TAP::Harness->new({ jobs => $jobs, lib => \@lib, timer => 1 })->runtests(@ARGV);

my $skipped = scalar $result->skipped;
my $passed = scalar($result->passed) - $skipped;
my $failed = scalar $result->failed;
foreach my $parser ($result->parsers)
{
	$skipped++ if defined $parser->skip_all;
	$failed++ if $parser->has_problems && !$parser->failed;
}
printf "%d passed, %d failed, %d skipped\n", $passed, $failed, $skipped;
exit($failed > 0 ? 1 : 0);
