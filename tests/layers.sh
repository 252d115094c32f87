#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The directions of #include between the layers, and rules that hold for every source file.
# PROFIL_TREE names another tree to check.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

tree=${PROFIL_TREE:-$top}

# The layers from top to bottom. An include may point to the own layer or up.
layers='bpf kmod util dcpi capture lib profile symbol record format archive push report cli tool,daemon'

# Headers that the build generates, and the one layer that may include each.
generated='sample.skel.h:capture profil.skel.h:capture wall.skel.h:capture type_names.h:capture profile.pb-c.h:format
	otlp.pb-c.h:format otlp_reply.pb-c.h:push pyroscope.pb-c.h:push flame_graph.js.h:report flame_graph.js.hash.h:report
	web.html.h:report web.js.h:report web.css.h:report web.js.hash.h:report web.css.hash.h:report'

# System headers that only these layers may include.
reserved='
	^bpf/			bpf capture
	^linux/perf_event\.h$	bpf capture format
	^perf_event\.h$		bpf capture
	^libelf\.h$		symbol
	^gelf\.h$		symbol
	^elfutils/		symbol
	^dwarf\.h$		symbol
	^(n?curses|term)\.h$	tool
	^curl/			push
'

# The files of the tree: those that git tracks or would track, or all files without git. $only limits them
# to one file.
only=
files() {
	if [ -n "$only" ]; then
		[ ! -f "$1/$only" ] || echo "$only"
		return
	fi
	if [ "$1" = "$tree" ] && [ -s "$work/files" ]; then # they stay the same
		cat "$work/files"
		return
	fi
	(
		cd "$1" || exit
		if [ -e .git ]; then
			# git refuses a directory of another user, as root of a container has it, if not asked to trust it.
			git -c safe.directory='*' ls-files --cached --others --exclude-standard
		else
			find . -path ./build -prune -o -type f -printf '%P\n'
		fi
	) | while IFS= read -r file; do
		[ -f "$1/$file" ] && printf '%s\n' "$file"
	done | sort -u
}

files "$tree" >"$work/of_tree"
mv "$work/of_tree" "$work/files"

sources() {
	files "$1" | grep -E '^(bpf|kmod|user)/.*\.[ch]$'
}

# "FILE HEADER" for each #include of the kind that begins with $2: " or <
includes() {
	local pattern="^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*$2"

	sources "$1" | (cd "$1" && xargs -d '\n' grep -HE "$pattern") |
		sed -E 's/:[^"<]*["<]/ /; s/[">].*//'
}

