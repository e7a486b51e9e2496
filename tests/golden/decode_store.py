#!/usr/bin/env python3
"""decode_store.py STORE: prints the events of a store, one JSON object a line in order of id.

A second reader, written from docs/format alone, for stores of a few megabytes: every checksum is
checked and every structure decoded whole. Exit status 0, 4 when something is damaged, 5 when
something is of a version or has a feature that is not in the pages.
"""
import json
import os
import sys

from basics import Damaged, Unsupported, crc32c, need
from decode_events import EventFile, uuid_text
from decode_journal import read_journals
from decode_manifest import read_manifest
from decode_row import BYTES, F64, MAP, UUID, UUIDS
from decode_shard import Shard

MESSAGES = {4: "damaged", 5: "not supported"}


def read_event_file(place, record):
    """The events of a file that the manifest names, all its companions checked."""
    base = os.path.join(place, record.name())
    with open(base + ".events", "rb") as file:
        events = EventFile(file.read())
    for name in ("first", "last", "number", "stream", "times", "arrivals", "row_bytes", "toc_size",
                 "rollover", "rollover_files"):
        need(getattr(events, name) == getattr(record, name), f"{base}: {name}")
    need(len(events.data) == record.size and events.event_count == record.events
         and events.block_count == record.blocks, f"{base}: sizes in the manifest")
    with open(base + ".toc", "rb") as file:
        toc = file.read()
    need(crc32c(0, toc) == record.toc_crc, f"{base}.toc: checksum in the manifest")
    events.check_toc(toc)
    if record.has_shard:
        check_shard(base + ".shard", record, events.events)
    return events.events


def check_shard(path, record, events):
    with open(path, "rb") as file:
        data = file.read()
    need(len(data) == record.shard_size and crc32c(0, data) == record.shard_crc,
         f"{path}: size or checksum in the manifest")
    try:
        shard = Shard(data)
    except AssertionError as error:
        raise Damaged(f"{path}: {error}") from error
    need(shard.ids == [event.id for event in events], f"{path}: ids")
    times = sorted((i, event.time + (1 << 63)) for i, event in enumerate(events))
    need(shard.times == times, f"{path}: times")


def printable(kind, value):
    """A value as JSON; bytes that are not UTF-8 become U+FFFD, a key that repeats keeps all."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if kind == F64:
        return value
    if kind == UUID:
        return uuid_text(value)
    if kind == UUIDS:
        return [uuid_text(item) for item in value]
    if kind == BYTES:
        return value.hex()
    if kind == MAP:
        return [[printable(0, key), printable(0, item)] for key, item in value]
    if isinstance(value, list):
        return [printable(0, item) for item in value]
    return value.decode("utf-8", "replace")


def json_of(event, manifest):
    fields = {}
    for field, kind, value in event.values:
        need(field < len(manifest.fields), "a field without a name")
        fields[manifest.fields[field].decode("utf-8", "replace")] = printable(kind, value)
    return {"id": event.id, "time": event.time, "arrival": event.arrival,
            "stream": manifest.streams[event.stream].name.decode("utf-8", "replace"), "fields": fields}


def read_store(store):
    """(manifest, events)."""
    manifest = read_manifest(store)
    events = []
    for record in manifest.files:
        place = manifest.volumes[record.volume - 1][1].decode() if record.volume else \
            os.path.join(store, "events")
        events += read_event_file(place, record)
    tail, offsets = read_journals(store, manifest)
    for source, key, value in offsets:
        manifest.offsets[source, key] = value
    events += tail
    events = [event for event in events if event.id >= manifest.dropped.get(event.stream, [0])[0]]
    events.sort(key=lambda event: event.id)
    ids = [event.id for event in events]
    need(len(set(ids)) == len(ids), "an id given twice")
    for event in events:
        need(event.stream < len(manifest.streams), "an event of no stream")
    return manifest, events


def status_of(store):
    """Prints the events of a store; the exit status."""
    try:
        manifest, events = read_store(store)
        for event in events:
            print(json.dumps(json_of(event, manifest), ensure_ascii=False))
    except OSError as error:
        print(f"decode_store: {error}", file=sys.stderr)
        return 3
    except (Damaged, Unsupported) as error:
        status = 4 if isinstance(error, Damaged) else 5
        print(f"decode_store: {MESSAGES[status]}: {error}", file=sys.stderr)
        return status
    return 0


def main():
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    return status_of(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
