#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs the commands of questions.md, of perf and of profiltool, one after the other, and measures their time.
# Prints a table for questions.md: "question  tool  keystrokes  seconds".

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2016 # expanded when it is asked
. "$(dirname "$0")/../lib.sh"

for tool in perf g++; do
	command -v $tool >/dev/null || { echo "questions: there is no $tool here" >&2; exit 1; }
done
PATH=$build:$PATH
cd "$work" || exit

# A program of C++, built so that perf finds its stacks and lines, too: it counts words.
cat >words.cc <<'END'
#include <algorithm>
#include <map>
#include <string>
#include <vector>

using words = std::vector<std::string>;

static words split(const std::string &text)
{
	words all;
	size_t from = 0;

	for (size_t at; (at = text.find(' ', from)) != std::string::npos; from = at + 1)
		all.push_back(text.substr(from, at - from));
	return all;
}

static std::map<std::string, int> count(const words &all)
{
	std::map<std::string, int> counts;

	for (const std::string &word : all)
		counts[word]++;
	return counts;
}

int main()
{
	std::string text;

	for (int i = 0; i < 20000; i++)
		text += "a-word-of-some-length-" + std::to_string(i * 7 % 1013) + " ";
	for (;;) {
		words all = split(text);
		std::sort(all.begin(), all.end());
		if (count(all).empty())
			return 1;
	}
}
END
g++ -O2 -g -fno-omit-frame-pointer -o words words.cc || exit
start ./words
PID=$pid

# ask QUESTION TOOL COMMANDS: counts what a person types, without the time of recording itself.
ask() {
	local question=$1 tool=$2 typed=$3 from to

	from=${EPOCHREALTIME/./}
	PID=$PID timeout 300 bash -c "$typed" >"$work/answer.$tool" 2>"$work/answer.$tool.err" </dev/null ||
		echo "# $question, $tool: exit status $?: $(tail -n 1 "$work/answer.$tool.err")"
	to=${EPOCHREALTIME/./}
	typed=${typed//\$PID/1234}
	printf '%-44s  %-10s  %4d  %8.2f\n' "$question" "$tool" ${#typed} \
		"$(((to - from) / 10000))e-2"
}

printf '%-44s  %-10s  %4s  %8s\n' question tool keys seconds
ask "where does this process spend its time" perf \
	'perf record -o p.data -p $PID sleep 5; perf report -i p.data --stdio'
ask "where does this process spend its time" profiltool \
	'profiltool -p $PID -d 5'
ask "keep it, with call stacks" perf \
	'perf record -o g.data -g -p $PID sleep 5'
ask "keep it, with call stacks" profiltool \
	'profiltool -p $PID -d 5 -g -o g.pb.gz'
ask "the call tree" perf \
	'perf report -i g.data --stdio --children'
ask "the call tree" profiltool \
	'profiltool report --tree g.pb.gz'
ask "who calls malloc so often" perf \
	'perf report -i g.data --stdio --no-children -S malloc -g caller'
ask "who calls malloc so often" profiltool \
	'profiltool report --callers malloc g.pb.gz'
ask "which source lines" perf \
	'perf report -i g.data --stdio --no-children -g none -s srcline'
ask "which source lines" profiltool \
	'profiltool report --by line g.pb.gz'
ask "which instructions of the busiest function" perf \
	'perf annotate -i g.data --stdio | head -n 200'
ask "which instructions of the busiest function" profiltool \
	'profiltool annotate g.pb.gz'
cp p.data old.data
cp g.pb.gz old.pb.gz
ask "what has changed since then" perf \
	'perf diff old.data g.data'
ask "what has changed since then" profiltool \
	'profiltool diff old.pb.gz g.pb.gz'
ask "which process burns the machine" perf \
	'perf record -o a.data -a sleep 5; perf report -i a.data --stdio --sort comm,pid'
ask "which process burns the machine" profiltool \
	'profiltool -a -d 5 -o a.pb.gz; profiltool report --by process a.pb.gz'
ask "a flame graph" perf \
	'perf script -i g.data | stackcollapse-perf.pl | flamegraph.pl > p.svg' # scripts of its own
ask "a flame graph" profiltool \
	'profiltool flamegraph g.pb.gz -o p.svg'
ask "why can I not record" perf \
	'perf record -o n.data -p 1 sleep 0.1'
ask "why can I not record" profiltool \
	'profiltool check'

# --- Of a new user, about a service that waits more than it computes ---

cat >shop.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sum;

__attribute__((noinline)) void reserve(void)
{
	pthread_mutex_lock(&stock);
	usleep(20000);
	pthread_mutex_unlock(&stock);
}

__attribute__((noinline)) void tax(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sum += i * i;
}

__attribute__((noinline)) void route_order(void)
{
	reserve();
	usleep(5000);
}

__attribute__((noinline)) void route_price(void)
{
	tax(ROUNDS);
	usleep(10000);
}

static void *serve(void *routes)
{
	for (;;)
		routes ? route_price() : route_order();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, serve, i % 2 ? &stock : NULL);
	pause();
}
END
for rounds in 2000000 3000000; do
	gcc -O2 -g -fno-omit-frame-pointer -pthread -DROUNDS=$rounds -o shop.$rounds shop.c || exit
done
bcc=
command -v offcputime >/dev/null || bcc=-bpfcc # the names of Debian's bpfcc-tools; libbpf-tools have none

# of_bcc TOOL QUESTION COMMANDS
of_bcc() {
	command -v "$1$bcc" >/dev/null && ask "$2" bcc "$3"
}
start ./shop.2000000
PID=$pid
ask "does it compute, or wait" perf 'perf stat -p $PID sleep 5'
ask "does it compute, or wait" profiltool 'profiltool -p $PID -d 5'
ask "for what does it wait, and where" perf \
	'perf sched record -o s.data sleep 5; perf sched timehist -i s.data -p $PID'
of_bcc offcputime "for what does it wait, and where" "offcputime$bcc -p \$PID 5"
ask "for what does it wait, and where" profiltool 'profiltool -p $PID -d 5 --wall -o w.pb.gz'
ask "who has the lock" profiltool 'profiltool report --by peer w.pb.gz'
ask "which threads get no CPU" perf 'perf sched latency -i s.data'
of_bcc runqlat "which threads get no CPU" "runqlat$bcc -L -p \$PID 5 1"
ask "which threads get no CPU" profiltool 'profiltool report --by thread --sort runnable w.pb.gz'
ask "why are some requests slow" profiltool 'profiltool why -p $PID -d 5'
export OLD=$PID
start ./shop.3000000
PID=$pid
ask "is the new build slower, and where" perf \
	'perf record -o old.data -g -p $OLD sleep 5; perf record -o new.data -g -p $PID sleep 5; perf diff old.data new.data'
ask "is the new build slower, and where" profiltool \
	'profiltool -p $PID -d 5 --wall -o new.pb.gz; profiltool diff w.pb.gz new.pb.gz'
ask "a picture of it" profiltool 'profiltool web w.pb.gz -o w.html'
