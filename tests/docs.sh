#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Options, commands and exit statuses are the same in --help and the man pages; the completion has those of --help.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

man=$top/user/tool/profiltool.1 # the page of a command stands beside it
completion=$top/user/tool/profiltool.bash

# --- Each source's commands, one on a line ---

help_commands() {
	sed -nE 's/^  ([a-z]+)  +[^ ].*/\1/p' "$1" | sort
}

man_commands() {
	sed -n '/^\.Sh COMMANDS/,/^\.Sh [^C]/s/^\.It Cm //p' "$1" | sort
}

# --- Each source's options of a command: one on a line, with "=" when it takes a value ---

# FILE is the output of `profiltool COMMAND --help`.
help_options() {
	sed -nE '
		s/^(  -., |      )(--[a-z-]+)\[=[^ ]+\]/\1\2/
		s/^  (-., |    )(--[a-z-]+) [^ ]+  .*/\1\2=/
		s/^  (-., |    )(--[a-z-]+)  .*/\1\2/
		s/^(-.), (--.*)=$/\1=\n\2=/
		s/^(-.), (--.*)$/\1\n\2/
		s/^    --/--/
		/^-/p' "$1" | sort
}

page_of() {
	echo "${man%.1}-$1.1"
}

# The list items that begin with an option; [=VALUE] can be left out.
man_options() {
	awk '
		/^\.It Fl / {
			value = / Ar / && !/ Oo = / ? "=" : ""
			for (i = 2; i < NF; i++)
				if ($i == "Fl")
					print "-" $(i + 1) value
		}' "$1" | sort
}

