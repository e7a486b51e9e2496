"""Journal files and what they leave of the events: docs/format/journal.md."""
import os
import re
import struct

from basics import Bytes, Damaged, Unsupported, checked, crc32c, need
from decode_row import TIME_OF_ARRIVAL, decode_row

BATCH, PAD, MARK = 1, 2, 3


class Frame:
    def __init__(self, session, kind, first, durable, arrival, count, offsets, rows):
        self.session, self.kind, self.first, self.durable = session, kind, first, durable
        self.arrival, self.count, self.offsets, self.rows = arrival, count, offsets, rows
        self.end = first + (count or (1 if kind == BATCH else 0))

    def events(self):
        r = Bytes(self.rows)
        events = [decode_row(r) for _ in range(self.count)]
        need(not r.more(), "a batch has bytes left")
        return events


class Journal:
    """One file; frames is empty when its header is not valid."""

    def __init__(self, data, store_id):
        self.frames = []
        try:
            self.read_header(data)
        except Damaged:
            return
        if self.store_id != store_id:
            return
        for region in range(self.region_count):
            begin = 4096 + region * self.region_size
            self.read_region(data[:begin + self.region_size], begin)

    def read_header(self, data):
        r = Bytes(data)
        r.head(b"LAHARJNL", 1, 4096)
        checked(data[:4096], "journal header")
        self.store_id, self.session, self.generation = r.uint(8), r.uint(8), r.uint(8)
        self.region_size, self.region_count, key = r.uint(4), r.uint(4), r.uint(4)
        need(self.region_size % 4096 == 0 and 0 < self.region_size <= 65 << 20
             and self.region_count >= 1, "journal header: regions")
        if key:
            raise Unsupported("an encrypted journal")
        self.seed = crc32c(0, data[16:40])

    def read_region(self, data, begin):
        at = begin
        while at + 56 <= len(data):
            size = int.from_bytes(data[at:at + 4], "little")
            # Every byte of a frame that could be valid lies in the region.
            frame = self.frame(data, at, size) if 56 <= size <= len(data) - at and size % 8 == 0 else None
            if frame:
                self.frames.append(frame)
                at += size
            else:
                at += 8

    def frame(self, data, at, size):
        (crc, first, durable, arrival, count, row_bytes, offset_bytes, version, kind, features,
         key) = struct.unpack_from("<IQQqIIIBBHI", data, at + 4)
        if version != 1 or features or key:
            return None
        content = offset_bytes + row_bytes
        if kind == BATCH:
            if (size != (56 + content + 7) // 8 * 8 or content == 0 or (count > 0) != (row_bytes > 0)
                    or count > row_bytes or first + max(count, 1) >= 1 << 64):
                return None
        elif kind not in (PAD, MARK) or count or content or (kind == MARK and size != 56):
            return None
        covered = data[at:at + 4] + bytes(4) + data[at + 8:at + 56 + content]
        if crc32c(crc32c(self.seed, at.to_bytes(8, "little")), covered) != crc:
            return None
        offsets = Bytes(data[at + 56:at + 56 + offset_bytes])
        records = []
        try:
            while offsets.more():
                records.append((offsets.sized(), offsets.sized(), offsets.sized()))
        except Damaged:
            return None
        return Frame(self.session, kind, first, durable, arrival, count, records,
                     data[at + 56 + offset_bytes:at + 56 + content])


def follow(begin, upto, lost):
    """Where the lost ranges that begin at begin end, at most at upto."""
    for first, last in sorted(lost):
        if first <= begin < last:
            begin = min(last, upto)
    return begin


def prefix_of(frames, begin, end, lost):
    """The batches of a session that follow one another from begin, but for what the manifest records
    as lost; end is None while the session is open."""
    batches = sorted((f for f in frames if f.kind == BATCH and f.first >= begin), key=lambda f: f.first)
    for one, two in zip(batches, batches[1:]):
        need(one.end <= two.first, "batches of a session overlap")
    kept = []
    for batch in batches:
        begin = follow(begin, batch.first, lost)
        if batch.first != begin or (end is not None and batch.first >= end):
            break
        kept.append(batch)
        begin = batch.end
    if end is not None:
        begin = follow(begin, end, lost)
        need(begin >= end, f"events {begin} to {end - 1} of a closed session are missing")
    else:
        durable = max((f.durable for f in frames), default=0)
        need(begin >= durable, f"durable events {begin} to {durable - 1} are missing")
    return kept


def read_journals(store, manifest):
    """(events, offset records) that are in journals only, in order of id."""
    by_session = {session: [] for session, _, _ in manifest.sessions}
    directory = os.path.join(store, "journal")
    for name in sorted(os.listdir(directory)):
        if not re.fullmatch(r"[0-9]{20}\.journal", name):
            continue
        with open(os.path.join(directory, name), "rb") as file:
            for frame in Journal(file.read(), manifest.store_id).frames:
                if frame.session in by_session:
                    by_session[frame.session].append(frame)
    events, offsets, arrival = [], [], -(1 << 63)
    for session, first, end in manifest.sessions:
        begin = max(first, manifest.rolled)
        if end is not None and end <= begin:
            continue
        for batch in prefix_of(by_session[session], begin, end, manifest.lost):
            arrival = max(arrival + 1, batch.arrival)
            offsets += batch.offsets
            for i, event in enumerate(batch.events()):
                event.id, event.arrival = batch.first + i, arrival
                if event.time == TIME_OF_ARRIVAL:
                    event.time = arrival
                events.append(event)
    return events, offsets
