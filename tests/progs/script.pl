# SPDX-License-Identifier: GPL-2.0-only
#
# script.pl TRUTH KIND...: known work in known functions. Prints "ready", waits for a line, works, and writes to the
# file TRUTH what its call stacks were, as caller() sees them, and the CPU time in each: JSON, {"CHAIN": SECONDS}, where
# CHAIN is FUNCTION:LINE;... from the outermost one on, without the line of the innermost function, which is spin(). ""
# is known work outside spin().
# The blocks of eval {}, which caller() sees, are no functions.
use v5.36;
use utf8;
use threads;
use feature qw(try defer);
no warnings qw(experimental recursion);
use Data::Dumper ();
use JSON::PP ();
use List::Util qw(first reduce sum);
use POSIX ();
use Time::HiRes qw(clock_gettime);

my %truth;
my $directory = __FILE__ =~ s|[^/]*$||r;

sub spin {
	my ($ms) = @_;
	my $chain = "main::spin";
	my $line;
	for (my $i = 0; my @frame = caller($i); $i++) {
		my (undef, undef, $from, $name, undef, undef, $text, $required) = @frame;
		next if $name eq "(eval)" and not defined $text;
		$name = "require $text" if $required;
		$chain = "$name:$line;$chain" if $i;
		$line = $from;
	}
	$chain = "{main}:$line;$chain" if ${^GLOBAL_PHASE} eq "RUN" and not threads->tid;
	my $used = 0;
	my $before = clock_gettime(3); # CLOCK_THREAD_CPUTIME_ID
	while ($used < $ms / 1000) {
		for (1 .. 300) {
		}
		my $now = clock_gettime(3);
		# Where the machine stands still, all ticks that are due may be one.
		$used += $now - $before < 1e-3 ? $now - $before : 1e-3;
		$before = $now;
	}
	$truth{$chain} += $used;
	return 1;
}

sub write_truth ($file) {
	open my $out, ">", $file or die "$file: $!";
	print $out JSON::PP->new->utf8->encode(\%truth);
	close $out or die "$file: $!";
}

# --- Functions, and what is like one ---

package Shop {
	sub new { return bless {}, shift }
	sub sell { main::spin(20) }
	sub AUTOLOAD {
		our $AUTOLOAD;
		main::spin(20) if $AUTOLOAD eq "Shop::close";
	}
}

package Shop::Counter {
	our @ISA = ("Shop");
	sub sell ($self) { $self->SUPER::sell() }
}

sub methods {
	my $shop = Shop::Counter->new;
	$shop->sell;
	$shop->close;
	my $method = "sell";
	$shop->$method();
	Shop::sell();
}

sub make_closure ($ms) {
	return sub { spin($ms) };
}

sub closures {
	make_closure(10)->() for 1 .. 5;
	my sub lexical { spin(20) }
	lexical();
	state sub kept { spin(20) }
	kept();
	(sub { spin(20) })->();
}

sub target { spin(20) }
sub leaves { goto &target }

sub ways {
	&target;
	leaves();
	no strict "refs";
	&{"target"}();
	*alias = \&target;
	alias();
	if ($_[0]) {
		target();
	} else {
		target();
	}
	for my $i (1, 2) {
		while (1) {
			target();
			last;
		}
	}
	my @list = map { target() } 1, 2;
	@list = grep { target() } 1;
}

sub überweisen { spin(20) }
sub 計算 { spin(20) }

sub names {
	überweisen();
	計算();
	no strict "refs";
	my $long = "long" x 30;
	*{$long} = eval "sub $long { spin(20) } \\&$long";
	&{$long}();
}

sub recurse ($n) {
	if ($n) {
		my $less = $n - 1;
		recurse($less);
	} else {
		spin(30);
	}
}

sub recursion { recurse(6) }

sub descend ($n) {
	return $n ? descend($n - 1) : spin(100);
}

sub deep { descend(200) }

# --- Native code that calls back ---

package Tied {
	sub TIESCALAR { return bless [] }
	sub FETCH { main::spin(20); return 1 }
	sub STORE {
		eval { main::spin(20); 1 } and main::spin(10);
	}
}

package Number {
	use overload
		"+" => sub { main::spin(20); return 1 },
		'""' => \&text,
		"<=>" => sub { main::spin(10); return 0 };
	sub text { main::spin(20); return "x" }
	sub DESTROY { main::spin(20) }
	sub freeze { main::spin(20) }
}

sub by_number {
	spin(10);
	return $a <=> $b;
}

sub by_prototype :prototype($$) {
	spin(10);
	return 0;
}

