"""Rows: docs/format/row.md."""
import struct

from basics import Bytes, need

KEYWORD, TEXT, UUID, I64, U64, F64, BOOL, TIME, BYTES, UUIDS, KEYWORDS, MAP = range(1, 13)
TIME_OF_ARRIVAL = -(1 << 63)


class Event:
    """An event: values is [(field, type, value)], in the order of the row; null is None."""

    def __init__(self, stream, time, values):
        self.stream, self.time, self.values = stream, time, values
        self.id = self.arrival = None


def number_of(kind, bits):
    """What the 64 bits of a number stand for."""
    if kind == F64:
        return struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    if kind == BOOL:
        need(bits in (0, 1), "a bool")
        return bool(bits)
    return bits - (1 << 64) if kind in (I64, TIME) and bits >> 63 else bits


def pair(r):
    key, size = r.sized(), r.varint()
    return key, None if size == 0 else r.take(size - 1)


def value_of(r, kind):
    if kind in (KEYWORD, TEXT, BYTES):
        return r.sized()
    if kind == UUID:
        return r.take(16)
    if kind in (I64, U64, F64, TIME):
        return number_of(kind, r.uint(8))
    if kind == BOOL:
        return number_of(kind, r.uint(1))
    if kind == UUIDS:
        return [r.take(16) for _ in range(r.varint())]
    if kind == KEYWORDS:
        return [r.sized() for _ in range(r.varint())]
    need(kind == MAP, f"a value of type {kind}")
    return [pair(r) for _ in range(r.varint())]


def decode_row(r):
    """The row that r stands before."""
    size = r.uint(4)
    need(18 <= size <= 64 << 20, "size of a row")
    row = Bytes(r.take(size - 4))
    event = Event(row.uint(4), row.sint(8), [])
    for _ in range(row.uint(2)):
        field, kind = row.uint(2), row.uint(1)
        need(1 <= kind & 0x7F <= MAP, "a type")
        event.values.append((field, kind & 0x7F,
                             None if kind & 0x80 else value_of(row, kind)))
    need(not row.more(), "a row has bytes left")
    fields = [value[0] for value in event.values]
    need(len(set(fields)) == len(fields), "a field given twice")
    return event
