#compdef profiltool
# SPDX-License-Identifier: GPL-2.0-only
# Completion of profiltool for zsh. Commands, options and their values are those of --help.

# The lines of --help of a command, or of all, with those that wrap joined.
_profiltool_help() {
	local line

	lines=()
	for line in "${(@f)$(_call_program help ${(q)program} $1 --help 2>/dev/null)}"; do
		if (( $#lines )) && [[ $line == '          '* || $line == '    '[a-z]* ]]; then
			lines[-1]+=" ${line##[[:space:]]#}"
		else
			lines+=("$line")
		fi
	done
}

_profiltool_pids() {
	local -a processes
	local cmdline name

	for cmdline in /proc/<->/cmdline(N); do
		name=${"$(<$cmdline)"//$'\0'/ } 2>/dev/null
		[[ -z $name ]] || processes+=("${${cmdline:h}:t}:${name//:/\\:}")
	done
	compset -P '*,'
	_describe -t processes process processes
}

_profiltool_tids() {
	local -a threads
	threads=(/proc/<->/task/<->(N:t))
	_wanted threads expl thread compadd -a threads
}

# Control groups, as --cgroup takes them: below where such are mounted.
_profiltool_cgroups() {
	local -a places
	places=(${${(f)"$(awk '$3 == "cgroup2" { print $2 }' /proc/self/mounts)"}})
	_alternative "groups:control group:_path_files -/ -W places" 'directories:directory:_path_files -/'
}

_profiltool() {
	local program=${(Q)words[1]/#\~/$HOME} command=record each letter name optional value text action
	local -a lines specs known match mbegin mend lists
	local curcontext=$curcontext

	if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
		_profiltool_help
		for each in $lines; do
			[[ $each =~ '^  ([a-z]+)  +([^ ].*)$' ]] && known+=("$match[1]:${match[2]//:/\\:}")
		done
		_describe -t commands command known
		return
	fi
	# Without a command, it records.
	if [[ $words[2] == [a-z]* ]]; then
		command=$words[2]
		shift words
		(( CURRENT-- ))
	fi
	_profiltool_help $command
	for each in $lines; do
		[[ $each =~ '^  (-(.), |    )--([a-z-]+)(\[=([^]]+)\]| ([^ ]+))?  +(.*)$' ]] || continue
		letter=$match[2] name=$match[3] optional=$match[5] value=$match[6]
		text=${match[7]//:/\\:}
		text=${text//'['/(}
		text=${text//']'/)}
		lists=(${(M)lines:#"  ${optional:-$value} is one of: "*})
		case $name:$optional$value in
		*:?*'|'*) action="(${${optional:-$value}//|/ })" ;;
		by:*) action="(${${lists[1]#*: }//,/} time\\:100ms time\\:1s time\\:10s)" ;;
		cgroup:*) action=_profiltool_cgroups ;;
		*:PID*) action=_profiltool_pids ;;
		*:TID) action=_profiltool_tids ;;
		*:KEY) action='(self total comm dso sym srcline srcfile pid tid comm,dso,sym)' ;;
		against:* | before:*) action='(before rest)' ;;
		value:*) action='(samples cpu delay wall woke)' ;;
		dcpi-stride:*) action='(1 4)' ;;
		*:(OUT|PAGE|FILE|OLD|PATH|IMAGE) | source-path:*) action=_files ;;
		*) action="(${${lists[1]#*: }//,/})" ;;
		esac
		[[ $action != '()' ]] || action=' '
		if [[ -n $optional ]]; then
			specs+=("--$name=-[$text]::$optional:$action")
			[[ -z $letter ]] || specs+=("-${letter}[$text]")
		elif [[ -n $value ]]; then
			specs+=("--$name=[$text]:$value:$action")
			[[ -z $letter ]] || specs+=("-$letter+[$text]:$value:$action")
		else
			specs+=("--${name}[$text]")
			[[ -z $letter ]] || specs+=("-${letter}[$text]")
		fi
	done
	specs+=('(- *)'{-h,--help}'[print the options]')
	if (( CURRENT == 2 )) && [[ $command == record && $words[1] != record ]]; then
		specs+=('(- *)--version[print the version]')
	fi
	if [[ $command == (record|run) ]]; then
		_arguments -s -S : $specs '(-)1:command:_command_names -e' '*::argument:_normal'
	else
		_arguments -s -S : $specs '*:file:_files'
	fi
}

_profiltool "$@"