# What the completion offers for the last of the words, the first of which is the program.
complete_words() {
	bash -c '
		. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_profiltool 2>/dev/null
		[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' - "$completion" "$profiltool" "$@" | sort -u
}

# --- Exit statuses: "NUMBER what it means" ---

help_statuses() {
	sed -n '/^Exit codes:/,$p' "$1" | tr '\n' ' ' |
		sed 's/^Exit codes: //; s/\. *$//; s/, */\n/g' | tr '[:upper:]' '[:lower:]'
}

man_statuses() {
	awk '
		/^\.S[sh] / { inside = $0 == ".Sh EXIT STATUS" }
		inside && /^\.It [0-9]+$/ { number = $2; next }
		inside && number != "" { print number, $0; number = "" }' "$1" |
		sed 's/[:.,].*//' | tr '[:upper:]' '[:lower:]'
}

# --- Columns: titles and keys in COLUMN() of user/report, one on a line ---

column_words() {
	cat "$@" | tr '\n' ' ' | grep -oE '\bCOLUMN\(c,[^,]*,[^,]*,' | grep -oE '"[^"]+"' | tr -d '"' | sort -u
}

# columns_stand_in PAGE SOURCE...: fails if any word does not, and prints it.
columns_stand_in() {
	local page=$1 word missing=
	shift

	while read -r word; do
		grep -qwF -e "$word" "$page" && continue
		echo "no page has $word"
		missing=yes
	done < <(column_words "$@")
	[ -z "$missing" ]
}

# --- Comparisons; the files are arguments, so that changed copies can be compared ---

# same NAME1 LIST1 NAME2 LIST2: fails if the lists differ, and prints what only one has.
same() {
	local differences

	if [ -z "$2" ]; then
		echo "nothing found in $1"
		return 1
	fi
	differences=$(diff <(echo "$2") <(echo "$4") | sed -n "s/^</only in $1:/p; s/^>/only in $3:/p")
	[ -z "$differences" ] && return
	echo "$differences"
	return 1
}

same_commands() {
	same --help "$(help_commands "$1")" "the man page" "$(man_commands "$2")"
}

same_options() {
	same --help "$(help_options "$1")" "the man page" "$(man_options "$2")"
}

same_statuses() {
	same --help "$(help_statuses "$1")" "the man page" "$(man_statuses "$2")"
}

# notices TEXT COMMAND...: succeeds if a comparison fails and prints TEXT.
notices() {
	local text=$1 output
	shift

	output=$("$@") && return 1
	echo "$output"
	[[ $output == *"$text"* ]]
}

# changed FILE SED-EXPRESSION: prints the name of a changed copy.
changed() {
	local copy

	copy=$(mktemp "$work/changed.XXXXXX")
	sed -E "$2" "$1" >"$copy"
	echo "$copy"
}

offers() {
	local word=$1
	shift
	complete_words "$@" | grep -qxF -e "$word"
}

offers_only() {
	local expected=$1
	shift
	same expected "$expected" completion "$(complete_words "$@")"
}

exits_with_help() {
	exits 0 "$profiltool" "$1" --help && [ -s "$work/out" ] && exits 0 "$profiltool" "$1" -h
}

# --- The tests ---

"$profiltool" --help >"$work/help"
check "commands are the same everywhere" same_commands "$work/help" "$man"
check "exit statuses are the same in --help and man page" same_statuses "$work/help" "$man"
mapfile -t commands < <(help_commands "$work/help")
for command in "${commands[@]}"; do
	"$profiltool" "$command" --help >"$work/help.$command"
	check "$command: options are the same everywhere" \
		same_options "$work/help.$command" "$(page_of "$command")"
	check "$command: --help and -h are taken" exits_with_help "$command"
	check "$command: stands in the synopsis" \
		grep -qx "\.Cm $command" <(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/p' "$man")
done

sed 's/\\-/-/g' "$top"/user/tool/*.[157] >"$work/pages"
check "titles and keys of columns stand in a man page" columns_stand_in "$work/pages" "$top"/user/report/*.c "$top"/user/report/*/*.c
check "one that does not is noticed" notices "no page has unheard s" columns_stand_in "$work/pages" \
	"$(changed "$top/user/report/totals.c" 's/"on CPU s"/"unheard s"/')"

# --- The man pages, in the programs that show them ---

manuals=("$top"/user/*/*.[1-8])

# is_silent COMMAND...: succeeds if a command succeeds and prints nothing on standard error. groff 1.23
# reports each line of a prototype that has only one argument: nothing in it can be spread.
is_silent() {
	"$@" 2>&1 >/dev/null | sed '/cannot adjust line/d' >"$work/warnings"
	[ "${PIPESTATUS[0]}" -eq 0 ] && [ ! -s "$work/warnings" ] && return
	cat "$work/warnings"
	return 1
}

# clean_in READER PAGE...: fails if it has a warning.
clean_in() {
	case $1 in
	mandoc) mandoc -Tlint -Wwarning "${@:2}" ;;
	groff) is_silent groff -k -mandoc -ww -z -Tutf8 "${@:2}" ;;
	man) is_silent env LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings=w -l -Tutf8 -Z "${@:2}" ;;
	esac
}

# shown_by READER COLUMNS PAGE...: prints them as on a terminal of that width.
shown_by() {
	case $1 in
	mandoc) mandoc -Tutf8 -O width="$2" "${@:3}" ;;
	groff) groff -k -mandoc -Tutf8 -rLL="$2"n "${@:3}" ;;
	man) LC_ALL=C.UTF-8 MANWIDTH=$2 man -l "${@:3}" ;;
	esac 2>/dev/null | col -bx
}

# The same of the commands to type, which begin with a prompt.
commands_by() {
	shown_by "$@" | sed -nE 's/^ {5,}([#$] .*)/\1/p'
}

# same_commands_by READER PAGE...: no command is broken into lines, and each can be copied.
same_commands_by() {
	diff <(commands_by mandoc 300 "${@:2}") <(commands_by "$1" 80 "${@:2}")
}

for reader in mandoc groff man; do
	if ! command -v "$reader" >/dev/null || ! command -v mandoc >/dev/null; then
		skip "the man pages are clean in $reader" "no $reader or mandoc"
		continue
	fi
	check "the man pages are clean in $reader" clean_in "$reader" "${manuals[@]}"
	check "commands can be copied from $reader" same_commands_by "$reader" "${manuals[@]}"
	check "a warning of $reader is noticed" notices Xx \
		clean_in "$reader" "$(changed "$man" 's/^\.Sh SEE ALSO/.Xx x\n&/')"
	check "a command that $reader breaks into lines is noticed" notices "< $ profiltool run -- ./simulate" \
		same_commands_by "$reader" "$(changed "$man" 's/^(.*simulate) input/.Ed\n.Dl \1 input1 input2 input3 input4 input5 input6 input7\n.Bd -literal/')"
done

# --- The keys of JSON ---

# keys_are_in PAGE FILE...: the page has each key of these files of JSON.
keys_are_in() {
	python3 -c '
import json, re, sys
page = set(re.findall(r"\w+", " ".join(l for l in open(sys.argv[1]) if re.match(r"\.(Va|It Va|Pq .*Va) ", l))))
def keys(value):
    if isinstance(value, dict):
        yield from value
        # An object of values has the names of events as keys.
        value = [v for key, v in value.items() if key != "values" or isinstance(v, list)]
    for part in value if isinstance(value, list) else ():
        yield from keys(part)
missing = {key for name in sys.argv[2:] for key in keys(json.load(open(name)))} - page
print(*sorted("no key " + key for key in missing), sep="\n")
sys.exit(bool(missing))' "$@"
}

json_page=$top/user/tool/profiltool-json.5
stacks=$top/tests/data/gperftools/basic.prof
events=$top/tests/data/callgrind/three-events.cg
calls=$top/tests/data/callgrind/recursion.cg
number=0
for command in "report $stacks" "report --by image $stacks" "report --tree $stacks" "report $events" "report -E 1 $events" \
	"report $calls" "diff $events $events" "dump $stacks" "dump $events" "dump $calls"; do
	number=$((number + 1))
	# shellcheck disable=SC2086 # a list of words
	"$profiltool" $command -q --json >"$work/keys.$number.json"
	check "keys: ${command//"$top"\//}: is printed" [ $? -eq 0 ]
done
check "keys of JSON are documented" keys_are_in "$json_page" "$work"/keys.*.json
check "a key that is not documented is noticed" notices "no key total" keys_are_in \
	"$(changed "$json_page" 's/\<total\>/other/')" "$work"/keys.*.json

# Keys that are printed only when something is rare: those that the sources have. unwritten_keys PAGE...
unwritten_keys() {
	local key

	{
		grep -rhoE 'json_(add|begin|member)[a-z_]*\([^"()]*"[a-z_0-9]+"' "$top/user/report" "$top/user/tool"
		# Counters of the account have their name, or what .json says.
		tr -d '\n' <"$top/user/util/account.h" | sed 's/\tX(/\nX"/g' |
			sed -nE '/^X"/{s/.*\.json = ("[a-z_]+").*/\1/;s/^X("[a-z_]+),.*/\1"/;p}'
	} | sed -E 's/.*"(.*)"/\1/' | sort -u | while read -r key; do
		grep -qwF -- "$key" "$@" || echo "no key $key"
	done
}
key_pages=("$json_page" "$top"/user/tool/profiltool-{top,check}.1)
all_keys() {
	local unwritten

	unwritten=$(unwritten_keys "$@")
	echo "$unwritten"
	[ -z "$unwritten" ]
}
check "the pages have all keys that the sources print" all_keys "${key_pages[@]}"
check "a rare key that is not documented is noticed" notices "no key throttled_lost" all_keys \
	"$(changed "$json_page" 's/\<throttled_lost\>/other/')" "${key_pages[@]:1}"

# --- Each command that is shown has only options that there are ---

declare -A options # of each command, as words
for command in "${commands[@]}"; do
	options[$command]=" $(help_options "$work/help.$command" | tr '\n=' '  ') "
done

# only_options TEXT: succeeds if the commands in the lines of TEXT, "profiltool ...", have these options.
only_options() {
	local command word words status=0

	while read -ra words; do
		command=record
		[[ ${words[1]} =~ ^[a-z]+$ ]] && command=${words[1]}
		for word in "${words[@]:1}"; do
			word=${word%%=*}
			[ "$word" = -- ] && break
			[[ $word == -?* && ! $word =~ ^(--help|--version)$ ]] || continue
			[[ ${options[$command]-} == *" $word "* ]] && continue
			echo "no option $word: ${words[*]}"
			status=1
		done
	done <<<"$1"
	return "$status"
}

# Prints the commands of profiltool in lines of text, without the output of other commands and what follows.
profiltool_in() {
	sed -E 's/"?\$\([^)]*\)"?/X/g' | sed -nE 's/.*\<(profiltool [^|&>;#]*).*/\1/p'
}

# Those behind a prompt in man pages, and those of the synopsis.
examples_of() {
	commands_by mandoc 300 "$@" | profiltool_in
}
synopsis_of() {
	shown_by mandoc 300 "$@" | sed -n '/^SYNOPSIS/,/^DESC/{s/[][{}|]/ /g; /^ *profiltool /p}' | profiltool_in
}
# In a README: code, with a prompt or without.
readme_examples() {
	grep -E '^    ([#$] )?profiltool [^:]*$' "$@" | profiltool_in
}

if command -v mandoc >/dev/null; then
	check "options in the man pages' commands are valid" only_options "$(examples_of "${manuals[@]}")"
	check "options in the man pages' synopses are valid" only_options "$(synopsis_of "${manuals[@]}")"
	check "a wrong option in an example is noticed" notices "no option --pid:" only_options \
		"$(examples_of "$(changed "$man" 's/(# profiltool report) tar/\1 --pid 1 tar/')")"
	check "a wrong option in a synopsis is noticed" notices "no option -p:" only_options \
		"$(synopsis_of "$(changed "$(page_of report)" 's/^\.Op Fl -by Ar FIELD/&\n.Op Fl p Ar IMAGE/')")"
fi
check "options in README.md and below user/doc are valid" only_options \
	"$(readme_examples -h "$top/README.md" "$top"/user/doc/*.md)"
check "a wrong option in README.md is noticed" notices "no option --forever:" only_options \
	"$(readme_examples "$(changed "$top/README.md" 's/^    profiltool annotate palloc/& --forever/')")"

# --- Files that the Markdown texts link to ---

# links_exist FILE [DIRECTORY]: the links of a file, which stands in that directory, lead to files.
links_exist() {
	local link links status=0

	links=$(sed -nE 's/\]\(/\n(/g; T; p' "$1" | sed -nE 's/^\(([^):#]+).*/\1/p')
	for link in $links; do
		[ -e "${2:-$(dirname "$1")}/$link" ] && continue
		echo "$1: no $link"
		status=1
	done
	return "$status"
}

for file in "$top"/*.md "$top"/*/README.md "$top"/user/doc/*.md; do
	check "${file#"$top"/}: links lead to files" links_exist "$file"
done
# As a package installs them: in one directory, without CHANGELOG.md and LICENSE, beside compressed man pages.
make -s -C "$top" DESTDIR="$work/package" PREFIX=/usr CHANGELOG_LINK=changelog.gz LICENSE_LINK=copyright \
	install-doc >"$work/install-doc" 2>&1
mkdir -p "$work/package/usr/share/man/man7"
: >"$work/package/usr/share/man/man7/profil-tutorial.7.gz"
: >"$work/package/usr/share/doc/profiltool/changelog.gz"
: >"$work/package/usr/share/doc/profiltool/copyright"
for file in README limits comparison cost wall; do
	check "installed: $file.md: links lead to files" links_exist "$work/package/usr/share/doc/profiltool/$file.md"
done
check "a link to no file is noticed" notices "no user/x.svg" links_exist \
	"$(changed "$top/README.md" 's|\(user/[a-z_/]*\.svg|(user/x.svg|')" "$top"

# The completion's values.
start sleep 60
sleeper=$pid
check "completion: processes for -p" offers "$sleeper" -p "$sleeper"
check "completion: another process for -p" offers "1,$sleeper" -p "1,$sleeper"
check "completion: names of processes for -p" offers sleep -p sle
check "completion: another name for -p" offers 1,sleep top -p 1,sle
check "completion: processes for check -p" offers "$sleeper" check -p "$sleeper"
check "completion: threads for -t" offers "$sleeper" record -t "$sleeper"
check "completion: directories for --cgroup" offers /proc/ record --cgroup /pr
check "completion: formats" offers_only pprof merge -f p
check "completion: formats behind =" \
	offers_only folded record --format = fo
check "completion: methods of call stacks" \
	offers_only $'auto\ndwarf\nfp\nnone' record --call-graph = ''
check "completion: a command to record behind such a method" \
	offers sleep record --call-graph = fp slee
check "completion: positions" offers_only $'instr\nline' convert --positions ''
check "completion: events" \
	offers_only $'auto\ncontext-switches\ncpu-clock\ncpu-migrations\ncycles\nlist\nmajor-faults\nminor-faults\npage-faults\ntick' -p 1 -e ''
stop "$sleeper"
touch "$work/a.pb.gz"
check "completion: files to report" offers "$work/a.pb.gz" report "$work/a"
check "completion: files to write" offers "$work/a.pb.gz" -p 1 -o "$work/a"
check "completion: a command to record" offers sleep record -F 9 -- slee
check "completion: options without a command" offers --duration -p 1 --du

check "completion: fields with the tags of archives" offers unit report --by ''
check "completion: lengths of slots of time" offers_only $'100ms\n10m\n10ms\n10s' report --by time : 10
check "completion: lengths of slots of time, behind =" offers 100ms report --by = time :
check "completion: fields of top, which has no host, peer, time or waker" \
	offers_only $'address\napplication\ncomm\ncontainer\ncpu\ndatabase\nfunction\nimage\nline\nprocess\nquery\nreason\nrole\nroute\nsource\nthread\ntitle\nunit\nuser\nwait' top --by ''
check "completion: states of threads" offers_only $'blocked\nidle\non-cpu\nrunnable' report --state ''
check "completion: reasons of waits" offers_only $'signal\nsleep\nsocket\nstart\nstopped' report --reason s
check "completion: values" offers_only $'wall\nwoke' flamegraph --value w
check "completion: a short list of values" offers_only $'function\nprocess\nthread' flamegraph --by ''
check "completion: commands and options of --help" offers_only \
	"$( (echo --version; echo -h; echo --help; help_commands "$work/help"
		help_options "$work/help.record" | tr -d =) | sort)" ''
check "completion: options that --help has" offers_only \
	"$( (echo -h; echo --help; help_options "$work/help.report" | tr -d =) | sort)" report -
check "completion: an image to report" offers "$work/a.pb.gz" report -d "$work/a"

# --- The completions for zsh and fish ---

# options_of COMMAND...: all options of --help, each behind its command, as the other completions print them below.
options_of() {
	local command

	for command; do
		{ printf '%s\n' -h --help && help_options "$work/help.$command" | tr -d =; } | sed "s/^/$command /"
	done | sort -u
}
# What the completion gives to zsh's own functions, which do the rest.
zsh_options() {
	# shellcheck disable=SC2016 # zsh's variables
	zsh -f -c '
		_call_program() { shift; eval "$@" }
		_arguments() { print -rl -- "${@[4,-1]}" } # behind its own options
		file=$1 program=$2
		shift 2
		for command; do
			words=("$program" $command -) CURRENT=3
			. $file | sed -nE "s/^(\(- \*\))?(--?[a-zA-Z-]*[a-zA-Z]).*/$command \2/p"
		done' - "$top/user/tool/profiltool.zsh" "$profiltool" "$@" | sort -u
}
# fish_offers LINE...: what fish offers at the end of lines, behind the second word of each.
fish_offers() {
	# shellcheck disable=SC2016 # fish's variables
	PATH=$(dirname "$profiltool"):$PATH fish --no-config -c '
		source $argv[1]
		for line in $argv[2..]
			complete -C $line | string split -f 1 \t | string replace -r "^" (string split -f 2 " " -- $line)" "
		end' "$top/user/tool/profiltool.fish" "$@" | sort -u
}
# typed LINE END: zsh makes END of a line when Tab is typed behind it.
typed() {
	mkdir -p "$work/zsh"
	cp "$top/user/tool/profiltool.zsh" "$work/zsh/_profiltool"
	# shellcheck disable=SC2016 # zsh's prompt
	PATH=$(dirname "$profiltool"):$PATH TERM=dumb timeout 60 python3 -S -c '
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("zsh", ["zsh", "-f", "-i"])
output = b""
def wait_for(text):
    global output
    while text not in output:
        output += os.read(terminal, 4096)
    output = output[output.index(text) + len(text):]
# The shell prints what is typed: the words are not in it.
os.write(terminal, b"fpath=(%s $fpath); autoload -U compinit; compinit -u -D; echo loaded$((6 * 7))\n" % sys.argv[1].encode())
wait_for(b"loaded42")
os.write(terminal, sys.argv[2].encode() + b"\t")
wait_for(sys.argv[3].encode())' "$work/zsh" "$@"
}
if command -v zsh >/dev/null; then
	check "zsh: options that --help has" same --help "$(options_of "${commands[@]}")" zsh "$(zsh_options "${commands[@]}")"
	if has_terminals "zsh: what is typed"; then
		check "zsh: what is typed" typed "profiltool report --verb" --verbose
		check "zsh: values" typed "profiltool record --format=pp" =pprof
		check "zsh: a command to record" typed "profiltool record -F 9 -- unsha" unshare
	fi
