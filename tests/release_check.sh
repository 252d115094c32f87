#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# All that a release needs, one row after the other, and a table of the results at the end:
#
#     make release-check                          # all: some 30 hours on two CPUs, most of which are the fuzzers'
#     make release-check ONLY="debian-sid rpm"    # these rows
#     make release-check FUZZ_SECONDS=60 SOAK_WINDOWS=60
#
# Each row is a command that can be run alone; its output is in build/release/ROW.log. A row that needs what this
# machine lacks is "not run", which is no release either. Install nothing by hand: `make` does where it can.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit
logs=${PROFIL_BUILD:-$top/build}/release
tests=tests/tap.sh
# A row of a test that cannot run is a failure there, and told apart below.
export PROFIL_TEST_STRICT=1

# ROW, COMMAND, and what it shows. The packages of a release come before the machine that boots them.
rows() {
	cat <<-END
		lint|tests/packages.sh lint && make -k format-check lint-texts lint-spelling lint-reuse lint-tidy lint-cppcheck|style, texts, licences, what compilers and checkers say
		test|make test|every test, on this machine
		examples|make test-examples|each command in the man pages
		sanitize|make sanitize|unit tests, formats and recordings, with address and undefined-behaviour checks
		fuzz|make fuzz|each reader of untrusted input, for $FUZZ_SECONDS s
		soak|make test-soak|the archive: a day's windows, one each second
		month|make test-month|an hour beside builds, deploys and hostile users: the end is as true as the beginning
		stall|make test-stall|users whose files and memory never answer: others are recorded as without them
		deploys|PROFIL_TEST_SECONDS=0 PROFIL_TEST_HOSTILE_FUNCTIONS=20000 $tests tests/cli/deploys_hostile.sh|a user with 20,000 functions in each window beside the deploys of others: the same findings
		reproducible|make test-reproducible|the tarball: the same programs in two directories, and make check
		debian-12|PROFIL_TEST_SUITES=bookworm $tests tests/packages/debian.sh|packages in a fresh root: lintian, arm64, upgrade, purge, autopkgtest
		debian-13|PROFIL_TEST_SUITES=trixie $tests tests/packages/debian.sh|the same
		debian-sid|PROFIL_TEST_SUITES=sid $tests tests/packages/debian.sh|the same
		systemd-13|PROFIL_TEST_SUITE=trixie $tests tests/packages/systemd.sh|these packages on Debian 13's kernel, under systemd
		systemd-sid|PROFIL_TEST_SUITE=sid $tests tests/packages/systemd.sh|the same on sid's kernel, the newest
		rpm|make test-rpm|packages for Fedora and its kin: rpmlint, what is in them, whether they work
		linux-5.15|make test-kernels KERNEL_TESTS=tests/kernels/kernels.sh PROFIL_TEST_KERNELS=5.15|the oldest kernel, Ubuntu's
		linux-6|make test-kernels KERNEL_TESTS=tests/kernels/kernels.sh PROFIL_TEST_KERNELS=x86|6.1 and 6.12, with profil.ko
		linux-newest|make test-kernels KERNEL_TESTS=tests/kernels/kernels.sh PROFIL_TEST_KERNELS=newest|sid's kernel, without and with PREEMPT_RT
		collector|make test-collector|profiles pushed to OpenTelemetry's collector
		arm64|make test-kernels KERNEL_TESTS=tests/kernels/kernels.sh PROFIL_TEST_KERNELS=arm64|6.1 and 6.12 of arm64, in qemu
		cross|make test-cross|all tests' programs, built for arm64
		linux-debug|make test-kernel-debug|profil.ko on a kernel with KASAN, lockdep and kmemleak
		names|! grep -n -e '@profil\.example' -e '<[A-Z][A-Z /]*>' debian/control debian/changelog debian/copyright packaging/ITP.md|what only a person can give: "A release" in CONTRIBUTING.md
		bench-quick|make bench-quick|nothing costs twice of what it did, by ratios to what perf costs
		bench|make bench|speed and cost, beside perf: compare with the last release
	END
}

export FUZZ_SECONDS=${FUZZ_SECONDS:-3600}
chosen=${ONLY:-$(rows | cut -d'|' -f1)}
for row in $chosen; do
	rows | grep -q "^$row|" && continue
	echo "release-check: no row \"$row\"; there are: $(rows | cut -d'|' -f1 | tr '\n' ' ')" >&2
	exit 2
done

mkdir -p "$logs"
table=$logs/table
printf '%-14s%-10s%9s  %s\n' row result time what >"$table"
all_passed=yes
for row in $chosen; do
	IFS='|' read -r _ command what <<<"$(rows | grep "^$row|")"
	log=$logs/$row.log
	echo "release-check: $row: $command"
	began=$SECONDS
	result=passed
	# The make above has settings for its own targets.
	if ! env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS bash -c "$command" >"$log" 2>&1 </dev/null; then
		result=FAILED
		all_passed=no
		# Where all that failed could not run.
		if grep -qE '^(# )?not ok ' "$log" &&
			! grep -E '^(# )?not ok ' "$log" | grep -qvE '\((cannot run: |skipped, )'; then
			result='not run'
			what=$(sed -nE 's/.*\(cannot run: (.*)\)$/\1/p' "$log" | sort | uniq -c | sort -rn |
				sed -nE '1s/^ *[0-9]+ //p')
		else
			what="see ${log#"$top/"}"
		fi
	fi
	took=$((SECONDS - began))
	printf '%-14s%-10s%3d:%02d:%02d  %s\n' "$row" "$result" $((took / 3600)) $((took / 60 % 60)) $((took % 60)) "$what" |
		tee -a "$table"
done
{
	echo
	cat "$table"
	echo
	git log -1 --format='of %h, %cs' 2>/dev/null
	sed -n 's/^PRETTY_NAME="\(.*\)"/on \1/p' /etc/os-release
	echo "Linux $(uname -rm), $(nproc) CPUs"
}
[ "$all_passed" = yes ]
