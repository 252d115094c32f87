# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Completion of profiltool for bash. Commands, options and their values are those of --help.

_profiltool_keys='comm dso sym srcline srcfile pid tid comm,dso,sym'

# --help of a command, or of all.
_profiltool_help() {
	"${COMP_WORDS[0]/#\~/$HOME}" ${1:+"$1"} --help 2>/dev/null
}

_profiltool_commands() {
	_profiltool_help | sed -nE 's/^  ([a-z]+)  +[^ ].*/\1/p'
}

# The options of a command, one on a line: "-p PID", "--pid PID", "--json".
_profiltool_options() {
	_profiltool_help "$1" | sed -nE '
		s/^  (-.), (--[a-z-]+)(\[=[^] ]+\]| [^ ]+)?( .*|$)/\1\3\n\2\3/p
		s/^      (--[a-z-]+)(\[=[^] ]+\]| [^ ]+)?( .*|$)/\1\2/p'
	printf -- '-h\n--help\n'
}

# What --help calls the value of an option; fails if it takes none, or only behind "=" and $3 is empty.
_profiltool_value_name() {
	_profiltool_options "$1" | awk -v option="$2" -v behind="$3" '
		$1 == option && NF == 2 { print $2; found = 1 }
		behind && index($1, option "[=") == 1 { sub(/.*\[=/, "", $1); sub(/]$/, "", $1); print $1; found = 1 }
		END { exit !found }'
}

# Processes with a command line: kernel threads have none.
_profiltool_pids() {
	local process line

	for process in /proc/[0-9]*; do
		line=
		IFS= read -r -d '' line 2>/dev/null <"$process/cmdline"
		[ -n "$line" ] && echo "${process##*/}"
	done
}

# Names of processes that begin with a word. Those with other characters would need quotes.
_profiltool_programs() {
	local comm name

	for comm in /proc/[0-9]*/comm; do
		IFS= read -r name 2>/dev/null <"$comm"
		[[ $name == "$1"* && $name != *[!a-zA-Z0-9._-]* ]] && echo "$name"
	done | sort -u
}

_profiltool_tids() {
	local thread

	for thread in /proc/[0-9]*/task/"$1"*; do
		[ -d "$thread" ] && echo "${thread##*/}"
	done
}

# Control groups, as --cgroup takes them: directories, or below where such are mounted.
_profiltool_cgroups() {
	local place type options

	[[ $1 == [./]* ]] && compgen -d -S / -- "$1"
	[[ $1 == .* ]] && return
	while read -r _ place type options _; do
		[[ $type == cgroup2 || $type,$options, == cgroup,*,perf_event,* ]] &&
			cd "$place" 2>/dev/null &&
			compgen -d -S / -P "${1%%[!/]*}" -- "${1#/}"
	done </proc/self/mounts
}

_profiltool_reply() {
	mapfile -t COMPREPLY < <(compgen "$@")
}

_profiltool_files() {
	compopt -o filenames 2>/dev/null
	_profiltool_reply -f -- "$1"
}

# The value of a command's option, which --help calls $3. Of a list of processes, the last one.
_profiltool_value() {
	local command=$1 option=$2 name=$3 word=$4 before='' words

	words=$(_profiltool_help "$command" | tr '\n' ' ' |
		sed -nE "s/.*  $name is one of: (([a-z0-9-]+, +)*[a-z0-9-]+).*/\1/p" | tr -d ,)
	[[ $name == *'|'* && $name != PID* ]] && words=${name//|/ }
	if [ "$words" ]; then
		_profiltool_reply -W "$words" -- "$word"
		return
	fi
	case $option:$name in
	*:PID*)
		[[ $word == *,* ]] && before=${word%,*},
		words=$(_profiltool_pids)
		[[ $name == *NAME* ]] && words+=" $(_profiltool_programs "${word##*,}")"
		_profiltool_reply -P "$before" -W "$words" -- "${word##*,}"
		;;
	*:TID)
		_profiltool_reply -W "$(_profiltool_tids "$word")" -- "$word"
		;;
	-G:* | --cgroup:*)
		compopt -o nospace 2>/dev/null
		mapfile -t COMPREPLY < <(_profiltool_cgroups "$word" | sort -u)
		;;
	*:KEY)
		case $command in
		top | browse) words='self total name image wait delay' ;;
		report) words='self total' ;;
		esac
		_profiltool_reply -W "$words $_profiltool_keys" -- "$word"
		;;
	--against:* | --before:*)
		_profiltool_reply -W "before rest" -- "$word"
		;;
	--value:*)
		_profiltool_reply -W "samples cpu delay wall woke" -- "$word"
		;;
	--dcpi-stride:*)
		_profiltool_reply -W "1 4" -- "$word"
		;;
	*:OUT | *:PAGE | *:FILE | *:OLD | *:PATH | *:IMAGE | --source-path:*)
		_profiltool_files "$word"
		;;
	esac
}

# The number of the word at which the COMMAND of record or run begins; fails while there is none.
_profiltool_command_at() {
	local command=$1 i=$2 word

	for (( ; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--)
			echo $((i + 1))
			return
			;;
		-*)
			if [ "${COMP_WORDS[i + 1]:-}" = = ]; then
				i=$((i + 2))
			elif _profiltool_value_name "$command" "$word" '' >/dev/null; then
				i=$((i + 1))
			fi
			;;
		*)
			echo "$i"
			return
			;;
		esac
	done
	return 1
}

_profiltool_of_command() {
	local offset=$1 word=$2

	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset "$offset"
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$offset"
	elif [ "$COMP_CWORD" -eq "$offset" ]; then
		_profiltool_reply -c -- "$word"
	else
		_profiltool_files "$word"
	fi
}

_profiltool() {
	local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} first=2 offset runs='' given='' name before

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_profiltool_reply -W "$(_profiltool_commands) --version
			$(_profiltool_options record | sed 's/[[ ].*//')" -- "$word"
		return
	fi
	# Without a command, it records.
	if [[ $command == -* ]]; then
		command=record
		first=1
	fi
	[[ $command == record || $command == run ]] && runs=yes
	if [ "$runs" ] && offset=$(_profiltool_command_at "$command" "$first"); then
		_profiltool_of_command "$offset" "$word"
		return
	fi
	# bash makes --format=x three words.
	if [ "$word" = = ]; then
		word='' given=yes
	elif [ "$last" = = ]; then
		last=${COMP_WORDS[COMP_CWORD - 2]} given=yes
	fi
	# So it does with time:100ms, of which any length is possible.
	before="${COMP_WORDS[*]:0:COMP_CWORD}"
	[ "$word" != : ] || before+=' :'
	if [[ $before == *' --by time :' || $before == *' --by = time :' ]]; then
		_profiltool_reply -W '10ms 100ms 1s 10s 1m 10m 1h' -- "${word#:}"
		return
	fi
	if name=$(_profiltool_value_name "$command" "$last" "$given"); then
		_profiltool_value "$command" "$last" "$name" "$word"
	elif [[ $word == -* ]]; then
		_profiltool_reply -W "$(_profiltool_options "$command" | sed 's/[[ ].*//')" -- "$word"
	elif [ "$runs" ]; then
		_profiltool_reply -c -- "$word"
	else
		_profiltool_files "$word"
	fi
}

complete -F _profiltool profiltool
