#!/usr/bin/env python3
"""check_ring.py ENGINE.A: what an append runs between its claim and its publication calls neither
an allocator nor a lock nor the system: its objects name nothing else than is listed here."""
import subprocess
import sys

# What the objects may leave undefined: our checksum, copying, and what compilers add.
ALLOWED = {
    "ring.c.o": {"lahar_frame_encode", "lahar_frame_encode_planted", "lahar_assert_failed"},
    "frame.c.o": {"lahar_crc32c", "lahar_assert_failed"},
}
COPYING = {"memcpy", "memset", "memmove", "memcmp", "__memcpy_chk", "__memset_chk",
           "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}

lines = subprocess.run(["nm", "-u", sys.argv[1]], capture_output=True, text=True,
                       check=True).stdout.splitlines()
member = None
seen = set()
complaints = []
for line in lines:
    if line.endswith(":"):
        member = line[:-1]
        seen.add(member)
    elif member in ALLOWED and line.split():
        symbol = line.split()[-1]
        if symbol not in ALLOWED[member] | COPYING:
            complaints.append(f"{member}: calls {symbol}")
complaints += [f"{name}: not in {sys.argv[1]}" for name in ALLOWED if name not in seen]
print("\n".join(complaints))
print(f"{len(ALLOWED)} objects checked, {len(complaints)} complaints")
sys.exit(1 if complaints else 0)
