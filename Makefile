# SPDX-License-Identifier: GPL-2.0-only
# profil: see `make help`. Everything generated goes to $(BUILD).

VERSION := 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build

CC ?= gcc
CLANG ?= clang
CLANG_FORMAT ?= clang-format
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PROTOC_C ?= protoc-c
PKG_CONFIG ?= pkg-config

CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
LIBRARIES := libbpf libdw libelf zlib liblzma libprotobuf-c json-c

# `make V=1` shows the commands.
ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
endif

.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
.DEFAULT_GOAL := all

SOURCES := $(wildcard user/*/*.c)
OBJECTS := $(SOURCES:user/%.c=$(BUILD)/user/%.o) $(BUILD)/proto/profile.pb-c.o
# All but main(): what the unit tests link.
PARTS := $(filter-out $(BUILD)/user/tool/main.o,$(OBJECTS))
GENERATED := $(BUILD)/bpf/sample.skel.h $(BUILD)/proto/profile.pb-c.h

UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
PROGRAMS := $(patsubst tests/progs/%.c,$(BUILD)/tests/progs/%,$(wildcard tests/progs/*.c))

# As lazily as this: on a new machine `make test` installs pkg-config first.
ALL_CPPFLAGS = -D_GNU_SOURCE -DPROFIL_VERSION='"$(VERSION)"' -I. -Iuser -I$(BUILD)/bpf \
	-I$(BUILD)/proto $(shell $(PKG_CONFIG) --cflags $(LIBRARIES)) $(CPPFLAGS)
ALL_CFLAGS = -std=gnu11 -fvisibility=hidden $(WARNINGS) $(WERROR) $(CFLAGS)
ALL_LDLIBS = $(shell $(PKG_CONFIG) --libs $(LIBRARIES)) -liberty $(LDLIBS)

all: $(BUILD)/profiltool

help:
	@sed -n 's/^## //p' Makefile

## make                       build profiltool into build/
## make demo                  profile a running program by its PID and show the result
## make test                  run every test (as root; on Debian installs what is missing)
## make bench                 measure speed and cost, beside perf
## make install               install below $(DESTDIR)$(PREFIX); DESTDIR= PREFIX=/usr/local
## make uninstall             remove what was installed
## make format, format-check  lay the sources out by .clang-format, or check that they are
## make lint                  shellcheck, man pages, warnings as errors with gcc and clang
## make clean                 remove build/
## make V=1 ...               show the commands

# --- BPF: compiled for the kernel, embedded as a skeleton ---

BPF_ARCH := $(patsubst x86_64,x86,$(patsubst i%86,x86,$(shell uname -m)))

$(BUILD)/bpf/%.compiled.o: bpf/%.bpf.c bpf/%.h bpf/vmlinux.h
	@mkdir -p $(@D)
	$(say) CLANG $<
	$(Q)$(CLANG) -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra \
		$(WERROR) -c $< -o $@

$(BUILD)/bpf/%.bpf.o: $(BUILD)/bpf/%.compiled.o
	$(say) BPFTOOL $@
	$(Q)$(BPFTOOL) gen object $@ $<

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(say) BPFTOOL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# --- profile.proto ---

$(BUILD)/proto/%.pb-c.c $(BUILD)/proto/%.pb-c.h &: user/format/%.proto
	@mkdir -p $(@D)
	$(say) PROTOC-C $<
	$(Q)$(PROTOC_C) --proto_path=user/format --c_out=$(BUILD)/proto $<

$(BUILD)/proto/%.o: $(BUILD)/proto/%.c
	$(say) CC $<
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# --- user space ---

$(BUILD)/user/%.o: user/%.c Makefile | $(GENERATED)
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/profiltool: $(OBJECTS)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(ALL_LDLIBS) -o $@

$(BUILD)/tests/unit/%: tests/unit/%.c $(PARTS)
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP $< $(PARTS) $(ALL_LDLIBS) \
		-lcmocka -o $@

# Targets of the tests: plain programs, with frame pointers and a name for each function.
$(BUILD)/tests/progs/%: tests/progs/%.c
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline $(WARNINGS) $(WERROR) $< -pthread -ldl \
		-o $@

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# --- the two commands ---

demo:
	$(Q)tests/packages.sh build
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/demo.sh $(BUILD)/profiltool

test:
	$(Q)tests/packages.sh test
	$(Q)$(MAKE) --no-print-directory check

SHELL_TESTS := $(filter-out tests/lib.sh,$(wildcard tests/cli/*.sh)) tests/docs.sh tests/layers.sh \
	tests/kernels/kernels.sh
export PROFIL_BUILD := $(abspath $(BUILD))
export PROFIL_TEST_DATA ?= $(abspath ../shared/data)

check: all $(UNIT_TESTS) $(PROGRAMS)
	$(Q)prove --exec tests/tap.sh $(UNIT_TESTS) $(SHELL_TESTS)

bench: all $(PROGRAMS)
	$(Q)tests/bench/bench.sh

# --- style ---

C_FILES := $(wildcard bpf/*.[ch] user/*/*.[ch] tests/*/*.[ch])

format:
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

format-check:
	$(Q)$(CLANG_FORMAT) --dry-run --Werror $(C_FILES)

# All warnings are errors, in both compilers, in build folders of their own.
lint: format-check
	$(Q)shellcheck -x tests/*.sh tests/*/*.sh user/tool/profiltool.bash .ci/run
	$(Q)mandoc -Tlint -Wwarning user/tool/profiltool.1
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/lint-gcc WERROR=-Werror all unit-tests programs
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/lint-clang CC=$(CLANG) WERROR=-Werror all

unit-tests: $(UNIT_TESTS)
programs: $(PROGRAMS)

# --- installation ---

BINDIR := $(DESTDIR)$(PREFIX)/bin
MANDIR := $(DESTDIR)$(PREFIX)/share/man
COMPLETIONDIR := $(DESTDIR)$(PREFIX)/share/bash-completion/completions

install: all
	install -D -m 755 $(BUILD)/profiltool $(BINDIR)/profiltool
	install -D -m 644 user/tool/profiltool.1 $(MANDIR)/man1/profiltool.1
	install -D -m 644 user/tool/profiltool.bash $(COMPLETIONDIR)/profiltool

uninstall:
	rm -f $(BINDIR)/profiltool $(MANDIR)/man1/profiltool.1 $(COMPLETIONDIR)/profiltool

clean:
	$(say) RM $(BUILD)
	$(Q)rm -rf $(BUILD)

.PHONY: all help demo test check bench format format-check lint unit-tests programs install \
	uninstall clean
