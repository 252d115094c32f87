# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # lib.sh sets work
# A shell in a terminal of a test's own, by tmux: what is typed there, and what its screen shows.

tm() {
	tmux -u -S "$work/tmux" "$@"
}

pane() {
	tm capture-pane -p
}

# shows PATTERN: waits until the screen has it; shows the screen if it does not come.
shows() {
	wait_for shows_now "$1" && return
	pane
	return 1
}

shows_now() {
	pane | grep -qE -- "$1"
}

shows_no_more() {
	wait_for lacks "$1" && return
	pane
	return 1
}

lacks() {
	! shows_now "$1"
}

# key KEY PATTERN: what the screen shows after a key.
key() {
	tm send-keys "$1"
	shows "$2"
}

prompt_now() {
	pane | grep -v '^$' | tail -n 1 | grep -q '^\$ *$'
}

# screen_begin COLUMNS LINES: a shell with the prompt "$ ".
screen_begin() {
	TERM=xterm tm -f /dev/null new-session -d -x "$1" -y "$2" \
		"PS1='\$ ' exec bash --norc --noprofile -i"
	note_started "$(tm display-message -p '#{pid}')"
	wait_for prompt_now
}
