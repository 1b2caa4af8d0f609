# The documents say what is so: every example in an ```sql fence runs, what follows
# it in a ```text fence is what psql prints, and every link leads somewhere.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use File::Basename qw(dirname);
use IPC::Run qw(run);
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $top = "$FindBin::RealBin/..";
my @documents = map { substr($_, length("$top/")) } sort glob("$top/*.md $top/doc/*.md");

my $server = new_server('documents', extension => 0);

# The examples of a document: the line that each begins at, its SQL, and what it
# should print (undef where the document does not say).
sub examples_of
{
	my ($text) = @_;
	my (@examples, $fence, $line);
	for (split /\n/, $text)
	{
		$line++;
		if (defined $fence)
		{
			if (/^```$/) { undef $fence; next }
			$examples[-1]{$fence} .= "$_\n" if $fence ne 'other';
			next;
		}
		if (/^```sql$/)
		{
			$fence = 'sql';
			push @examples, { line => $line, sql => '', closed => $line };
		}
		elsif (/^```text$/ && @examples && !defined $examples[-1]{text} && $examples[-1]{adjacent})
		{
			$fence = 'text';
			$examples[-1]{text} = '';
		}
		elsif (/^```/) { $fence = 'other' }
		$examples[-1]{adjacent} = 0 if @examples && !defined $fence;
	}
	continue
	{
		# a result stands directly below its example
		$examples[-1]{adjacent} = 1 if @examples && !defined $fence && /^```$/;
	}
	return @examples;
}

# What psql prints for each example, all in one session.
sub results_of
{
	my ($database, @examples) = @_;
	my $script = join '', map { "$_->{sql}\n\\echo ==== end of example\n" } @examples;
	my $output = '';
	run [ 'psql', '-X', '-q', '-d', $server->connstr($database) ], '<', \$script, '>&', \$output;
	return split /^==== end of example\n/m, $output, -1;
}

sub trimmed { return join "\n", map { s/\s+$//r } split /\n/, $_[0] =~ s/^\s+|\s+$//gr }

# The anchors of a document, as GitHub makes them from its headings.
sub anchors_of
{
	my ($text) = @_;
	return map { lc s/[^\w\- ]//gr =~ s/ /-/gr } $text =~ /^#+ (.*)$/mg;
}

my $number = 0;
for my $document (@documents)
{
	my $text = slurp_file("$top/$document");

	if (my @examples = examples_of($text))
	{
		my $database = 'document' . ++$number;
		$server->safe_psql('postgres', "CREATE DATABASE $database");
		$server->safe_psql($database, 'CREATE EXTENSION snowflake');
		my @results = results_of($database, @examples);
		for my $example (@examples)
		{
			my $result = shift @results;
			my $name = "$document, line $example->{line}";
			if (defined $example->{text})
			{
				is(trimmed($result), trimmed($example->{text}), "$name: prints what it says");
			}
			else
			{
				unlike($result, qr/^(psql:)?.*(ERROR|FATAL):/m, "$name: runs");
			}
		}
	}

	for my $link ($text =~ /\]\(([^)\s]+)\)/g)
	{
		next if $link =~ m{^(https?|mailto):};
		my ($file, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
		my $path = $file eq '' ? "$top/$document" : dirname("$top/$document") . "/$file";
		ok(-e $path, "$document: link to $link leads to a file");
		next if !defined $anchor || !-f $path;
		ok( (grep { $_ eq $anchor } anchors_of(slurp_file($path))),
			"$document: link to $link leads to a heading");
	}
}

done_testing();
