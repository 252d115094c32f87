# SPDX-License-Identifier: GPL-2.0-only
# profil: see `make help`. Everything generated goes to $(BUILD).

VERSION := 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build

# Of another machine: as for the kernel, the prefix of its compiler's name, such as aarch64-linux-gnu-.
CROSS_COMPILE ?=
# Not ?=, which would keep the values that make itself has for these.
ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
ifeq ($(origin AR),default)
AR := $(CROSS_COMPILE)ar
endif
OBJCOPY ?= $(CROSS_COMPILE)objcopy
PKG_CONFIG ?= $(or $(if $(CROSS_COMPILE),$(shell command -v $(CROSS_COMPILE)pkg-config)),pkg-config)
# Programs for the machine that CC compiles for, by its name in BPF: bpf/arch.h.
MACHINE = $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
BPF_ARCH_x86_64 := x86
BPF_ARCH_aarch64 := arm64
BPF_ARCH = $(or $(BPF_ARCH_$(MACHINE)),$(error $(CC) compiles for "$(MACHINE)", and profil supports \
	x86_64 and aarch64 only: see bpf/arch.h))
CLANG ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PROTOC_C ?= protoc-c

CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
LIBRARIES := libbpf libdw libelf zlib liblzma libprotobuf-c json-c ncursesw
# What pushes windows loads it at run time: only its headers are needed.
PUSH_LIBRARIES := libcurl
SOVERSION := 1

comma := ,

# `make V=1` shows the commands.
ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
endif

# A list of files has them between spaces.
ifneq ($(words $(CURDIR)) $(words $(BUILD)),1 1)
$(error make cannot build in a directory whose name has a space, "$(if $(filter 1,$(words $(CURDIR))),$(BUILD),$(CURDIR))": \
	move or rename it)
endif

.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
.DEFAULT_GOAL := all

# The objects of each program and library: all files of these directories, except as below.
objects = $(patsubst user/%.c,$(BUILD)/user/%.o,$(foreach d,$(1),$(wildcard user/$(d)/*.c user/$(d)/*/*.c)))

TOOL_OBJECTS := $(call objects,util dcpi capture profile symbol script record format archive report cli tool) \
	$(addprefix $(BUILD)/proto/,profile.pb-c.o otlp.pb-c.o)
PUSH_OBJECTS := $(call objects,util dcpi profile symbol script format archive push) \
	$(addprefix $(BUILD)/proto/,profile.pb-c.o otlp.pb-c.o otlp_reply.pb-c.o pyroscope.pb-c.o)
DAEMON_OBJECTS := $(call objects,capture record cli daemon) $(PUSH_OBJECTS) \
	$(addprefix $(BUILD)/user/report/,text.o row_view.o chance.o changes/changes.o changes/judge.o)
