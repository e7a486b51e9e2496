"""An event as `lahar scan --json` shows it: docs/formats.md, "JSON output" and "_shape".

Numbers are compared by their text, so JSON is parsed here with parse_int = parse_float = str.
"""
import base64
import json
import re
from datetime import datetime, timedelta, timezone

from basics import Bytes, need
from decode_events import uuid_text
from decode_row import BYTES, BOOL, F64, MAP, TIME, UUID, UUIDS

HIDDEN = (b"_framing", b"_shape")


def text(value):
    return value.decode("utf-8", "replace")


def without_surrogates(value):
    """A surrogate without its partner, and a byte that is not UTF-8, is U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", value)


def time_text(ns, digits=9):
    second = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=ns // 10 ** 9)
    fraction = f".{ns % 10 ** 9:09d}"[:digits + 1] if digits else ""
    return f"{second:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def shown(kind, value):
    """A value as parsed JSON whose numbers are text."""
    if value is None:
        return None
    if kind == BOOL:
        return value
    if kind == TIME:
        return time_text(value)
    if kind == F64:
        return value
    if kind == UUID:
        return uuid_text(value)
    if kind == UUIDS:
        return [uuid_text(item) for item in value]
    if kind == BYTES:
        return base64.b64encode(value).decode()
    if kind == MAP:
        return object_of([(text(k), None if v is None else text(v)) for k, v in value])
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return [text(item) for item in value]
    return text(value)


def object_of(pairs):
    """Pairs as an object, in which a key that repeats has an array."""
    keys = {}
    for key, value in pairs:
        keys.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in keys.items()}


class Skeleton:
    """A document from its skeleton: attributes in order of name, fields by number."""

    def __init__(self, shape, values, attributes_field):
        self.r = Bytes(shape)
        self.fields = {field: (kind, value) for field, kind, value in values}
        self.items = {field: iter(value) for field, kind, value in values
                      if isinstance(value, list) and kind != MAP}
        self.maps = {field: {} for field, kind, value in values if kind == MAP and value is not None}
        for field, kind, value in values:
            if kind == MAP and value is not None:
                for key, item in value:
                    self.maps[field].setdefault(key, []).append(item)
        self.map = attributes_field

    def peek(self):
        return self.r.data[self.r.at:self.r.at + 1]

    def literal(self):
        """The JSON string, number or word that stands here."""
        text_here = self.r.data[self.r.at:].decode("utf-8", "surrogateescape")
        value, end = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode(text_here)
        self.r.take(len(text_here[:end].encode("utf-8", "surrogateescape")))
        return without_surrogates(value) if isinstance(value, str) else value

    def next_attribute(self, name):
        values = self.maps.get(self.map, {}).get(name)
        need(values, f"the skeleton needs an attribute {name!r}")
        return values.pop(0)

    def value(self, name, attributes):
        mark = self.r.take(1)
        if mark == b"&":
            self.map, outer, name = self.r.varint(), self.map, b""
            need(self.r.take(1) == b"{", "an object of pairs")
            members = self.members(b"")
            self.map = outer
            return members
        if mark == b"{":
            return self.members(name)
        if mark == b"[":
            elements = []
            while self.peek() != b"]":
                elements.append(self.value(name, attributes))
            self.r.take(1)
            return elements
        field = None
        if mark == b"@":
            field, mark = self.r.varint(), self.r.take(1)
        return self.scalar(mark, name, field)

    def members(self, name):
        members = {}
        while self.peek() != b"}":
            key = self.literal()
            path = key.encode("utf-8", "surrogatepass") if not name else name + b"." + key.encode()
            members[key] = self.value(path, True)
        self.r.take(1)
        return members

    def scalar(self, mark, name, field):
        digits = int(self.r.take(1)) if mark in (b"t", b"e") else None
        if mark == b"=":
            literal = self.literal()
            if field is None:
                self.next_attribute(name)
            elif field in self.items:
                next(self.items[field])
            return literal
        if field is None:
            value = self.next_attribute(name)
            if mark == b"n":
                need(value is None, "a null")
                return None
            if mark == b"$":
                return text(value)
            return {b"true": True, b"false": False}.get(value, text(value))
        kind, value = self.fields[field]
        if field in self.items:
            value = next(self.items[field])
            value = uuid_text(value) if kind == UUIDS else text(value)
        elif kind == TIME and mark == b"t":
            value = time_text(value, digits)
        elif kind == TIME and mark == b"e":
            value = str(value // 10 ** (9 - digits))
        else:
            value = text(value) if kind == BYTES else shown(kind, value)
        return {"true": True, "false": False}.get(value, value) if mark == b"#" else value


def fields_of(event, names):
    by_name = {names[field]: (field, kind, value) for field, kind, value in event.values}
    shape = by_name.get(b"_shape")
    if shape and shape[2][:1] == b"J":
        attributes = by_name.get(b"attributes")
        skeleton = Skeleton(shape[2][1:], event.values, attributes and attributes[0])
        document = skeleton.value(b"", True)
        need(not skeleton.r.more(), "a skeleton has bytes left")
        return document
    return {text(name): shown(kind, value) for name, (_, kind, value) in by_name.items()
            if name not in HIDDEN}


def same(decoded, parsed):
    """Whether both are the same; a float that was decoded equals any text of that number."""
    if isinstance(decoded, float):
        return isinstance(parsed, str) and repr(float(parsed)) == repr(decoded)
    if isinstance(decoded, dict):
        return (isinstance(parsed, dict) and list(decoded) == list(parsed)
                and all(same(decoded[key], parsed[key]) for key in decoded))
    if isinstance(decoded, list):
        return (isinstance(parsed, list) and len(decoded) == len(parsed)
                and all(map(same, decoded, parsed)))
    return decoded == parsed and isinstance(decoded, bool) == isinstance(parsed, bool)


def event_as_shown(event, manifest):
    return {"id": str(event.id), "time": time_text(event.time), "arrival": time_text(event.arrival),
            "stream": text(manifest.streams[event.stream].name),
            "fields": fields_of(event, manifest.fields)}
