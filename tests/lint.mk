# SPDX-License-Identifier: GPL-2.0-only
# Included by the Makefile of the top: style, and static analysis.

## make format, format-check  format the sources by .clang-format, or check that they are
## make lint                  all checks of style and static analysis: the targets lint-* alone
## make compile-commands      write build/compile_commands.json, for clangd and other tools

C_FILES := $(wildcard bpf/*.[ch] bpf/script/*.[ch] kmod/*.[ch] user/*/*.[ch] user/*/*/*.[ch] tests/*/*.[ch])

format:
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

format-check:
	$(Q)$(CLANG_FORMAT) --dry-run --Werror $(C_FILES)

# Warnings are errors.
lint: format-check lint-texts lint-scripts lint-spelling lint-reuse lint-tidy lint-cppcheck lint-gcc

# $(1): a program without which a check is skipped, or fails with PROFIL_TEST_STRICT=1.
lint_with = command -v $(1) >/dev/null || { \
	echo '$@: skipped: $(1) is not installed (Debian: apt-get install $(1))' >&2; \
	[ -z "$$PROFIL_TEST_STRICT" ]; exit; }

# shellcheck reads what a script sources once for each script, which was most of its time. So lib.sh is read by itself,
# and what sources it beside one that only has its names: its functions, and the variables that it sets and uses.
LINTED := $(BUILD)/lint

lint-texts:
	$(Q)rm -rf $(LINTED) && mkdir -p $(LINTED) && cp -r --parents tests/*.sh tests/*/*.sh user/tool/profiltool.bash \
		.ci/run .ci/pre-commit $(wildcard $(addprefix debian/tests/,lib.sh profile unprivileged module)) $(LINTED)
	$(Q)shellcheck tests/lib.sh
	$(Q){ echo '# shellcheck shell=bash disable=SC2034'; sed -n 's/^\([a-z_0-9]*() \){.*/\1{ :; }/p' tests/lib.sh; \
		grep '^declare' tests/lib.sh; grep -oE '\b[a-z_]+=' tests/lib.sh; grep -oE '[$$][{]?[a-z_]+' tests/lib.sh | sed 's/^[$$]{*\(.*\)/: "$$\1"/'; } | \
		awk '!seen[$$0]++' >$(LINTED)/tests/lib.sh
	$(Q)cd $(LINTED) && find . -type f ! -path ./tests/lib.sh | sort | xargs -P $(JOBS) -n 4 shellcheck -x
	$(Q)mandoc -Tlint -Wwarning $(MANUALS)

# eslint is Debian's, whose modules only Debian's node finds by itself.
lint-scripts:
	$(Q)$(call lint_with,eslint); NODE_PATH=/usr/share/nodejs eslint --no-eslintrc --config tests/eslint.json \
		--format unix --report-unused-disable-directives --ext .js,.mjs user tests

# Words that are right here: misspelled options and cut words in tests; variables of tests (fro, to);
# mdoc(7)'s Nd and Fo; the second syllable of a name. A picture has names that are cut too.
SPELLED_RIGHT := cancelability,addresse,checl,fo,fro,nd,nin,reprot

lint-spelling:
	$(Q)$(call lint_with,codespell); codespell --skip="*.svg" --ignore-words-list=$(SPELLED_RIGHT) \
		.ci .github *.md Kbuild Makefile dkms.conf debian bpf kmod packaging user $(filter-out tests/data,$(wildcard tests/*))

lint-reuse:
	$(Q)$(call lint_with,reuse); reuse lint --quiet || { reuse lint; exit 1; }

COMPILE_COMMANDS := $(BUILD)/compile_commands.json

# Made each time: it takes two seconds, and depends on all that make knows.
compile-commands:
	@mkdir -p $(BUILD)
	$(say) MAKE $(COMPILE_COMMANDS)
	$(Q)$(MAKE) --no-print-directory --always-make --dry-run V=1 all unit-tests programs | \
		tests/compile_commands.py >$(COMPILE_COMMANDS).new
	$(Q)mv $(COMPILE_COMMANDS).new $(COMPILE_COMMANDS)

# The compiler's own warnings, too. On standard error is how many there were in headers of the system.
lint-tidy: compile-commands $(GENERATED)
	$(Q)$(call lint_with,$(CLANG_TIDY)); printf '%s\n' $(wildcard bpf/*.c user/*/*.c user/*/*/*.c) | \
		xargs -P $(JOBS) -n 8 $(CLANG_TIDY) --quiet --warnings-as-errors='*' -p $(BUILD) 2>/dev/null

# Where cppcheck is wrong: it does not know x ?: y, nor that memcpy() copies a pointer's value, that
# arrays are filled behind a pointer, also by a macro, and that an index stays inside of a flexible array.
CPPCHECK_WRONG := selfAssignment memleakOnRealloc:user/util/array.c memleak:user/record/peer.c objectIndex:user/capture/counts.c \
	$(addprefix uninitvar:user/,format/gmon/gmon_write.c format/gperftools/gperftools_write.c \
	report/text.c util/file.c) \
	signConversion:user/lib/gmon.c

# The bytes of the eBPF programs alone would take two thirds of cppcheck's time.
$(BUILD)/cppcheck/%.skel.h: $(BUILD)/bpf/%.skel.h
	@mkdir -p $(@D)
	$(Q)sed '/^\\.*\\$$/d' $< >$@

lint-cppcheck: $(GENERATED) $(patsubst %,$(BUILD)/cppcheck/%.skel.h,sample profil wall)
	$(Q)$(call lint_with,cppcheck); cppcheck -j $(JOBS) --quiet --error-exitcode=1 --inline-suppr \
		--std=c11 --enable=warning,performance,portability -D__$(MACHINE)__ -I$(BUILD)/cppcheck $(ALL_CPPFLAGS) -D__cppcheck__ -DPROFIL_LIBDIR='""' \
		'-DLIBBPF_OPTS(type,name,...)=struct type name = {__VA_ARGS__}' \
		$(addprefix --suppress=,$(CPPCHECK_WRONG) '*:$(BUILD)/*' '*:/usr/include/*') user

lint-gcc:
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/lint-gcc WERROR=-Werror all lib32 unit-tests \
		programs

.PHONY: format format-check compile-commands lint lint-texts lint-scripts lint-spelling lint-reuse lint-tidy lint-cppcheck lint-gcc
