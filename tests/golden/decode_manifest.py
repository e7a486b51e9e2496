"""The identity file and the manifest: docs/format/manifest.md."""
import os
import re

from basics import Bytes, Unsupported, checked, crc32c, need


class Stream:
    def __init__(self, number, schema, name, fields):
        self.number, self.schema, self.name, self.fields = number, schema, name, fields


class File:
    """A FILE record."""

    def __init__(self, r):
        self.first, self.last, self.number = r.uint(8), r.uint(8), r.uint(8)
        self.stream, self.blocks, self.events = r.uint(4), r.uint(4), r.uint(8)
        self.times = r.sint(8), r.sint(8)
        self.arrivals = r.sint(8), r.sint(8)
        self.row_bytes, self.size, self.toc_size = r.uint(8), r.uint(8), r.uint(8)
        self.rollover = r.uint(8), r.uint(8)
        self.rollover_files, flags = r.uint(4), r.uint(4)
        self.has_shard = flags & 1
        self.shard_size, self.shard_crc, self.toc_crc = r.uint(8), r.uint(4), r.uint(4)
        self.age = r.uint(8) if r.more() else 0
        self.volume = r.uint(4) if r.more() else 0

    def name(self):
        return f"{self.first:020d}-{self.last:020d}.{self.number:08d}"


def decode_identity(data):
    """Bytes of LAHAR: (store id, uuid)."""
    need(len(data) == 64, "LAHAR: size")
    r = Bytes(data)
    r.head(b"LAHAR\r\n\x1a", 1, 64)
    checked(data, "LAHAR")
    r.uint(4)
    uuid = r.take(16)
    return int.from_bytes(uuid[:8], "little"), uuid


