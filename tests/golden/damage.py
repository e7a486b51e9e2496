"""Stores that are damaged or of a later version, made from the golden ones.

Each case: a name, the golden store, what is done to it, and the exit status of decode_store.py,
`lahar scan`, and `lahar verify`, with words that standard error of the one that fails must have.
"""
import os
import re
import struct

from basics import crc32c, need


def path_of(store, pattern):
    """The first file of the store whose path matches."""
    names = sorted(os.path.relpath(os.path.join(directory, name), store)
                   for directory, _, leaves in os.walk(store) for name in leaves)
    return os.path.join(store, next(name for name in names if re.fullmatch(pattern, name)))


def rewrite(store, pattern, change):
    path = path_of(store, pattern)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data = change(data) or data
    with open(path, "wb") as file:
        file.write(data)


def flip(pattern, offset):
    """One bit of one byte; a negative offset counts from the end."""
    def change(data):
        data[offset] ^= 0x10
    return lambda store: rewrite(store, pattern, change)


def put(pattern, offset, content, sealed=None):
    """Other bytes; sealed = (from, to): the checksum at `to` covers from..to."""
    def change(data):
        data[offset:offset + len(content)] = content
        if sealed:
            begin, end = sealed
            data[end:end + 4] = crc32c(0, bytes(data[begin:end])).to_bytes(4, "little")
    return lambda store: rewrite(store, pattern, change)


def put_row(pattern, offset, content):
    """Other bytes in the first frame of a journal, under a checksum that agrees."""
    def change(data):
        at, size = 4096, int.from_bytes(data[4096:4100], "little")
        content_size = sum(int.from_bytes(data[at + o:at + o + 4], "little") for o in (36, 40))
        need(56 + offset + len(content) <= 56 + content_size <= size, "a place in the frame")
        data[at + 56 + offset:at + 56 + offset + len(content)] = content
        seed = crc32c(crc32c(0, bytes(data[16:40])), at.to_bytes(8, "little"))
        covered = bytes(data[at:at + 4]) + bytes(4) + bytes(data[at + 8:at + 56 + content_size])
        data[at + 4:at + 8] = crc32c(seed, covered).to_bytes(4, "little")
    return lambda store: rewrite(store, pattern, change)


def cut(pattern, size):
    """The file ends `size` bytes earlier."""
    return lambda store: rewrite(store, pattern, lambda data: data[:-size])


def remove(pattern):
    return lambda store: os.remove(path_of(store, pattern))


def record(kind, payload):
    """One more valid change with one record."""
    def change(data):
        at, sequence = 48, 0
        while at < len(data):
            at += 16 + int.from_bytes(data[at + 4:at + 8], "little")
            sequence += 1
        records = bytes([kind]) + len(payload).to_bytes(4, "little") + payload
        body = len(records).to_bytes(4, "little") + (sequence + 1).to_bytes(8, "little") + records
        return data + crc32c(crc32c(0, bytes(data[16:32])), body).to_bytes(4, "little") + body
    return lambda store: rewrite(store, MANIFEST, change)


MANIFEST = r"manifest-[0-9]+"
JOURNAL = r"journal/0*1\.journal"
EVENTS, TOC, SHARD = (rf"events/0*1-0*6\..*\.{ending}" for ending in ("events", "toc", "shard"))

# name, store, what is done, statuses of decoder, scan and verify, words
CASES = (
    ("identity: a bit", "closed", flip("LAHAR", 21), 4, 4, 4, "LAHAR"),
    ("identity: cut short", "closed", cut("LAHAR", 1), 4, 4, 4, "LAHAR"),
    ("identity: no such file", "closed", remove("LAHAR"), 3, 3, 3, "store"),
    ("identity: later version", "closed", put("LAHAR", 8, b"\2"), 5, 3, 3, "version"),
    ("identity: unknown required feature", "closed", put("LAHAR", 12, b"\1", (0, 60)), 5, 3, 3, "feature"),
    ("identity: unknown optional feature", "closed", put("LAHAR", 16, b"\1", (0, 60)), 0, 0, 0, ""),
    ("manifest: a bit of the header", "closed", flip(MANIFEST, 30), 4, 4, 4, "manifest"),
    ("manifest: later version", "closed", put(MANIFEST, 8, b"\2"), 5, 3, 3, "version"),
    ("manifest: a bit of the snapshot", "closed", flip(MANIFEST, 80), 4, 4, 4, "manifest"),
    ("manifest: a bit between changes", "closed", flip(MANIFEST, 300), 4, 4, 4, "manifest"),
    ("manifest: torn last change", "killed", lambda store: record(8, bytes(8))(store) or cut(MANIFEST, 3)(store),
     0, 0, 0, ""),
    ("manifest: unknown record", "closed", record(0x3F, b"?"), 5, 3, 3, "newer"),
    ("manifest: unknown record that may be passed over", "closed", record(0xBF, b"?"), 0, 0, 0, ""),
    ("manifest: no such file", "closed", remove(MANIFEST), 4, 4, 4, "manifest"),
    ("journal: a bit of a frame that was promised", "closed", flip(r"journal/0*4\.journal", 4096 + 60), 4, 4, 1, "19 to 21"),
    ("journal: the same, recorded as lost", "closed",
     lambda store: flip(r"journal/0*4\.journal", 4096 + 60)(store)
     or record(16, struct.pack("<QQ", 19, 22))(store), 0, 4, 1, "19 to 21"),
    ("manifest: a lost range of nothing", "closed", record(16, struct.pack("<QQ", 19, 19)), 4, 4, 4, "lost"),
    ("journal: last frame of a session that was killed", "killed", flip(JOURNAL, 4096 + 60), 0, 1, 0, ""),
    ("journal: a row longer than its batch", "closed", put_row(r"journal/0*4\.journal", 0, b"\xff\xff"), 4, 4, 1,
     "19 to 21"),
    ("events: a bit of a block", "closed", flip(EVENTS, 300), 4, 4, 1, "1"),
    ("events: a bit of the header", "closed", flip(EVENTS, 20), 4, 0, 1, ""),
    ("events: a bit of the footer", "closed", flip(EVENTS, -20), 4, 0, 1, ""),
    ("events: cut short", "closed", cut(EVENTS, 1), 4, 0, 1, ""),
    ("events: no such file", "closed", remove(EVENTS), 3, 4, 1, ""),
    ("toc: a bit", "closed", flip(TOC, 200), 4, 0, 1, ""),
    ("toc: no such file", "closed", remove(TOC), 3, 0, 1, ""),
    ("shard: a bit", "closed", flip(SHARD, 100), 4, 0, 1, ""),
    ("shard: no such file", "closed", remove(SHARD), 3, 0, 1, ""),
)