else
	skip "zsh: options that --help has" "zsh is not installed"
fi
if command -v fish >/dev/null; then
	mapfile -t lines < <(printf 'profiltool %s -\n' "${commands[@]}" && printf 'profiltool %s --\n' "${commands[@]}")
	check "fish: options that --help has" same --help "$(options_of "${commands[@]}")" fish "$(fish_offers "${lines[@]}" | sed "s/=$//" | sort -u)"
	check "fish: values" same expected "record pprof" fish "$(fish_offers "profiltool record -f pp")"
	check "fish: values behind =" same expected "record --format=pprof" fish "$(fish_offers "profiltool record --format=pp")"
	check "fish: commands" same expected "rep report" fish "$(fish_offers "profiltool rep")"
	check "fish: a command to record" grep -qx 'record unshare' <(fish_offers "profiltool record -F 9 -- unsha")
else
	skip "fish: options that --help has" "fish is not installed"
fi
check "long lists of options are in groups: all of record's have a title" test "$(grep -c '^[A-Z].*:$' "$work/help.record")" -eq \
	"$(sed -n '/struct option_group\[\]/,/{ 0 }/p' "$top/user/tool/record.c" | grep -c '", "')"

# The comparisons find the differences that they are made for.
check "an option that only --help has is noticed" \
	notices "only in --help: --new" same_options \
	"$(changed "$work/help.report" 's/^  -E, --limit ROWS/&\n      --new              x/')" \
	"$(page_of report)"