class Manifest:
    def __init__(self, data, number, store_id):
        self.fields, self.streams, self.files = [], [], []
        self.sessions = []  # [session, first, end or None]
        self.ceiling, self.rolled, self.file_number = 1, 1, 1
        self.offsets = {}
        self.volumes = []  # [name, path], number n at n - 1
        self.limits, self.dropped = {}, {}  # by stream
        self.lost = []  # (first id, end id), as recorded
        self.clock = None
        self.tail_is_torn = False
        r = Bytes(data)
        r.head(b"LAHARMAN", 1, 48)
        checked(data[:48], "manifest header")
        need(r.uint(8) == store_id, "a manifest of another store")
        need(r.uint(8) == number, "a manifest of another number")
        self.snapshot = r.uint(8)
        self.seed = crc32c(0, data[16:32])
        self.read_changes(data)

    def change_at(self, data, at):
        """(sequence, records) of the valid change there, or None."""
        if at + 17 > len(data):
            return None
        size = int.from_bytes(data[at + 4:at + 8], "little")
        end = at + 16 + size
        if size < 1 or end > len(data):
            return None
        if crc32c(self.seed, data[at + 4:end]) != int.from_bytes(data[at:at + 4], "little"):
            return None
        return int.from_bytes(data[at + 8:at + 16], "little"), data[at + 16:end]

    def read_changes(self, data):
        at, sequence = 48, 0
        while at < len(data):
            change = self.change_at(data, at)
            if change is None or change[0] != sequence + 1:
                break
            self.apply(change[1])
            at, sequence = at + 16 + len(change[1]), sequence + 1
        need(at >= 48 + self.snapshot, "the snapshot of the manifest")
        self.tail_is_torn = at < len(data)
        for behind in range(at, len(data)):
            change = self.change_at(data, behind)
            need(change is None or change[0] <= sequence, "a change within the manifest")

    def apply(self, records):
        r = Bytes(records)
        while r.more():
            kind = r.uint(1)
            payload = Bytes(r.take(r.uint(4)))
            if 1 <= kind <= 16:
                (self.field, self.stream, self.begin, self.end, self.raise_ceiling, self.file,
                 self.raise_rolled, self.raise_file_number, self.offset, self.limit, self.remove,
                 self.drop, self.set_clock, self.replace, self.directory, self.lose)[kind - 1](payload)
            elif not kind & 0x80:
                raise Unsupported(f"manifest record of type {kind}")

    def field(self, r):
        need(r.uint(4) == len(self.fields), "ids of fields")
        name = r.take(len(r.data) - r.at)
        need(1 <= len(name) <= 255 and 0 not in name, "name of a field")
        self.fields.append(name)

    def stream(self, r):
        need(r.uint(4) == len(self.streams), "ids of streams")
        schema, name = r.uint(4), r.sized()
        fields = [(r.sized(), r.uint(1), r.uint(1)) for _ in range(r.varint())]
        self.streams.append(Stream(len(self.streams), schema, name, fields))

    def begin(self, r):
        session, first = r.uint(8), r.uint(8)
        if self.sessions:
            last, _, end = self.sessions[-1]
            need(session > last and end is not None and end <= first, "SESSION_BEGIN")
        self.sessions.append([session, first, None])

    def end(self, r):
        session, end = r.uint(8), r.uint(8)
        need(self.sessions and self.sessions[-1][0] == session and self.sessions[-1][2] is None
             and end >= self.sessions[-1][1], "SESSION_END")
        self.sessions[-1][2] = end
        self.ceiling = min(self.ceiling, end)

    def raise_ceiling(self, r):
        ceiling = r.uint(8)
        need(ceiling >= self.ceiling, "CEILING")
        self.ceiling = ceiling

    def file(self, r):
        file = File(r)
        low, high = file.rollover
        need(low <= file.first <= file.last < high, "FILE: ids")
        need(file.stream < len(self.streams), "FILE: stream")
        need(file.volume <= len(self.volumes), "FILE: volume")
        need(all(other.rollover[1] <= low or other.rollover[0] >= high for other in self.files
                 if other.stream == file.stream), "FILE: overlaps another of its stream")
        self.files.append(file)

    def raise_rolled(self, r):
        rolled = r.uint(8)
        need(rolled >= self.rolled, "ROLLED")
        self.rolled = rolled

    def raise_file_number(self, r):
        number = r.uint(8)
        need(number >= self.file_number, "FILE_NUMBER")
        self.file_number = number

    def offset(self, r):
        while r.more():
            source, key, value = r.sized(), r.sized(), r.sized()
            if value:
                self.offsets[source, key] = value
            else:
                self.offsets.pop((source, key), None)

    def limit(self, r):
        stream = r.uint(4)
        need(stream < len(self.streams) or stream == 0xffffffff, "LIMITS: stream")
        self.limits[stream] = r.uint(8), r.uint(8)

    def remove(self, r):
        number = r.uint(8)
        need(number in [file.number for file in self.files], "REMOVE")
        self.files = [file for file in self.files if file.number != number]

    def drop(self, r):
        stream = r.uint(4)
        dropped = r.uint(8), r.uint(8), r.uint(8), r.uint(8)
        need(stream < len(self.streams), "DROPPED: stream")
        need(dropped[0] >= self.dropped.get(stream, dropped)[0], "DROPPED: low id")
        self.dropped[stream] = dropped

    def set_clock(self, r):
        clock = r.uint(8), r.sint(8), r.uint(8), r.uint(8)
        need(self.clock is None or clock[0] >= self.clock[0], "CLOCK")
        self.clock = clock

    def directory(self, r):
        number, name = r.uint(4), r.sized()
        path = r.take(len(r.data) - r.at)
        need(1 <= number <= len(self.volumes) + 1 and name and path and 0 not in path, "DIRECTORY")
        self.volumes[number - 1:number] = [[name, path]]

    def lose(self, r):
        first, end = r.uint(8), r.uint(8)
        need(0 < first < end, "LOST")
        self.lost.append((first, end))

    def replace(self, r):
        def sums(files):
            need(len({file.stream for file in files}) == 1, "REPLACE: stream")
            return (files[0].stream, sum(f.events for f in files), sum(f.row_bytes for f in files),
                    min(f.first for f in files), max(f.last for f in files))
        numbers = [r.uint(8) for _ in range(r.uint(4))]
        removed = [file for file in self.files if file.number in numbers]
        need(len(removed) == len(numbers), "REPLACE: removed")
        self.files = [file for file in self.files if file.number not in numbers]
        count = len(self.files)
        for _ in range(r.uint(4)):
            self.file(Bytes(r.take(r.uint(4))))
        need(sums(removed) == sums(self.files[count:]), "REPLACE: holds something else")


def read_manifest(store):
    """The manifest in force of a store's directory, with its identity."""
    with open(os.path.join(store, "LAHAR"), "rb") as file:
        store_id, uuid = decode_identity(file.read())
    numbers = [int(m.group(1)) for m in
               (re.fullmatch(r"manifest-(0|[1-9][0-9]*)", name) for name in os.listdir(store)) if m]
    need(numbers, "no manifest")
    with open(os.path.join(store, f"manifest-{max(numbers)}"), "rb") as file:
        manifest = Manifest(file.read(), max(numbers), store_id)
    manifest.store_id, manifest.uuid = store_id, uuid
    return manifest
