# SPDX-License-Identifier: GPL-2.0-only
"""
python.py WHAT PROFILTOOL PROFILE TRUTH: whether a recording of tests/progs/script.py (or .php, .pl) shows the call
stacks that the script itself saw, from the first function on. WHAT: chains: all that are known, and no others; shares:
about as much of each as it used of CPU time.
"""
import json
import re
import subprocess
import sys

what, profiltool, profile, truth = sys.argv[1:]
text = subprocess.run([profiltool, "dump", profile], check=True, capture_output=True).stdout.decode()
truth = json.load(open(truth, encoding="utf-8"))
elsewhere = truth.pop("", 0)  # seconds
period = int(re.search(r"^period_ns (\d+)", text, re.M)[1]) / 1e9
found, others, whole, failed = {}, {}, 0, False
# Of a thread, of a program, of one that is started by -m, and of one in PHP or Perl; and those that the script saw.
firsts = dict.fromkeys(("Thread._bootstrap", "<module>", "_run_module_as_main", "{main}"), 0)
firsts |= {re.sub(r":\d+$", "", chain.split(";")[0]): 0 for chain in truth}
# PHP's functions that are written in C: the last one is spin().
in_c = {name for chain in truth for name in chain.split(";")[:-1] if not re.search(r":\d+$", name)}
for line in text.splitlines():
    if not (stack := re.match(r"(\d+) 0x.* # (.*)", line)):
        continue
    count, frames = int(stack[1]), stack[2].split(";")
    # Those of the script: the files of native code have other names.
    script = [re.fullmatch(r"(.*) \((.*?)(?::(\d+))?\)", f"{frame} (c.php)" if frame in in_c else frame)
              for frame in reversed(frames)]
    script = [(f[1], f":{f[3]}" if f[3] else "") for f in script if f and re.search(r"\.(py|p[lm]|tmpl)$|^<|^\(eval\)$|\.php\b", f[2])]
    names = [name for name, line in script]
    if not script:
        continue  # the interpreter's beginning and end
    whole += count
    if names[0] in firsts:
        firsts[names[0]] += count
    spin = next((name for name in names if name in ("spin", "main::spin")), None)
    if spin:
        depth = names.index(spin)
        chain = ";".join([name + line for name, line in script[:depth]] + [spin])
        found[chain] = found.get(chain, 0) + count
    else:
        others[stack[2]] = others.get(stack[2], 0) + count


def complain(why, chain):
    global failed
    failed = True
    print(why, chain[-400:])


for chain in found.keys() - truth.keys():
    complain(f"{found[chain]} samples in no such stack:", chain)
if what == "chains":
    for chain in truth.keys() - found.keys():
        complain(f"not found, of {truth[chain]:.3f} s:", chain)
if what == "shares":
    # Roughly, as `takes` of lib.sh: the clocks of the script go on while the machine stands still.
    for chain, used in truth.items():
        if not used / 4 - 3 * period <= found.get(chain, 0) * period <= 1.75 * used + 3 * period:
            complain(f"{found.get(chain, 0)} samples of {period:.6f} s for {used:.3f} s:", chain)
if sum(found.values()) < .9 * (whole - elsewhere / period) - 10:
    for stack, count in sorted(others.items(), key=lambda s: -s[1])[:5]:
        complain(f"{count} samples not in spin():", stack)
if sum(firsts.values()) < .99 * whole:
    complain(f"{whole - sum(firsts.values())} of {whole} stacks do not reach the first function:", str(firsts))
print(sum(found.values()), "of", whole, "samples in", len(found), "stacks of", len(truth))
sys.exit(failed)
