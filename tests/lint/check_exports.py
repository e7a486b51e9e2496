#!/usr/bin/env python3
"""check_exports.py LIBLAHAR.SO LIBLAHAR.A: the shared library exports what the public headers
declare and nothing else; neither keeps writable global state."""
import re
import subprocess
import sys

import tree

# symbol -> why it may be writable
WRITABLE = {}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


shared, static = sys.argv[1:3]
complaints = []
exported = set()
for line in output("nm", "-D", "--defined-only", shared).splitlines():
    symbol = line.split()[-1].split("@")[0]
    kind = line.split()[-2]
    if kind == "A" and symbol.startswith("LAHAR_"):
        continue
    exported.add(symbol)
    if not symbol.startswith("lahar_"):
        complaints.append(f"{shared}: exports {symbol}")
declared = set()
for header in tree.files(".h"):
    if header.startswith("engine/include/lahar/"):
        text = "\n".join(line for _, line in tree.without_comments(header))
        declared |= set(re.findall(r"LAHAR_API[^;{(]*?\b(lahar_\w+)\s*\(", text))
complaints += [f"{symbol}: declared LAHAR_API, not exported" for symbol in sorted(declared - exported)]
complaints += [f"{symbol}: exported, not declared LAHAR_API" for symbol in sorted(exported - declared)]
for line in output("objdump", "-t", static).splitlines():
    parts = line.split()
    if len(parts) < 5 or parts[-3] not in (".data", ".bss") or " O " not in line:
        continue
    if parts[-1] not in WRITABLE:
        complaints.append(f"{static}: writable global {parts[-1]}")
tree.finish(complaints, len(exported), "symbols")
