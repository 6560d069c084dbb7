# Evaluates expressions for one `homing run`. Each request is a line of numbers and the bytes that it counts:
#   c LENGTH                                   compiles:  answers `LENGTH` and Perl's reason, 0 where there is none
#   e NUMBER SEQ TOTAL LENGTH LENGTH...        evaluates: answers `SKIP UNQUOTED LENGTH` and $_, or `2 0 LENGTH` and the reason
# The first length of `e` is the value's, the others are those of all values of the task.
package Job;
sub seq { $main::seq }
sub slot { $main::slot }
sub skip { $main::skip = 1 }
sub total_jobs { $main::total }

package main;
our ($seq, $slot, $total, $skip, $unquoted, @arg, %seen);
our ($job, @compiled) = (bless {}, 'Job');
$slot = shift @ARGV;
binmode STDIN; binmode STDOUT; $| = 1;
sub seq { $seq }
sub slot { $slot }
sub total_jobs { $total }
sub skip { $skip = 1 }
sub uq { $unquoted = 1 }
sub quoted {
    my ($text) = @_;
    return $text if $text =~ m{^[-_.+a-zA-Z0-9/]+\z};
    $text =~ s/'/'"'"'/g;
    $text = "'$text'";
    $text =~ s/^''(?=.)//s, $text =~ s/(?<=.)''\z//s if length $text > 2;
    $text
}
sub Q { my @all = map { quoted($_) } @_; wantarray ? @all : join ' ', @all }
sub shell_quote { Q(@_) }
sub shell_quote_scalar { Q($_[0]) }
sub pQ { my ($text) = @_; $text =~ s/[\\"\$\@]/\\$&/g if defined $text; $text }
sub perl_quote_scalar { pQ($_[0]) }
sub dirname { require File::Basename; File::Basename::dirname(@_) }
sub basename { require File::Basename; File::Basename::basename(@_) }
sub bytes { my ($n) = @_; my $got = ''; $n and read STDIN, $got, $n; $got }
while (defined(my $line = <STDIN>)) {
    my ($what, @numbers) = split ' ', $line;
    if ($what eq 'c') {
        my $code = bytes($numbers[0]);
        my $inner = $code =~ /[\$\@%]((?:Global|opt)::\w*)/ ? "$1 is a variable inside of GNU parallel" : '';
        push @compiled, eval "no strict; no warnings; sub { $code }";
        my $why = $inner || $@;
        print length($why), "\n", $why;
        next;
    }
    (my $number, $seq, $total, my @lengths) = @numbers;
    my ($value, @values) = map { bytes($_) } @lengths;
    @arg = (undef, @values);
    ($skip, $unquoted) = (0, 0);
    my $failed;
    { local $_ = $value; eval { $compiled[$number]->(); 1 } or $failed = $@ || 'it failed'; $value = $_; }
    if (defined $failed) {
        print "2 0 ", length($failed), "\n", $failed;
        next;
    }
    $value = '' unless defined $value;
    print "$skip $unquoted ", length($value), "\n", $value;
}