check "an option that --help lacks is noticed" \
	notices "only in the man page: --strict" same_options \
	"$(changed "$work/help.report" '/--strict/d')" "$(page_of report)"
check "an option that the man page lacks is noticed" \
	notices "only in --help: --verbose" same_options \
	"$work/help.record" "$(changed "$(page_of record)" '/^\.It Fl v , Fl -verbose/d')"
check "a letter that the man page lacks is noticed" \
	notices "only in --help: -v" same_options \
	"$work/help.record" "$(changed "$(page_of record)" 's/^\.It Fl v , /.It /')"
check "a value that the man page lacks is noticed" \
	notices "only in --help: --duration=" same_options \
	"$work/help.record" "$(changed "$(page_of record)" 's/^(\.It Fl d , .*) Ar SECONDS/\1/')"
check "an option that only the man page has is noticed" \
	notices "only in the man page: --new" same_options \
	"$work/help.dump" "$(changed "$(page_of dump)" 's/^\.Sh OPTIONS/&\n.It Fl -new/')"
check "a command that is not documented is noticed" \
	notices "only in --help: new" same_commands \
	"$(changed "$work/help" 's/^  dump /  new         a file\n&/')" "$man"
check "a command that only the man page has is noticed" \
	notices "only in the man page: new" same_commands \
	"$work/help" "$(changed "$man" 's/^\.It Cm dump/.It Cm new\n&/')"
