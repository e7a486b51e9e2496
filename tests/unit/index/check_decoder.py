#!/usr/bin/env python3
"""check_decoder.py WRITE_SHARD DOCUMENT: random shards, built and merged, decoded by decode_shard.py,
against what went in, and the worked example of the document.

That the decoder, written from docs/format/shard.md alone, agrees shows that the document says enough.
"""
import collections
import re
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


# Times are ns with the top bit flipped: 2^63 + 1,000,000,000 and 2^63 + 1,002,000,000.
EXAMPLE = """id 0 7
id 1 8
number size 0 300
present message 2 0 1
present size 4 0
present type 1 0 1
present uuid 3 0 1
term message 2 31326162 0 0
term message 2 31326163 0 1
term message 2 73656e74 0 0 1
term type 1 53454e44 0 0
term type 1 64726f70 0 1
term uuid 3 101112131415161718191a1b1c1d1e1f 0 0 1
time 0 9223372037854775808
time 1 9223372037856775808
"""


def example_bytes(document):
    """The hexadecimal dump under "## Example"."""
    text = open(document, encoding="utf-8").read().split("## Example")[1]
    rows = re.findall(r"^([0-9a-f]{3})  ((?:[0-9a-f]{2} )*[0-9a-f]{2})(?:   .*)?$", text, re.M)
    data = b""
    for offset, row in rows:
        assert int(offset, 16) == len(data), offset
        data += bytes.fromhex(row)
    return data


def main():
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/example.shard"
        with open(path, "wb") as file:
            file.write(example_bytes(sys.argv[2]))
        decoded = subprocess.run([sys.executable, decode_shard.__file__, path],
                                 stdout=subprocess.PIPE, text=True, check=False)
        passed, failed = (1, 0) if decoded.stdout == EXAMPLE else (0, 1)
        built = [(seed, count, 1) for seed, count in
                 enumerate((1, 2, 127, 128, 129, 300, 1023, 4097, 1025, 600), start=1)]
        merged = [(seed, count, pieces) for seed, (count, pieces) in
                  enumerate(((2, 2), (129, 2), (1025, 3), (2500, 4), (700, 9)), start=21)]
        for seed, count, pieces in built + merged:
            path = f"{scratch}/{count}.shard"
            run = subprocess.run([sys.argv[1], str(seed), str(count), path, str(pieces)], check=True,
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
