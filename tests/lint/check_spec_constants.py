#!/usr/bin/env python3
"""The numbers in the tables of docs/format are those of the headers, and the tables add up."""
import os
import re

import tree

# page, a pattern with the number, header, the constant
NUMBERS = (
    ("events.md", r"## Header, (\d+) bytes", "engine/segment/segment_format.h", "LAHAR_EVENTS_HEADER_SIZE"),
    ("events.md", r"## Footer, (\d+) bytes", "engine/segment/segment_format.h", "LAHAR_EVENTS_FOOTER_SIZE"),
    ("events.md", r"header \((\d+)\) \| group", "engine/segment/block_format.h", "LAHAR_BLOCK_HEADER_SIZE"),
    ("events.md", r"group table \((\d+) each\)", "engine/segment/block_format.h", "LAHAR_BLOCK_GROUP_SIZE"),
    ("toc.md", r"\| (\d+) each \| entries", "engine/segment/segment_format.h", "LAHAR_TOC_ENTRY_SIZE"),
    ("toc.md", r"\| (\d+) \| \d+ each \| entries", "engine/segment/segment_format.h", "LAHAR_TOC_HEADER_SIZE"),
    ("journal.md", r"## Header, (\d+) bytes", "engine/journal/segment_file.h", "LAHAR_JOURNAL_HEADER_SIZE"),
    ("journal.md", r"multiple of 8, at least (\d+) \|", "engine/journal/frame.h", "LAHAR_FRAME_HEADER_SIZE"),
    ("journal.md", r"kind: (\d) batch", "engine/journal/frame.h", "LAHAR_FRAME_BATCH"),
    ("journal.md", r"kind: .*?(\d) pad", "engine/journal/frame.h", "LAHAR_FRAME_PAD"),
    ("journal.md", r"kind: .*?(\d) mark", "engine/journal/frame.h", "LAHAR_FRAME_MARK"),
    ("manifest.md", r"### Header, (\d+) bytes", "engine/store/manifest_format.h", "LAHAR_MANIFEST_HEADER_SIZE"),
    ("manifest.md", r"size of this structure, (\d+) ", "engine/store/identity.h", "LAHAR_IDENTITY_SIZE"),
    ("manifest.md", r"\| FILE \| (\d+) bytes", "engine/store/manifest_format.h", "LAHAR_MANIFEST_FILE_SIZE"),
    ("row.md", r"size of the whole row, (\d+) ", "engine/event/row.h", "LAHAR_ROW_HEADER_SIZE"),
    ("shard.md", r"trailer   = (\d+) bytes", "index/shard_format.h", "LAHAR_SHARD_TRAILER_SIZE"),
    ("shard.md", r"Blocks hold (\d+) terms", "index/shard_format.h", "LAHAR_SHARD_BLOCK_TERMS"),
)
complaints, checked = [], 0


def read(path):
    with open(os.path.join(tree.ROOT, path), encoding="utf-8") as file:
        return file.read()


for page, pattern, header, constant in NUMBERS:
    checked += 1
    stated = re.search(pattern, read(f"docs/format/{page}"))
    defined = re.search(rf"\b{constant} = (\d+)\b", read(header))
    if not stated or not defined:
        complaints.append(f"{page}: {constant}: not found in the {'header' if stated else 'page'}")
    elif stated.group(1) != defined.group(1):
        complaints.append(f"{page}: {stated.group(1)}, but {constant} is {defined.group(1)}")

# Records of the manifest: every type by name and number, both ways.
stated = set(re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", read("docs/format/manifest.md"), re.M))
record_enum = re.search(r"enum lahar_manifest_record_type \{(.*?)\};", read("engine/store/manifest_format.h"), re.S)
defined = {(number, name) for name, number in re.findall(r"LAHAR_MANIFEST_(\w+) = (\d+)", record_enum.group(1))}
checked += len(defined)
for number, name in sorted(stated ^ defined):
    complaints.append(f"manifest.md: record {number} {name} is only in one of page and header")

# Offsets in a table rise by the sizes beside them.
for page in sorted(os.listdir(os.path.join(tree.ROOT, "docs/format"))):
    expected = None
    for number, line in tree.lines(f"docs/format/{page}"):
        row = re.match(r"\| (\d+) \| ([\d+]+) \|", line)
        if not row:
            expected = None
            continue
        checked += 1
        if expected is not None and int(row.group(1)) != expected:
            complaints.append(f"{page}:{number}: offset {row.group(1)}, but {expected} bytes stand before it")
        expected = int(row.group(1)) + sum(map(int, row.group(2).split("+")))

tree.finish(complaints, checked, "numbers")