check "an exit status that the man page lacks is noticed" \
	notices "only in --help: 5 not permitted" same_statuses \
	"$work/help" "$(changed "$man" '/^\.It 5$/d')"
check "an exit status with another meaning is noticed" \
	notices "only in --help: 4 no target" same_statuses \
	"$(changed "$work/help" 's/4 no samples/4 no target/')" "$man"

# --- One version, which the Makefile has ---

version=$(sed -n 's/^VERSION := //p' "$top/Makefile")

# versions_in FILE...: of profil, as commands and settings name them.
versions_in() {
	sed -nE 's|.*\<profil/([0-9][0-9.]*[0-9]).*|\1|p; s/^PACKAGE_VERSION="(.*)"/\1/p; s/^profil \(([0-9.]+)-.*/\1/p
		s/^(profiltool|profild) ([0-9.]+)$/\2/p; s/^Version: //p' "$@" | sort -u
}

# one_version FILE...: each names it, and no other.
one_version() {
	local file

	for file in "$@"; do
		[ "$(versions_in "$file")" = "$version" ] && continue
		echo "$file: not $version: $(versions_in "$file" | tr '\n' ' ')"
		return 1
	done
}

built_versions() {
	"$profiltool" --version >"$work/version.profiltool" && "$build/profild" --version >"$work/version.profild" &&
		one_version "$work"/version.*
}

pkg_config_version() {
	make -s -C "$top" BUILD="$work/pc" "$work/pc/profil.pc" && one_version "$work/pc/profil.pc"
}

check "the version is a number of three" grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' <<<"$version"
versioned=("$top/dkms.conf" "$top/user/doc/libprofil.md" "$top/user/doc/kmod.md" "$top/packaging/profil.spec")
if [ -e "$top/debian" ]; then # the tarball of a release has none
	versioned+=("$top/debian/changelog")
fi
check "dkms.conf, the documentation and the packages have this version" one_version "${versioned[@]}"
check "profil.pc has it" pkg_config_version
if [ -x "$build/profild" ]; then
	check "the programs print it" built_versions
fi
check "a page with another version is noticed" notices "not $version: $version.1" one_version \
	"$(changed "$top/user/doc/libprofil.md" "s|profil/$version|&.1|")"

finish
