#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A build for another machine: the compiler, not this machine, decides what the eBPF programs are for.
# PROFIL_TEST_CROSS=all (`make test-cross`): everything is built for arm64, with Debian's libraries.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

out=$work/build

# build_bpf CC: builds an eBPF program for the machine that CC compiles for.
build_bpf() {
	env -u MAKEFLAGS -u MAKELEVEL -u CC -u CROSS_COMPILE make -s -C "$top" BUILD="$out" CC="$1" \
		"$out/bpf/profil.bpf.o"
}

# reads_registers STRUCT FIELD FILE: whether the program knows the registers by these names.
reads_registers() {
	"$bpftool" btf dump file "$3" | grep -A 30 "STRUCT '$1'" | grep "'$2'"
}

bpftool=/usr/sbin/bpftool
[ -x "$bpftool" ] || bpftool=bpftool
check "x86-64: it is built" build_bpf "clang --target=x86_64-linux-gnu"
check "x86-64: with its registers" reads_registers pt_regs ip "$out/bpf/profil.bpf.o"
check "arm64: it is built, again" build_bpf "clang --target=aarch64-linux-gnu"
check "arm64: with its registers" reads_registers user_pt_regs pstate "$out/bpf/profil.bpf.o"
check "RISC-V: fails" exits 2 build_bpf "clang --target=riscv64-linux-gnu"
check "RISC-V: says what is supported" says '"riscv64", and profil supports x86_64 and aarch64 only'

# prefix: make knows the programs' names by it.
mkdir "$work/bin"
cat >"$work/bin/other-gcc" <<'EOF'
#!/bin/sh
exec clang --target=aarch64-linux-gnu "$@"
EOF
chmod 755 "$work/bin/other-gcc"
build_by_prefix() {
	rm -rf "$out" && env -u MAKEFLAGS -u MAKELEVEL -u CC PATH="$work/bin:$PATH" make -s -C "$top" BUILD="$out" \
		CROSS_COMPILE=other- "$out/bpf/profil.bpf.o"
}
check "CROSS_COMPILE=: it is built" build_by_prefix
check "CROSS_COMPILE=: by the compiler of this name" grep -x aarch64 "$out/machine"

# --- Everything ---

# is_arm64 FILE...: each of them.
is_arm64() {
	local file

	for file; do
		readelf -h "$file" | grep -q 'Machine: *AArch64' || { echo "$file"; return 1; }
	done
}

if [ "${PROFIL_TEST_CROSS:-}" = all ]; then
	# shellcheck source=tests/kernels/debian.sh
	. "$top/tests/kernels/debian.sh"
	# shellcheck source=tests/kernels/arm64.sh
	. "$top/tests/kernels/arm64.sh"
	if get_sysroot; then
		check "arm64: everything is built" cross_make WERROR=-Werror all programs
		check "arm64: all of it is for arm64" is_arm64 "$build"/arm64/{profiltool,profild} \
			"$build"/arm64/lib/{libprofil.so.1,libprofil-gmon.so,profil/libprofil-bpf.so.1} \
			"$build"/arm64/tests/progs/shares
		check "arm64: make install" cross_make install DESTDIR="$work/installed"
		check "arm64: lib32 is refused" exits 2 cross_make lib32
	else
		skip "arm64: everything" "$why"
	fi
fi
finish
