#!/usr/bin/env python3
"""check_decoder.py WRITE_SHARD: random shards, decoded by decode_shard.py, against what went in.

That the decoder, written from docs/format/shard.md alone, agrees shows that the document says enough.
"""
import collections
import subprocess
import sys
import tempfile

import decode_shard


def expected(facts):
    """The lines of decode_shard.py, from the facts that write_shard printed."""
    lines, terms, presence = [], collections.defaultdict(set), collections.defaultdict(set)
    for fact in facts:
        kind, *rest = fact.split(" ")
        if kind in ("id", "time", "number"):
            lines.append(fact)
        elif kind == "present":
            presence[rest[0], rest[1]].add(int(rest[2]))
        else:
            value = bytes.fromhex(rest[2])
            cut = 3 if len(value) > 255 else 0
            number = {"keyword": 1, "token": 2, "uuid": 3}[kind]
            terms[rest[0], number, value[:255].hex(), cut].add(int(rest[1]))
    for key, documents in terms.items():
        lines.append(f"term {' '.join(map(str, key))} {' '.join(map(str, sorted(documents)))}")
    for key, documents in presence.items():
        lines.append(f"present {' '.join(key)} {' '.join(map(str, sorted(documents)))}")
    return sorted(lines)


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for seed, count in enumerate((1, 2, 127, 128, 129, 300, 1023, 4097, 1025, 600), start=1):
            path = f"{scratch}/{count}.shard"
            run = subprocess.run([sys.argv[1], str(seed), str(count), path], check=True,
                                 stdout=subprocess.PIPE, text=True)
            decoded = subprocess.run([sys.executable, decode_shard.__file__, path],
                                     stdout=subprocess.PIPE, text=True, check=False)
            wanted = expected(run.stdout.splitlines())
            found = sorted(decoded.stdout.splitlines())
            if decoded.returncode == 0 and wanted == found:
                passed += 1
                continue
            failed += 1
            for line in sorted(set(wanted) ^ set(found))[:10]:
                print("only expected:" if line in wanted else "only decoded:", line[:200])
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