MODULE_OBJECTS := $(call objects,util capture) $(BUILD)/user/lib/bpf_module.o
# The gcc -pg runtime, beside the library.
GMON_SOURCES := $(wildcard user/lib/gmon*.c user/lib/*.S)
# Replaces a function of libc, which a static program already contains.
SHARED_ONLY := user/lib/atexit.c
OWN_SOURCES := $(filter-out user/lib/bpf_module.c $(GMON_SOURCES),$(wildcard user/lib/*.c))
# Parts of the tools that link only libc, and the library's files that use them. In libprofil.a they are one
# object with local names, which cannot collide with a static program's.
COMMON_SOURCES := $(wildcard user/dcpi/*.c user/util/*.c)
PACKED_SOURCES := $(COMMON_SOURCES) $(addprefix user/lib/,dcpi.c gperftools.c maps.c segments.c)
LIB_SOURCES := $(OWN_SOURCES) $(COMMON_SOURCES)
library_objects = $(addprefix $(1)/,$(addsuffix .o,$(basename $(2))))
GENERATED := $(addprefix $(BUILD)/bpf/,sample.skel.h profil.skel.h wall.skel.h type_names.h) \
	$(addprefix $(BUILD)/proto/,profile.pb-c.h otlp.pb-c.h otlp_reply.pb-c.h pyroscope.pb-c.h) \
	$(addprefix $(BUILD)/embed/,flame_graph.js.h flame_graph.js.hash.h web.html.h web.js.h web.css.h web.js.hash.h web.css.hash.h)

# Objects are the same in whatever directory they are built: they name files as seen from here. A compiler
# takes the directory's name from PWD, which may have come through a symbolic link.
export PWD := $(CURDIR)
NO_BUILD_PATH = -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(BUILD))=build

# Run when first used, and only then: on a new machine `make test` installs pkg-config first.
PACKAGES_CFLAGS = $(eval PACKAGES_CFLAGS := $$(shell $(PKG_CONFIG) --cflags $(LIBRARIES) $(PUSH_LIBRARIES)))$(PACKAGES_CFLAGS)
PACKAGES_LIBS = $(eval PACKAGES_LIBS := $$(shell $(PKG_CONFIG) --libs $(LIBRARIES)))$(PACKAGES_LIBS)
ALL_CPPFLAGS = -D_GNU_SOURCE -DPROFIL_VERSION='"$(VERSION)"' -I. -Iuser \
	-I$(BUILD)/bpf -I$(BUILD)/proto -I$(BUILD)/embed $(PACKAGES_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden $(NO_BUILD_PATH) $(WARNINGS) $(WERROR) $(CFLAGS)
ALL_LDLIBS = $(PACKAGES_LIBS) -liberty -lm $(LDLIBS)
# The libraries of the layers up to capture.
CAPTURE_LDLIBS = $(shell $(PKG_CONFIG) --libs libbpf) $(LDLIBS)

all: $(BUILD)/profiltool $(BUILD)/profild library

help:
	@sed -n 's/^## //p' Makefile tests/Makefile tests/lint.mk packaging/Makefile

## make                       build profiltool, profild and libprofil into build/
## make lib32                 build libprofil for 32-bit programs, too
## make kmod                  build profil.ko for the running kernel, or KDIR=, into build/kmod/
## make demo                  profile a small service: where it computes, why it waits, what became slower
## make check                 run the tests that need no root, network or other packages, in a minute
## make test                  run every test (as root; on Debian installs missing packages)
## make install               install below $(DESTDIR)$(PREFIX); DESTDIR= PREFIX=/usr/local
## make uninstall             remove what was installed
## make clean                 remove build/
## make V=1 ...               show the commands

# --- What the build runs and includes, with Debian's package of each ---

TOOLS = '$(firstword $(CC)) gcc$(if $(CROSS_COMPILE),-$(CROSS_COMPILE:-=))' '$(firstword $(CLANG)) clang' '$(BPFTOOL) bpftool' \
	'$(PROTOC_C) protobuf-c-compiler' '$(PKG_CONFIG) pkg-config'
PACKAGE_OF := 'libbpf libbpf-dev' 'libdw libdw-dev' 'libelf libelf-dev' 'zlib zlib1g-dev' 'liblzma liblzma-dev' \
	'libprotobuf-c libprotobuf-c-dev' 'json-c libjson-c-dev' 'ncursesw libncurses-dev' \
	'libcurl libcurl4-gnutls-dev'
HEADERS := 'libiberty/demangle.h libiberty-dev' 'sys/capability.h libcap-dev'

# Names all that is missing at once. pkg-config is asked about each library only if one of them is.
tools:
	$(Q)missing() { echo "$$1 is missing (Debian: apt-get install $$2)" >&2; failed=1; }; failed=; \
	for tool in $(TOOLS); do \
		set -- $$tool; command -v $$1 >/dev/null || missing $$1 $$2; \
	done; \
	[ -z "$$failed" ] || exit 1; \
	$(PKG_CONFIG) --exists $(LIBRARIES) $(PUSH_LIBRARIES) || for library in $(PACKAGE_OF); do \
		set -- $$library; $(PKG_CONFIG) --exists $$1 || missing "the library $$1" $$2; \
	done; \
	for header in $(HEADERS); do \
		set -- $$header; echo "#include <$$1>" | $(CC) $(CPPFLAGS) $(CFLAGS) -E -o /dev/null - 2>/dev/null || \
			missing "<$$1>" $$2; \
	done; \
	[ -z "$$failed" ]

# --- BPF: compiled for the kernel, embedded as a skeleton ---

# Everything is built again when CC is another machine's.
$(BUILD)/machine: always | tools
	@mkdir -p $(@D)
	@echo '$(MACHINE)' | cmp -s - $@ || echo '$(MACHINE)' >$@

$(BUILD)/bpf/%.compiled.o: bpf/%.bpf.c $(wildcard bpf/*.h bpf/script/*.h) Makefile $(BUILD)/machine
	@mkdir -p $(@D)
	$(say) CLANG $<
	$(Q)$(CLANG) -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra \
		$(NO_BUILD_PATH) $(WERROR) -c $< -o $@

$(BUILD)/bpf/%.bpf.o: $(BUILD)/bpf/%.compiled.o
	$(say) BPFTOOL $@
	$(Q)$(BPFTOOL) gen object $@ $<

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(say) BPFTOOL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# The names of the kernel's types that the programs use, sorted.
$(BUILD)/bpf/type_names.h: bpf/vmlinux.h
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q){ head -n 1 $<; sed -n 's/^\(struct\|enum\) \([a-z0-9_]\+\) {.*/"\2",/p' $< | LC_ALL=C sort; } >$@

# --- *.proto ---

define proto_rule
$$(BUILD)/proto/%.pb-c.c $$(BUILD)/proto/%.pb-c.h &: $(1)/%.proto | tools
	@mkdir -p $$(@D)
	$$(say) PROTOC-C $$<
	$$(Q)$$(PROTOC_C) --proto_path=$(1) --c_out=$$(BUILD)/proto $$<
endef
$(foreach directory,user/format/pprof user/format/otlp user/push,$(eval $(call proto_rule,$(directory))))

$(BUILD)/proto/%.o: $(BUILD)/proto/%.c Makefile $(BUILD)/machine
	$(say) CC $<
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# --- Text embedded in programs: a string literal for each line ---

EMBED = sed 's/[\\"?]/\\&/g; s/.*/"&\\n"/'
# What a page's policy calls a script or style: the base64 of its SHA-256.
HASH = printf '"%s"\n' "$$(sha256sum $< | cut -c 1-64 | tr a-f A-F | basenc --base16 -d | base64)"

# The page's modules, each behind those that it imports, are one script in it: without import and export.
WEB_MODULES := $(patsubst %,user/report/web/%.mjs,profile chance selection dom table flame time chain states code why page)

$(BUILD)/embed/web.js: $(WEB_MODULES) Makefile
	@mkdir -p $(@D)
	$(Q)(echo '"use strict";'; sed '/^import /{:a; /;$$/d; N; ba}; s/^export //' $(WEB_MODULES); echo 'main();') >$@

define embed_rules
$$(BUILD)/embed/%.h: $(1)/%
	@mkdir -p $$(@D)
	$$(say) EMBED $$<
	$$(Q)$$(EMBED) $$< >$$@

$$(BUILD)/embed/%.hash.h: $(1)/%
	@mkdir -p $$(@D)
	$$(Q)$$(HASH) >$$@
endef
$(foreach directory,user/report/flame_graph user/report/web $(BUILD)/embed,$(eval $(call embed_rules,$(directory))))

# --- user space ---

$(BUILD)/user/%.o: user/%.c Makefile $(BUILD)/machine | $(GENERATED)
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/profiltool: $(TOOL_OBJECTS)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(ALL_LDLIBS) -lcap -o $@

$(BUILD)/profild: $(DAEMON_OBJECTS)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(ALL_LDLIBS) -lcap -o $@

# --- libprofil links only libc; it loads the module when it uses eBPF ---

# A signal handler must not be the first to touch a thread-local variable that libc has yet to allocate.
$(BUILD)/user/lib/%.o $(BUILD)/32/user/lib/%.o: ALL_CFLAGS += -ftls-model=initial-exec

# Where libprofil-gmon looks for libprofil before the loader's own directories; for these it can be empty.
RUNPATH ?= $$ORIGIN

# $(1): the directory of the library, $(2): that of its objects, $(3): additional options for gcc
define library_rules
$(1)/libprofil.so.$(SOVERSION): $(call library_objects,$(2),$(LIB_SOURCES)) user/lib/libprofil.map
	@mkdir -p $$(@D)
	$$(say) LD $$@
	$$(Q)$$(CC) $(3) $$(CFLAGS) $$(LDFLAGS) -shared -Wl,-soname,$$(@F) -Wl,-z,defs,-z,nodelete \
		-Wl,--version-script=user/lib/libprofil.map $$(filter %.o,$$^) -o $$@

$(1)/libprofil.so: $(1)/libprofil.so.$(SOVERSION)
	$$(Q)ln -sf $$(<F) $$@

$(1)/libprofil-gmon.so: $(call library_objects,$(2),$(GMON_SOURCES)) $(1)/libprofil.so \
		user/lib/libprofil-gmon.map
	$$(say) LD $$@
	$$(Q)$$(CC) $(3) $$(CFLAGS) $$(LDFLAGS) -shared -Wl,-soname,$$(@F) -Wl,-z,defs,-z,nodelete \
		-Wl,--version-script=user/lib/libprofil-gmon.map $$(if $$(RUNPATH),-Wl$$(comma)-rpath$$(comma)'$$(RUNPATH)') \
		$$(filter %.o,$$^) -L$(1) -lprofil -o $$@

$(2)/packed.o: $(call library_objects,$(2),$(PACKED_SOURCES))
	@mkdir -p $$(@D)
	$$(say) LD $$@
	$$(Q)$$(CC) $(3) -r -nostdlib $$^ -o $$@
	$$(Q)$$(OBJCOPY) --wildcard --keep-global-symbol='profil_*' $$@

$(1)/libprofil.a: $(2)/packed.o $(call library_objects,$(2),$(filter-out $(SHARED_ONLY) $(PACKED_SOURCES),$(LIB_SOURCES) $(GMON_SOURCES)))
	@mkdir -p $$(@D)
	$$(say) AR $$@
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(eval $(call library_rules,$(BUILD)/lib,$(BUILD)))
$(eval $(call library_rules,$(BUILD)/lib32,$(BUILD)/32,-m32))

# Part of libprofil: its name changes with the library's.
BPF_MODULE := profil/libprofil-bpf.so.$(SOVERSION)
LIBRARY := libprofil.so.$(SOVERSION) libprofil.so libprofil.a libprofil-gmon.so
library: $(addprefix $(BUILD)/lib/,$(LIBRARY)) $(BUILD)/lib/$(BPF_MODULE)
lib32: $(addprefix $(BUILD)/lib32/,$(LIBRARY))

ifneq ($(filter lib32,$(MAKECMDGOALS)),)
ifneq ($(MACHINE),x86_64)
$(error lib32: only x86_64 has 32-bit programs that profil counts, and $(CC) compiles for "$(MACHINE)")
endif
endif

$(BUILD)/lib/$(BPF_MODULE): $(MODULE_OBJECTS) user/lib/bpf_module.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs \
		-Wl,--version-script=user/lib/bpf_module.map $(filter %.o,$^) $(CAPTURE_LDLIBS) -o $@

$(BUILD)/user/lib/%.o: user/lib/%.S Makefile $(BUILD)/machine
	@mkdir -p $(@D)
	$(say) AS $<
	$(Q)$(CC) -c $< -o $@

$(BUILD)/32/user/lib/%.o: user/lib/%.S Makefile
	@mkdir -p $(@D)
	$(say) AS -m32 $<
	$(Q)$(CC) -m32 -c $< -o $@

$(BUILD)/32/user/%.o: user/%.c Makefile
	@mkdir -p $(@D)
	$(say) CC -m32 $<
	$(Q)$(CC) -m32 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DPROFIL_VERSION='"$(VERSION)"' \
		-I. -Iuser $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# --- profil.ko: the kernel's build works in a directory of links to the sources ---

KDIR ?= /lib/modules/$(shell uname -r)/build
KMOD := $(abspath $(BUILD))/kmod
KMOD_FILES := Kbuild dkms.conf $(wildcard kmod/*.[ch]) bpf/cell.h

kmod:
	$(Q)[ -e $(KDIR)/Makefile ] || { \
		echo 'No kernel headers in $(KDIR).' >&2; \
		echo "Install them (Debian: apt-get install linux-headers-$$(uname -r))," \
			'or give another directory: make kmod KDIR=...' >&2; exit 1; }
	$(Q)mkdir -p $(KMOD)/kmod $(KMOD)/bpf && find $(KMOD) -type l -delete
	$(Q)for file in $(KMOD_FILES); do ln -s $(CURDIR)/$$file $(KMOD)/$$file || exit; done
	$(say) KBUILD $(KMOD)/profil.ko
	$(Q)$(MAKE) --no-print-directory -C $(KDIR) M=$(KMOD) modules

# --- the two commands ---

demo:
	$(Q)tests/packages.sh build
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/demo/demo.sh $(BUILD)/profiltool

# How many tests, and builds for them, run in parallel when make has no -j. Tests wait now and then, and two more
# use the CPUs meanwhile.
JOBS ?= $(shell nproc)
TEST_JOBS = $(if $(filter file,$(origin JOBS)),$(shell expr $(JOBS) + 2),$(JOBS))
PARALLEL_MAKE = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))
# Tests run python3 some thousand times; another one before the system's in PATH, such as pyenv's, may take
# ten times as long to start.
PYTHON := $(BUILD)/tests/python
# What failed is printed again after the summary.
FAILED := $(BUILD)/tests/failed
PROVE := PATH="$(abspath $(PYTHON)):$$PATH" prove --timer -j$(TEST_JOBS) --exec tests/tap.sh

check: $(PYTHON)/python3
	+$(Q)$(PARALLEL_MAKE) $(BUILD)/profiltool library unit-tests $(addprefix $(BUILD)/tests/,progs/shares progs/chains unit/times_make unit/chance_print)
	$(Q)$(PROVE) $(UNIT_TESTS) $(CHECKS)

test:
	@echo 'make test runs every test: some 20 minutes on two CPUs.' \
		'make check takes one.'
	$(Q)tests/packages.sh test
	+$(Q)$(PARALLEL_MAKE) all lib32 quick-fuzzers unit-tests programs $(PYTHON)/python3
	$(Q)rm -rf $(FAILED) && mkdir $(FAILED)
	$(Q)PROFIL_TEST_FAILED=$(abspath $(FAILED)) $(PROVE) $(TESTS) || \
		{ find $(FAILED) -type f -size +0 -exec head -n 40 {} + | cut -c 1-300; false; }

# --- installation ---

BINDIR := $(PREFIX)/bin
SBINDIR := $(PREFIX)/sbin
LIBDIR ?= $(PREFIX)/lib
LIB32DIR ?= $(PREFIX)/lib32
INCLUDEDIR := $(PREFIX)/include
MANDIR := $(PREFIX)/share/man
# The section of the pages for programmers. The Linux man-pages have a profil(3): a distribution has 3profil.
MAN3 ?= 3
COMPLETIONDIR := $(PREFIX)/share/bash-completion/completions
# zsh looks into another directory where a distribution says so: Debian has vendor-completions.
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR := $(PREFIX)/share/fish/vendor_completions.d
SYSTEMDDIR ?= $(PREFIX)/lib/systemd/system

SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)

UNITS := profild.service profil-record.service profil-continuous.service
SOCKETS := profild.socket profil-record.socket
MANUALS := $(wildcard user/*/*.[1-8])

# Installed files contain their directories: rebuild them when those change.
$(BUILD)/directories: always
	@mkdir -p $(@D)
	@echo '$(SBINDIR) $(LIBDIR) $(INCLUDEDIR) $(SYSCONFDIR)' | cmp -s - $@ || \
		echo '$(SBINDIR) $(LIBDIR) $(INCLUDEDIR) $(SYSCONFDIR)' >$@

$(BUILD)/user/tool/run.o: $(BUILD)/directories
$(BUILD)/user/tool/run.o: private ALL_CPPFLAGS += -DPROFIL_LIBDIR='"$(LIBDIR)"'

$(BUILD)/%: user/lib/%.in Makefile $(BUILD)/directories
	$(Q)sed 's|@VERSION@|$(VERSION)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|' $< >$@

$(BUILD)/%.service: user/daemon/%.service.in Makefile $(BUILD)/directories
	$(Q)sed 's|@SBINDIR@|$(SBINDIR)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|' $< >$@

# So that the loader finds the libraries by their names. A package's own scripts do that.
refresh_loader = [ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

install: all $(BUILD)/profil.pc $(addprefix $(BUILD)/,$(UNITS))
	install -D -m 755 -t $(DESTDIR)$(BINDIR) $(BUILD)/profiltool
	install -D -m 755 -t $(DESTDIR)$(SBINDIR) $(BUILD)/profild
	install -D -m 755 -t $(DESTDIR)$(LIBDIR) $(BUILD)/lib/libprofil.so.$(SOVERSION) \
		$(BUILD)/lib/libprofil-gmon.so
	ln -sf libprofil.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libprofil.so
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(BUILD)/lib/libprofil.a
	install -D -m 755 -t $(DESTDIR)$(LIBDIR)/profil $(BUILD)/lib/$(BPF_MODULE)
	install -D -m 644 -t $(DESTDIR)$(LIBDIR)/pkgconfig $(BUILD)/profil.pc
	install -D -m 644 -t $(DESTDIR)$(INCLUDEDIR) user/lib/profil.h
	install -D -m 644 -t $(DESTDIR)$(SYSTEMDDIR) $(addprefix $(BUILD)/,$(UNITS)) \
		$(addprefix user/daemon/,$(SOCKETS))
	[ -e $(DESTDIR)$(SYSCONFDIR)/profil/continuous.conf ] || \
		install -D -m 644 -t $(DESTDIR)$(SYSCONFDIR)/profil user/daemon/continuous.conf
	for page in $(filter-out %.3,$(MANUALS)); do \
		install -D -m 644 -t $(DESTDIR)$(MANDIR)/man$${page##*.} $$page || exit; \
	done
	for page in $(basename $(notdir $(filter %.3,$(MANUALS)))); do \
		install -D -m 644 user/lib/$$page.3 $(DESTDIR)$(MANDIR)/man3/$$page.$(MAN3) || exit; \
	done
	install -D -m 644 user/tool/profiltool.bash $(DESTDIR)$(COMPLETIONDIR)/profiltool
	install -D -m 644 user/tool/profiltool.zsh $(DESTDIR)$(ZSHDIR)/_profiltool
	install -D -m 644 -t $(DESTDIR)$(FISHDIR) user/tool/profiltool.fish
	$(refresh_loader)

## make install-lib32         install the libraries of make lib32
install-lib32: lib32
	install -D -m 755 -t $(DESTDIR)$(LIB32DIR) $(BUILD)/lib32/libprofil.so.$(SOVERSION) \
		$(BUILD)/lib32/libprofil-gmon.so
	ln -sf libprofil.so.$(SOVERSION) $(DESTDIR)$(LIB32DIR)/libprofil.so
	install -D -m 644 -t $(DESTDIR)$(LIB32DIR) $(BUILD)/lib32/libprofil.a
	$(refresh_loader)

DKMSDIR ?= /usr/src/profil-$(VERSION)

## make install-dkms          install the sources of profil.ko for dkms, in DKMSDIR=
install-dkms:
	for file in $(KMOD_FILES); do \
		install -D -m 644 $$file $(DESTDIR)$(DKMSDIR)/$$file || exit; \
	done

DOCDIR ?= $(PREFIX)/share/doc/profiltool
# Where a package has these two; without, they are installed, too.
CHANGELOG_LINK ?=
LICENSE_LINK ?=
DOCUMENTS = README.md CONTRIBUTING.md NEWS.md SECURITY.md $(wildcard user/doc/*.md user/doc/*.json) user/report/flame_graph/postgres.svg \
	$(if $(CHANGELOG_LINK),,CHANGELOG.md) $(if $(LICENSE_LINK),,LICENSE)

## make install-doc           install README.md and the pages that it leads to, in DOCDIR=
# In one directory: their links are changed for that.
install-doc:
	install -D -m 644 -t $(DESTDIR)$(DOCDIR) $(DOCUMENTS)
	sed -i -e 's,](user/doc/,](,g; s,](user/report/flame_graph/,](,g; s,](\.\./\.\./README\.md,](README.md,g' \
		-e 's,](user/tool/\([a-z-]*\)\.\([1-8]\)),](../../man/man\2/\1.\2.gz),g' \
		-e 's,](CHANGELOG\.md),]($(or $(CHANGELOG_LINK),CHANGELOG.md)),; s,](LICENSE),]($(or $(LICENSE_LINK),LICENSE)),' \
		$(DESTDIR)$(DOCDIR)/*.md

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/profiltool $(DESTDIR)$(SBINDIR)/profild
	for directory in $(LIBDIR) $(LIB32DIR); do \
		rm -f $(addprefix $(DESTDIR)$$directory/,$(LIBRARY)); \
	done
	rm -f $(DESTDIR)$(LIBDIR)/$(BPF_MODULE) $(DESTDIR)$(LIBDIR)/pkgconfig/profil.pc
	rm -f $(DESTDIR)$(INCLUDEDIR)/profil.h $(DESTDIR)$(COMPLETIONDIR)/profiltool
	rm -f $(DESTDIR)$(ZSHDIR)/_profiltool $(DESTDIR)$(FISHDIR)/profiltool.fish
	rm -f $(addprefix $(DESTDIR)$(SYSTEMDDIR)/,$(SOCKETS) $(UNITS))
	! cmp -s user/daemon/continuous.conf $(DESTDIR)$(SYSCONFDIR)/profil/continuous.conf || \
		rm $(DESTDIR)$(SYSCONFDIR)/profil/continuous.conf
	for page in $(notdir $(filter-out %.3,$(MANUALS))); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$$page; \
	done
	rm -f $(patsubst %.3,$(DESTDIR)$(MANDIR)/man3/%.$(MAN3),$(notdir $(filter %.3,$(MANUALS))))
	rm -f $(addprefix $(DESTDIR)$(DKMSDIR)/,$(KMOD_FILES)) $(addprefix $(DESTDIR)$(DOCDIR)/,$(notdir $(DOCUMENTS)))
	-rmdir $(DESTDIR)$(DOCDIR) $(DESTDIR)$(LIBDIR)/profil $(DESTDIR)$(SYSCONFDIR)/profil $(addprefix $(DESTDIR)$(DKMSDIR),/kmod /bpf) \
		$(DESTDIR)$(DKMSDIR) 2>/dev/null

clean:
	$(say) RM $(BUILD)
	$(Q)rm -rf $(BUILD)

.PHONY: all tools library lib32 kmod help demo check test install install-lib32 install-dkms install-doc uninstall clean always

include tests/lint.mk tests/Makefile packaging/Makefile

# Our dependencies, not files of that name in kernels' headers, the collector's sources or Debian systems.
-include $(shell find $(BUILD) \( -path $(BUILD)/kernels -o -path $(BUILD)/push -o -path $(BUILD)/roots \) -prune \
	-o -type f -name '*.d' -print 2>/dev/null)

