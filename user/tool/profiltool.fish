# SPDX-License-Identifier: GPL-2.0-only
# Completion of profiltool for fish. Commands, options and their values are those of --help.

# --help of a command, or of all, with lines that wrap joined.
function __profiltool_help
    set -l text (profiltool $argv --help 2>/dev/null | string collect)
    string replace -ra '\n(?: {10,}| {4}(?=[a-z]))' ' ' -- $text
end

# The commands, each with a tab and what it is for.
function __profiltool_commands
    __profiltool_help | string match -r '^  [a-z]+  +[^ ].*' | string replace -r '^  ([a-z]+) +(.*)' '$1\t$2'
end

# What the value of an option may be. LIST: what --help lists.
function __profiltool_values --argument-names name value list
    # Without what stands before it in the same word.
    set -l word (commandline -ct | string replace -r '^(--[a-z-]+=|-[a-zA-Z])' '')
    set -l before (string match -r '.*,' -- $word)

    string match -q '*|*' -- $value; and string split '|' -- $value; and return
    test -n "$list"; and string split ', ' -- $list
    switch $name:$value
        case 'by:*'
            printf 'time:%s\n' 10ms 100ms 1s 10s 1m
        case '*:PID*'
            __fish_complete_pids | string replace -r '^ *' "$before"
        case '*:TID'
            string replace -fr '^/proc/[0-9]+/task/([0-9]+)$' '$1' /proc/*/task/*
        case 'cgroup:*'
            for place in (string match -r '^\S+ \S+ cgroup2 ' </proc/self/mounts | string split -f 2 ' ')
                string replace $place '' $place/**/
            end
            __fish_complete_directories $word
        case '*:KEY'
            printf '%s\n' self total comm dso sym srcline srcfile pid tid comm,dso,sym
        case 'against:*' 'before:*'
            printf '%s\n' before rest
        case 'value:*'
            printf '%s\n' samples cpu delay wall woke
        case 'dcpi-stride:*'
            printf '%s\n' 1 4
        case '*:OUT' '*:PAGE*' '*:FILE' '*:OLD' '*:PATH' '*:IMAGE' 'source-path:*'
            __fish_complete_path $word
    end
end

# Sets $command, and $at to the number of the word at which what record or run start begins, or 0.
function __profiltool_look --no-scope-shadowing
    set -l words (commandline -opc)
    set -l i 3
    set command record
    set at 0
    # Without a command, it records.
    string match -qr '^[a-z]' -- $words[2]; and set command $words[2]; or set i 2
    contains -- $command record run; or return
    set -l options __profiltool_takes_$command
    while test $i -le (count $words)
        if test $words[$i] = --
            set at (math $i + 1)
            return
        else if contains -- $words[$i] $$options
            set i (math $i + 1)
        else if not string match -q -- '-*' $words[$i]
            set at $i
            return
        end
        set i (math $i + 1)
    end
end

# Whether options of a command are to be completed.
function __profiltool_is
    set -l command
    set -l at
    __profiltool_look
    test $at -eq 0 -a $command = $argv[1]
end

# What is no option: a command, a program to run with its arguments, or a file.
function __profiltool_word
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l command
    set -l at

    if test (count $words) -eq 1
        __profiltool_commands
        return
    end
    __profiltool_look
    if test $at -gt 0 -a $at -le (count $words)
        complete -C (string join ' ' -- (string escape -- $words[$at..]) $word)
    else if contains -- $command record run
        string match -q -- '-*' $word; or complete -C "$word"
    else
        __fish_complete_path $word
    end
end

complete -c profiltool -f -a '(__profiltool_word)'
complete -c profiltool -n 'test (count (commandline -opc)) -eq 1' -l version -d 'print the version'
for command in (__profiltool_commands | string split -f 1 \t)
    set -l lines (__profiltool_help $command)
    set -l is -c profiltool -n "__profiltool_is $command"

    set -g __profiltool_takes_$command
    complete $is -s h -l help -d 'print the options'
    for line in $lines
        # Its letter, name, value and text.
        set -l parts (string replace -fr '^  (?:-(.), |    )--([a-z-]+)(\[=[^]]+\]| [^ ]+)?  +(.*)$' \
            '$1\t$2\t$3\t$4' -- $line | string split \t)
        test (count $parts) -eq 4; or continue
        set -l value (string trim -c ' []=' -- $parts[3])
        set -l option -l $parts[2] -d $parts[4]
        set -l list (string match -r '^  '(string escape --style=regex -- $value)' is one of: (.*)' -- $lines)[2]

        test -n "$parts[1]"; and set option -s $parts[1] $option
        if test -n "$value"
            set option $option -f -a "(__profiltool_values $parts[2] "(string escape -- $value)" '$list')"
            if string match -q ' *' -- $parts[3]
                set option $option -r
                set -a __profiltool_takes_$command --$parts[2]
                test -n "$parts[1]"; and set -a __profiltool_takes_$command -$parts[1]
            end
        end
        complete $is $option
    end
end