# layer_of FILE: sets $layer, from its path: bpf/x, user/LAYER/x. The languages are a room of the layer that
# reads ELF files: they are found by symbols, and whoever reads a file asks which one it is.
layer_of() {
	layer=${1#user/}
	layer=${layer%%/*}
	[ "$layer" != script ] || layer=symbol
}

# The number of each layer, from 1 at the top.
declare -A rank
number=0
for group in $layers; do
	number=$((number + 1))
	for layer in ${group//,/ }; do
		rank[$layer]=$number
	done
done

# find_header TREE FILE HEADER: sets $found to the file that FILE includes by this name; empty if there is
# none.
find_header() {
	local root=$1 directory=${2%/*} header=$3 path

	found=
	for path in "$directory/$header" "$header" "user/$header"; do
		[ -f "$root/$path" ] || continue
		[[ $path != *..* ]] || path=$(realpath -s --relative-to="$root" "$root/$path")
		found=$path
		return
	done
}

# --- Rules. Each prints its violations ---

# Generated headers, and headers that do not exist.
check_unfound() {
	local file=$1 header=$2 entry layer

	layer_of "$file"
	for entry in $generated; do
		[ "$header" = "${entry%:*}" ] || continue
		[ "$layer" = "${entry#*:}" ] ||
			echo "$file: only ${entry#*:} may include $header"
		return
	done
	echo "$file: there is no $header"
}

rule_direction() {
	local file header found layer from to

	includes "$1" '"' | while read -r file header; do
		find_header "$1" "$file" "$header"
		if [ -z "$found" ]; then
			check_unfound "$file" "$header"
			continue
		fi
		layer_of "$file"
		from=$layer
		layer_of "$found"
		to=$layer
		[ "$from" = "$to" ] && continue
		if [ -z "${rank[$from]:-}" ] || [ -z "${rank[$to]:-}" ]; then
			echo "$file: $header: a layer that is not known"
		elif [ "${rank[$to]}" -ge "${rank[$from]}" ]; then
			echo "$file: $header points down, from $from to $to"
		fi
	done
}

rule_headers_only() {
	includes "$1" '["<]' | grep -vE '\.h$' | sed 's/ /: is no header: /'
}

rule_reserved() {
	local file header rule rules pattern allowed layer

	mapfile -t rules < <(grep . <<<"$reserved")
	includes "$1" '<' | while read -r file header; do
		layer_of "$file"
		for rule in "${rules[@]}"; do
			pattern=${rule//[[:blank:]]/ }
			pattern=${pattern#"${pattern%%[! ]*}"}
			allowed=${pattern#* }
			pattern=${pattern%% *}
			[[ $header =~ $pattern ]] || continue
			[[ " $allowed " == *" $layer "* ]] ||
				echo "$file: only these may include <$header>: $allowed"
		done
	done
}

# A subdirectory of a layer holds one format, one view, or the readers of one kind of file. It includes its
# own files and those of its layer that are in no subdirectory, but no other subdirectory's. Of the files
# that are in none, only these include headers of subdirectories.
include_subdirectories='user/capture/capture.h user/capture/sample_program.h user/capture/waits.c
	user/format/format.c
	user/script/php.c
	user/symbol/elf.c user/symbol/entry.c user/symbol/file_cache.c user/symbol/parser.c user/symbol/symbol.c'

# subdirectory_of FILE: sets $subdirectory; empty: the file is in none.
subdirectory_of() {
	subdirectory=
	[[ $1 != user/*/*/* ]] || subdirectory=${1%/*}
}

rule_subdirectories() {
	local file header found layer subdirectory to from

	includes "$1" '"' | while read -r file header; do
		find_header "$1" "$file" "$header"
		subdirectory_of "$found"
		to=$subdirectory
		subdirectory_of "$file"
		from=$subdirectory
		layer_of "$file"
		[[ $to == "user/$layer/"* && $to != "$from" ]] || continue
		if [ -n "$from" ]; then
			echo "$file: $header is of another subdirectory"
		elif [[ " ${include_subdirectories//[[:space:]]/ } " != *" $file "* ]]; then
			echo "$file: $header is of a subdirectory"
		fi
	done
}

# A language has its files in bpf/script/ and user/script/, and nobody else knows one: others include these.
script_doors='bpf/script/language.h bpf/script/scripts.h bpf/script/code_maps.h user/script/language.h user/script/context.h'

rule_scripts() {
	local file header found

	includes "$1" '"' | grep -vE '^(bpf|user)/script/' | grep 'script/' | while read -r file header; do
		find_header "$1" "$file" "$header"
		[[ $found != bpf/script/* && $found != user/script/* ]] || [[ " $script_doors " == *" $found "* ]] ||
			echo "$file: $header is for the languages"
	done
}

# Layers in which no files include each other in a circle, where a .c and its .h are one.
acyclic='kmod util dcpi lib profile daemon'

rule_circles() {
	local file header found layer

	# That header is what programs include, and no part of profil.c.
	includes "$1" '"' | grep -v ' lib/profil\.h$' | while read -r file header; do
		find_header "$1" "$file" "$header"
		layer_of "$file"
		[[ " $acyclic " == *" $layer "* && ${found#user/} == "$layer/"* ]] || continue
		[ "${file%.*}" = "${found%.*}" ] || echo "${file%.*} ${found%.*}"
	done | sort -u | tsort 2>&1 >/dev/null |
		sed -nE 's!^tsort: ((user|kmod)/.*)!\1.c: is in a circle of includes!p'
}

# DCPI has a separate layer, because libprofil needs it as well. Else only its format, the table of formats,
# profild's option and the tool's --dcpi-stride know of it.
rule_dcpi() {
	includes "$1" '"' | grep -vE '^user/(dcpi|lib|format/dcpi)/' | grep ' dcpi/' |
		sed -E 's/ (.*)/: \1 is only for dcpi and lib/'
	sources "$1" | grep -vE '^user/((dcpi|lib|daemon|format/dcpi)/|format/format\.c|tool/(tool\.h|files\.c))' |
		(cd "$1" && xargs -d '\n' grep -li dcpi) | sed 's/$/: knows of DCPI/'
}

commands() {
	sources "$1" | grep '^user/tool/' | (cd "$1" && xargs -d '\n' grep -lE \
		'^const struct tool_command [a-z]+_command = ') | sed -E 's|.*/(.*)\.c|\1|'
}

# libprofil links only libc: of the layers above lib, it may include only these directories.
rule_library() {
	includes "$1" '"' | grep -E '^user/(lib|dcpi|util)/' |
		grep -v '^user/lib/bpf_module\.c ' |
		grep -vE ' (bpf/(cell|profil)\.h|kmod/device\.h|(util|dcpi|lib)/.*)$' |
		sed -E 's/ (.*)/: \1 is none of what libprofil is made of/'
}

# exported FILE: prints the functions that other files could call, and the command that it defines.
exported() {
	sed -nE '/^(static|typedef|extern)\>/d
		s/^const struct tool_command ([a-z_]+_command) = .*/\1/p
		s/^[a-z][a-z0-9_ ]*[ *]([a-z0-9_]+)\(.*/\1/p' "$1"
}

# No command may use what another one defines. One header declares them all, so the rule searches for
# names.
rule_commands() {
	local directory=$1/user/tool command other names all

	mapfile -t all < <(commands "$1")
	for command in "${all[@]}"; do
		names=$(exported "$directory/$command.c" | paste -sd '|')
		[ -n "$names" ] || continue
		for other in "${all[@]}"; do
			[ "$other" = "$command" ] || grep -owE "$names" "$directory/$other.c" | sort -u |
				sed "s|.*|user/tool/$other.c: & is of $command.c|"
		done
	done
}

written_here() {
	files "$1" | grep -E '(\.([ch]|sh|bash|py|proto|md|mk|[1-8])|(^|/)(Makefile|Kbuild))$'
}

# Written so that `reuse` takes no line of this file for its licence.
rule_spdx() {
	written_here "$1" | (cd "$1" && xargs -d '\n' awk '
		FNR == 1 { lines = /^#!/ ? 3 : 1 }
		FNR <= lines && /SPDX-License-Identi[f]ier: / { on_top[FILENAME] = 1 }
		FNR >= lines { nextfile }
		END {
			for (i = 1; i < ARGC; i++)
				if (!(ARGV[i] in on_top))
					print ARGV[i] ": no SPDX licence on top"
		}')
}

# declared_licences FILE: "PATTERN LICENCE" for each pattern of a copyright file, of which the last that matches
# a source applies; in SPDX's words.
declared_licences() {
	awk '
		/^[A-Za-z-]+:/ { key = $1; $1 = "" }
		key == "Files:" { globs = globs $0 }
		key == "License:" && globs {
			count = split(globs, glob)
			for (i = 1; i <= count; i++)
				print glob[i] $0
			globs = ""
		}' "$tree/$1" |
		sed 's/ or / OR /g; s/GPL-2.0-only-with-Linux-syscall-note/(GPL-2.0-only WITH Linux-syscall-note)/'
}

rule_licence() {
	local declared pattern licence file own expected

	declared=$(declared_licences .reuse/dep5)
	files "$1" | (cd "$1" && xargs -d '\n' grep -IHm 1 'SPDX-License-Identi[f]ier: ') |
		sed -E 's/:.*SPDX[^:]*: */ /; s, *(\*/|-->)$,,' |
		while read -r file own; do
			while read -r pattern licence; do
				# shellcheck disable=SC2053 # a pattern
				[[ $file != $pattern ]] || expected=$licence
			done <<<"$declared"
			[ "$own" = "$expected" ] || echo "$file: $own, but .reuse/dep5 has $expected"
		done
}

# Written so that this line does not match.
rule_finished() {
	written_here "$1" | (cd "$1" && xargs -d '\n' grep -HnE '\<(TO''DO|FIX''ME|X''XX)\>')
}

# --- The tests ---

nothing() {
	local output

	output=$("$@")
	[ -z "$output" ] && return
	echo "$output"
	return 1
}

something() {
	[ -n "$("$@")" ]
}

check "there are sources" something sources "$tree"
subdirectories() {
	sources "$1" | grep -oE '^user/[^/]*/[^/]*/' | sort -u
}

check "there are subdirectories" something subdirectories "$tree"

# What CONTRIBUTING.md says about the tree is so.
unlisted_subdirectories() {
	local path

	subdirectories "$1" | while read -r path; do
		path=$(basename "$path")
		grep -qE "[ (]$path/" "$1/CONTRIBUTING.md" || echo "CONTRIBUTING.md lacks $path/"
	done
}

missing_functions() {
	local name

	# shellcheck disable=SC2016 # the quotes of Markdown
	grep -oE '`[a-z_0-9]+\(\)`' "$1/CONTRIBUTING.md" | tr -d '`()' | sort -u | while read -r name; do
		grep -rqwF "$name" "$1/user" "$1/bpf" || echo "CONTRIBUTING.md names $name(), which is nowhere"
	done
}

if [ -e "$tree/CONTRIBUTING.md" ]; then
	check "CONTRIBUTING.md lists all subdirectories" nothing unlisted_subdirectories "$tree"
	check "CONTRIBUTING.md names functions that there are" nothing missing_functions "$tree"
fi
check "there are commands" something commands "$tree"
check "includes point up" nothing rule_direction "$tree"
check "only headers are included" nothing rule_headers_only "$tree"
check "libbpf, perf events and elfutils have one place each" nothing rule_reserved "$tree"
check "no subdirectory includes another: formats, views" nothing rule_subdirectories "$tree"
check "each language is known in its own files alone" nothing rule_scripts "$tree"
check "no files include each other in a circle" nothing rule_circles "$tree"
check "DCPI's parts are for two layers, and few files know of it" nothing rule_dcpi "$tree"
check "libprofil uses few directories" nothing rule_library "$tree"
check "no command uses another" nothing rule_commands "$tree"
check "every file has its licence on top" nothing rule_spdx "$tree"
check "it is the licence that .reuse/dep5 has" nothing rule_licence "$tree"
if [ -e "$tree/debian/copyright" ]; then
	check "debian/copyright has the same licences" diff <(declared_licences .reuse/dep5) \
		<(declared_licences debian/copyright)
fi
check "no source has unfinished work" nothing rule_finished "$tree"

# Each rule finds its violation: a copy of the tree in which one line breaks one rule.
copy=$work/tree
mkdir "$copy"
files "$tree" | grep -E '^(bpf|kmod|user)/' | (cd "$tree" && xargs -d '\n' cp --parents -t "$copy")

# notices RULE FILE LINES: succeeds if a rule prints more about the file once it has these lines.
notices() {
	local rule=$1 file=$2 before after only=

	# These rules need the other files, too.
	[[ $rule == rule_commands || $rule == rule_circles ]] || only=$file
	before=$("$rule" "$copy" | grep -cF "$file:")
	mkdir -p "$(dirname "$copy/$file")"
	[ -f "$copy/$file" ] && cp "$copy/$file" "$work/saved"
	printf '%s\n' "$3" >>"$copy/$file"
	after=$("$rule" "$copy" | grep -cF "$file:")
	rm "$copy/$file"
	[ -f "$work/saved" ] && mv "$work/saved" "$copy/$file"
	[ "$after" -gt "$before" ]
}

check "util that includes a profile is noticed" \
	notices rule_direction user/util/file.c '#include "profile/profile.h"'
check "a profile that includes a format is noticed" \
	notices rule_direction user/profile/profile.c '#include "format/format.h"'
check "a profile that includes symbols is noticed" \
	notices rule_direction user/profile/profile.h ' # include "symbol/symbol.h" /* x */'
check "a capture that includes a report is noticed" \
	notices rule_direction user/capture/target.c '#include "report/text.h"'
check "a report that includes the tool by a path of its own is noticed" \
	notices rule_direction user/report/flat/flat.c '#include "../tool/tool.h"'
check "a program in bpf that includes user space is noticed" \
	notices rule_direction bpf/sample.bpf.c '#include "util/error.h"'
check "a daemon that includes the tool is noticed" \
	notices rule_direction user/daemon/main.c '#include "tool/tool.h"'
check "a tool that includes the skeleton is noticed" \
	notices rule_direction user/tool/record.c '#include "sample.skel.h"'
check "a header that is nowhere is noticed" \
	notices rule_direction user/tool/record.c '#include "nowhere.h"'
check "an included source is noticed" notices rule_headers_only user/tool/main.c '#include "tool.c"'
check "a tool that includes libbpf is noticed" \
	notices rule_reserved user/tool/record.c '#include <bpf/libbpf.h>'
check "a profile that includes perf events is noticed" \
	notices rule_reserved user/profile/profile.c '#include <linux/perf_event.h>'
check "a format that includes libelf is noticed" \
	notices rule_reserved user/format/pprof/pprof.c '#include <gelf.h>'
check "a capture that includes libdw is noticed" \
	notices rule_reserved user/capture/image.c '#include <elfutils/libdw.h>'
check "a report that includes ncurses is noticed" \
	notices rule_reserved user/report/live/live.c '#include <curses.h>'
check "a format that includes another is noticed" \
	notices rule_subdirectories user/format/pprof/pprof_write.c '#include "format/gperftools/gperftools.h"'
check "a shared part that includes a format is noticed" \
	notices rule_subdirectories user/format/input_file.c '#include "format/pprof/pprof.h"'

check "a recorder that knows a language is noticed" \
	notices rule_scripts user/capture/unwind/unwind_copy.c '#include "bpf/script/php.h"'
check "a walk that knows a language is noticed" \
	notices rule_scripts bpf/stack_walk.h '#include "script/python.h"'
check "a reader of ELF files that knows a language is noticed" \
	notices rule_scripts user/symbol/symbol.c '#include "script/description.h"'

check "files that need each other are noticed" \
	notices rule_circles kmod/settings.c '#include "kmod/region_table.h"'
check "a format that includes DCPI's parts is noticed" \
	notices rule_dcpi user/format/pprof/pprof_write.c '#include "dcpi/header.h"'
check "a view that knows of DCPI is noticed" notices rule_dcpi user/report/diff/diff.c '/* dcpidiff */'
check "a circle of includes is noticed" \
	notices rule_circles user/lib/memory.c '#include "lib/sessions.h"'
check "a library that includes capture is noticed" \
	notices rule_library user/lib/memory.c '#include "capture/image.h"'

check "a view that includes another is noticed" \
	notices rule_subdirectories user/report/flat/flat.c '#include "report/dump/dump.h"'
check "a command that uses another is noticed" \
	notices rule_commands user/tool/report.c 'void *other = &dump_command;'
check "a file without a licence is noticed" notices rule_spdx user/util/new.c 'int x;'
check "a file with another licence than .reuse/dep5 has is noticed" \
	notices rule_licence user/tool/new.c '// SPDX-License-Identi''fier: 0BSD'
check "a thing to do is noticed" notices rule_finished user/util/file.c "/* TO""DO: this */"

finish