sub sorts {
	my @sorted = sort { spin(10); $a <=> $b } 3, 1, 2;
	@sorted = sort by_number 3, 1, 2;
	@sorted = sort by_prototype 3, 1, 2;
	my $order = sub { spin(10); $b <=> $a };
	@sorted = sort $order 1, 2, 3;
	@sorted = sort { target(); 0 } 1, 2;
	@sorted = sort { by_number() } 1, 2;
}

sub ties {
	tie my $tied, "Tied";
	my $read = $tied;
	$tied = 1;
	untie $tied;
}

sub overloads {
	my $number = bless [], "Number";
	my $sum = $number + 1;
	$sum = "$number";
	my @sorted = sort { $a <=> $b } $number, $number;
	$sum = sum($number, 1);
}

sub lists {
	first { spin(10); 0 } 1, 2;
	reduce { spin(10) } 1, 2, 3;
	first { target() } 1;
	my $found = first { eval { target() }; 0 } 1, 2;
	reduce { first { target() } 1 } 1, 2;
}

sub dumps {
	local $Data::Dumper::Freezer = "freeze";
	local $Data::Dumper::Useqq = 0;
	Data::Dumper::Dumper(bless {}, "Number");
}

sub matches {
	"ab" =~ /a(?{ spin(20) })b/;
	my $compiled = qr/b(?{ target() })/;
	"ab" =~ /a$compiled/;
	my $text = "aa";
	$text =~ s/a/spin(10)/ge;
}

sub signals {
	local $SIG{USR1} = sub { spin(20) };
	kill USR1 => $$;
	local $SIG{__WARN__} = sub { spin(20) };
	warn "x\n";
	local $SIG{__DIE__} = sub { spin(20) };
	eval { die "x\n" };
}

# --- Blocks, strings and files ---

sub fails {
	spin(10);
	die "fails\n";
}

sub blocks {
	eval { fails() };
	eval {
		eval { fails() };
		spin(10);
		die "outer\n";
	};
	spin(10);
	try {
		fails();
	} catch ($error) {
		spin(10);
	}
	{
		defer { spin(10) }
	}
	do { spin(10) };
}

sub strings {
	eval "spin(20)";
	eval "sub made {\n\n spin(20) }\nmade(); 1" or die;
	eval { eval "die" ; spin(10) };
	eval "#line 30 \"some.tmpl\"\nspin(20)";
	eval "BEGIN { spin(20) }";
	eval "eval 'spin(20)'";
}

sub files {
	require "${directory}script_required.pl";
	delete $INC{"${directory}script_required.pl"};
	do "${directory}script_required.pl";
	delete $INC{"${directory}script_required.pl"};
}

# --- Threads and processes ---

sub share_30 { spin(3) }
sub share_70 { spin(7) }

sub shares {
	for (1 .. 150) {
		share_30();
		share_70();
	}
}

sub thread_work ($name) {
	%truth = ();
	eval { main->can($name)->() } for 1 .. 10;
	return {%truth};
}

sub thread_a { spin(10) }
sub thread_b { spin(10) }

sub both_threads {
	my $before = clock_gettime(3);
	my @both = map { threads->create(\&thread_work, $_) } "thread_a", "thread_b";
	$truth{""} = clock_gettime(3) - $before; # each thread gets a copy of all that the interpreter has
	for my $thread (@both) {
		my $found = $thread->join;
		$truth{$_} += $found->{$_} for keys %$found;
	}
}

sub child_work { spin(100) }

sub forks {
	spin(50);
	my $child = fork // die;
	if (!$child) {
		child_work();
		exit;
	}
	waitpid $child, 0;
}

# --- Waits ---

sub waits_30 { select undef, undef, undef, .03 for 1 .. 10 }

sub waits {
	waits_30();
	spin(10);
	waits_30();
}

# --- Code that is freed, whose memory is used again ---

sub freed {
	for my $i (map { ($_) x 2 } 1 .. 50) {
		my $stand = main->can("stand_$i");
		my $made = eval "sub made_$i { spin(5) } \\&made_$i";
		$stand->($made);
		undef $made;
		no strict "refs";
		undef &{"made_$i"};
		delete $main::{"made_$i"};
	}
}

eval "sub stand_$_ (\$f) { \$f->() }" for 1 .. 50;
my @all = (
	\&methods, \&closures, \&ways, \&names, \&recursion, \&sorts, \&ties, \&overloads, \&lists, \&dumps, \&matches,
	\&signals, \&blocks, \&strings, \&files
);

my ($file, @kinds) = @ARGV;
$| = 1;
say "ready";
<STDIN>;
for my $kind (@kinds) {
	if ($kind eq "all") {
		for (1 .. 3) {
			$_->() for @all;
		}
	} else {
		main->can($kind)->();
	}
}
write_truth($file);
POSIX::_exit(0); # the interpreter's own work at its end is no script's
