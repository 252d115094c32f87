# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Completion of profiltool for bash. tests/docs.sh compares its options with --help and the manual.

_profiltool_commands='record top run report annotate diff merge snapshot convert dump check flamegraph'
_profiltool_formats='pprof gperftools dcpi callgrind gmon folded'
_profiltool_events='auto cpu-clock cycles tick'
_profiltool_backends='kmod bpf daemon libc'
_profiltool_fields='function image address source line thread process comm'
_profiltool_tags='time unit container user cpu host'
_profiltool_keys='comm dso sym srcline srcfile pid tid comm,dso,sym'

# The options of a command, one line for each. Those that take a value end with "=".
_profiltool_options() {
	case $1 in
	record)
		echo "-p= --pid= -t= --tid= -a --all -G= --cgroup= -F= --frequency= -d= --duration=
			-e= --event= -g --call-graph --unwind-memory= -o= --output= -f= --format= -i --no-inherit
			--user --kernel --scale= --offset= --bufsiz= -E= --limit= --debuginfod --inline --no-inline --json
			-q --quiet -v --verbose"
		;;
	top)
		echo "-p= --pid= -t= --tid= -a --all -G= --cgroup= -F= --frequency= -e= --event= -g --call-graph
			--unwind-memory= -i --no-inherit --user --kernel --since= --until= --host= --unit= --container= --comm=
			-d= --delay= --half-life= --by=
			-s= --sort= --inline --plain --stdio --tables= -E= --limit= --json"
		;;
	run)
		echo "--hz= --backend= --socket= --strict -q --quiet -v --verbose"
		;;
	diff)
		echo "--before= --since= --until= --host= --unit= --container= --comm= --user=
			--normalize= -s= --sort= --significant --by= --by-image -d= --image= --value=
			-E= --limit= --json
			--executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	report)
		echo "--tree --callers= --callees= --percent= --percent-limit= -s= --sort= --children
			--no-children -n --show-nr-samples --stdio -i= --input=
			--since= --until= --host= --unit= --container= --comm= --user= --focus= --ignore=
			--by= --by-image -d= --image= --value= -E= --limit= --json
			--executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	flamegraph)
		echo "-o= --output= -f= --format= --diff= --icicle --inverted --by= --percent= --title=
			--value= --since= --until= --host= --unit= --container= --comm= --user= --focus= --ignore=
			--executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	annotate)
		echo "-s= --symbol= -d= --image= --value= -a --all --source-only --source-path= --no-source
			--json --stdio -i= --input= --since= --until= --host= --unit= --container= --comm= --user=
			--executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	merge)
		echo "-o= --output= -f= --format= --executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	snapshot)
		echo "-o= --output= -f= --format= --since= --until= --host= --unit= --container= --comm= --user=
			--executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	convert)
		echo "-f= --format= --positions= --value= --executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	check)
		echo "-p= --pid= --json"
		;;
	dump)
		echo "--json --executable= --dcpi-stride= --debuginfod --inline --no-drop-frames -q --quiet --salvage --strict"
		;;
	esac
	echo "-h --help"
}

_profiltool_takes_value() {
	local option

	for option in $(_profiltool_options "$1"); do
		[ "$option" = "$2=" ] && return
	done
	return 1
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

# The value of a command's option. Of a list of processes, the last one.
_profiltool_value() {
	local command=$1 option=$2 word=$3 before=''

	[[ $command != top && $option == -d ]] && option=--image
	[[ $option == -s ]] && option=--sort
	case $command:$option in
	flamegraph:-f | flamegraph:--format)
		_profiltool_reply -W "svg html" -- "$word"
		return
		;;
	report:--sort)
		_profiltool_reply -W "self total $_profiltool_keys" -- "$word"
		return
		;;
	diff:--sort)
		_profiltool_reply -W "$_profiltool_keys" -- "$word"
		return
		;;
	annotate:--sort)
		return
		;;
	report:--by | diff:--by)
		_profiltool_reply -W "$_profiltool_fields $_profiltool_tags" -- "$word"
		return
		;;
	flamegraph:--by)
		_profiltool_reply -W "function process thread" -- "$word"
		return
		;;
	esac
	case $option in
	-p | --pid)
		[[ $word == *,* ]] && before=${word%,*},
		_profiltool_reply -P "$before" -W "$(_profiltool_pids)" -- "${word##*,}"
		;;
	-t | --tid)
		_profiltool_reply -W "$(_profiltool_tids "$word")" -- "$word"
		;;
	-G | --cgroup)
		compopt -o nospace 2>/dev/null
		mapfile -t COMPREPLY < <(_profiltool_cgroups "$word" | sort -u)
		;;
	-e | --event)
		_profiltool_reply -W "$_profiltool_events" -- "$word"
		;;
	-f | --format)
		_profiltool_reply -W "$_profiltool_formats" -- "$word"
		;;
	--backend)
		_profiltool_reply -W "$_profiltool_backends" -- "$word"
		;;
	--normalize)
		_profiltool_reply -W "rate share time" -- "$word"
		;;
	--sort)
		_profiltool_reply -W "self total name image $_profiltool_keys" -- "$word"
		;;
	--call-graph)
		_profiltool_reply -W "auto dwarf cfi fp none" -- "$word"
		;;
	--positions)
		_profiltool_reply -W "line instr" -- "$word"
		;;
	--dcpi-stride)
		_profiltool_reply -W "1 4" -- "$word"
		;;
	--by)
		_profiltool_reply -W "$_profiltool_fields" -- "$word"
		;;
	-o | --output | -i | --input | --diff | --socket | --image | --executable | --source-path)
		_profiltool_files "$word"
		;;
	*)
		COMPREPLY=()
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
			elif _profiltool_takes_value "$command" "$word"; then
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
	local command=${COMP_WORDS[1]} first=2 offset runs='' given=''

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_profiltool_reply -W "$_profiltool_commands --help --version
			$(_profiltool_options record | tr -d =)" -- "$word"
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
	if [ "$given" ] || _profiltool_takes_value "$command" "$last"; then
		_profiltool_value "$command" "$last" "$word"
	elif [[ $word == -* ]]; then
		_profiltool_reply -W "$(_profiltool_options "$command" | tr -d =)" -- "$word"
	elif [ "$runs" ]; then
		_profiltool_reply -c -- "$word"
	else
		_profiltool_files "$word"
	fi
}

complete -F _profiltool profiltool
