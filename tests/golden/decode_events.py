"""Event files and tables of contents: docs/format/events.md and toc.md."""
import zlib

from basics import Bytes, Unsupported, checked, crc32c, need
from decode_row import BOOL, F64, I64, KEYWORD, KEYWORDS, MAP, TEXT, TIME, U64, UUID, UUIDS, BYTES
from decode_row import Event, number_of

BYTES_COLUMN, UUID_COLUMN, NUMBER_COLUMN = 1, 2, 3
MASK = (1 << 64) - 1
KINDS = {KEYWORD: (1,), TEXT: (1,), BYTES: (1,), UUID: (2,), I64: (3,), U64: (3,), F64: (3,),
         BOOL: (3,), TIME: (3,), UUIDS: (3, 2), KEYWORDS: (3, 1), MAP: (3,)}


def signed(bits):
    return bits - (1 << 64) if bits >> 63 else bits


def planes(data, count, width):
    """count numbers of width bytes, stored as one plane for each byte, the lowest first."""
    need(len(data) == count * width, "size of a section")
    return [sum(data[p * count + i] << (8 * p) for p in range(width)) for i in range(count)]


def number_run(data, count):
    r = Bytes(data)
    width, scale, base = r.uint(1), r.uint(1), r.zigzag()
    need(width <= 8 and scale <= 3, "a number run")
    unit = 1000 ** scale
    if width == 0:
        numbers = []
        for _ in range(count):
            base += r.zigzag() * unit
            numbers.append(base & MASK)
    else:
        numbers = [(base + v * unit) & MASK for v in planes(r.take(count * width), count, width)]
    need(not r.more(), "a number run has bytes left")
    return numbers


class Column:
    def __init__(self, r, image, encoding_max):
        self.kind, self.codes_encoding, self.entries_encoding = r.uint(1), r.uint(1), r.uint(1)
        self.slots, self.entry_count = r.varint(), r.varint()
        need(self.kind in (1, 2, 3) and self.codes_encoding <= 8 and self.entries_encoding <= encoding_max,
             "a column's kind or encoding")
        self.source = r.varint() if self.codes_encoding >= 5 else None
        self.codes_data = section(r, image)
        self.entries_data = section(r, image)
        raw = self.kind == BYTES_COLUMN and self.entries_encoding == 0
        self.text = section(r, image) if raw else b""
        self.has_templates = self.kind == BYTES_COLUMN and self.entries_encoding == 3
        self.variables = r.varint() if self.has_templates else 0
        need(self.entry_count or not self.has_templates, "templates without texts")
        self.entries = self.read_entries() if self.entry_count and not self.has_templates else []
        self.codes = None

    def read_entries(self):
        data, count = self.entries_data, self.entry_count
        if self.kind == UUID_COLUMN or (self.kind == BYTES_COLUMN and self.entries_encoding == 1):
            need(len(data) == 16 * count, "a section of uuids")
            uuids = [data[i * 16:i * 16 + 16] for i in range(count)]
            return uuids if self.kind == UUID_COLUMN else [uuid_text(u).encode() for u in uuids]
        if self.kind == NUMBER_COLUMN:
            return number_run(data, count)
        if self.entries_encoding == 2:
            return [str(n).encode() for n in number_run(data, count)]
        if self.entries_encoding == 4:
            need(data and 1 <= data[0] <= 18, "digits of numbers")
            texts = [b"%0*d" % (data[0], n) for n in number_run(data[1:], count)]
            need(all(len(text) == data[0] for text in texts), "digits of numbers")
            return texts
        if self.entries_encoding == 5:
            size = data[0] if data else 0
            need(size and len(data) == 1 + size * count, "hexadecimal digits")
            return [data[1 + i * size:1 + (i + 1) * size].hex().encode() for i in range(count)]
        r = Bytes(data)
        equal = r.uint(1)
        need(equal <= 1, "sizes of entries")
        sizes = [r.varint()] * count if equal else [r.varint() for _ in range(count)]
        need(not r.more() and sum(sizes) == len(self.text), "sizes of entries")
        text = Bytes(self.text)
        return [text.take(size) for size in sizes]

    def read_codes(self, columns, rows_of_slots, row_count):
        """Fills codes; rows_of_slots says in which row each slot is, None for items of lists."""
        count, encoding = self.slots, self.codes_encoding
        if encoding == 0:
            codes = [0] * count
        elif encoding == 1:
            codes = list(range(count))
        elif encoding <= 4:
            codes = planes(self.codes_data, count, 1 << (encoding - 2))
        else:
            codes = self.mapped(columns, rows_of_slots, row_count)
        need(all(code < self.entry_count for code in codes), "a code without entry")
        self.codes = codes

    def mapped(self, columns, rows_of_slots, row_count):
        need(self.source < len(columns) and rows_of_slots is not None, "a mapped column")
        source = columns[self.source]
        need(source.codes_encoding < 5 and source.slots == row_count, "a source of codes")
        if source.codes is None:
            source.read_codes(columns, None, row_count)
        if self.codes_encoding == 5:
            stored = iter(range(self.entry_count))
        else:
            width = 1 << (self.codes_encoding - 6)
            need(len(self.codes_data) % width == 0, "mapped codes")
            stored = iter(planes(self.codes_data, len(self.codes_data) // width, width))
        taken = {}
        for row in rows_of_slots:
            code = source.codes[row]
            if code not in taken:
                taken[code] = next(stored, None)
                need(taken[code] is not None, "mapped codes end early")
        need(next(stored, None) is None, "mapped codes are left over")
        return [taken[source.codes[row]] for row in rows_of_slots]

    def values(self):
        return [self.entries[code] for code in self.codes]

    def join(self, parts):
        """Fills entries from the columns of templates and variables."""
        for part in parts:
            need(part.kind == BYTES_COLUMN and not part.has_templates and part.codes_encoding < 5,
                 "a column of texts' parts")
            part.read_codes(parts, None, 0)
        templates, variables = parts[0], [iter(part.values()) for part in parts[1:]]
        need(templates.slots == self.entry_count, "slots of templates")
        section_bytes, gaps = Bytes(self.entries_data), []
        for template in templates.entries:
            gaps.append([section_bytes.varint() for _ in range(template.count(b"\x11"))])
            need(all(gap < len(variables) for gap in gaps[-1]), "a gap")
        need(not section_bytes.more(), "gaps are left over")
        for code in templates.codes:
            pieces = templates.entries[code].split(b"\x11")
            text = [pieces[0]]
            for gap, piece in zip(gaps[code], pieces[1:]):
                value = next(variables[gap], None)
                need(value, "the value of a gap")
                text += [value, piece]
            self.entries.append(b"".join(text))
        need(all(next(v, None) is None for v in variables), "values are left over")


def section(r, image):
    size = r.varint()
    if size == 0:
        return b""
    offset = r.varint()
    need(offset + size <= len(image), "a section beyond the image")
    return image[offset:offset + size]


def uuid_text(uuid):
    h = uuid.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


class Tree:
    """Shapes: paths[i] is the list of (element, is null, occurrence) from the root to node i."""

    def __init__(self, r, element_count, is_map):
        self.paths = [[]]
        for i in range(1, r.varint() + 1):
            distance, v = r.varint(), r.varint()
            occurrence = r.varint() if is_map else 0
            parent = i - 1 - distance
            need(parent >= 0 and v >> 1 < element_count, "a node of a shape")
            self.paths.append(self.paths[parent] + [(v >> 1, v & 1, occurrence)])

    def path(self, node):
        need(node < len(self.paths), "a shape")
        return self.paths[node]


class Field:
    def __init__(self, r, columns, at):
        self.id, self.type = r.varint(), r.uint(1)
        need(self.type in KINDS, "type of a field")
        kinds = list(KINDS[self.type])
        self.tree, self.keys, self.has_unnamed = None, [], 0
        if self.type == MAP:
            present = r.uint(1)
            need(present <= 1, "a map scope")
            if present:
                count, self.has_unnamed = r.varint(), r.uint(1)
                need(self.has_unnamed <= 1 and count >= self.has_unnamed, "elements of a map")
                self.keys = [r.sized() for _ in range(count - self.has_unnamed)]
                self.tree = Tree(r, count, True)
                kinds += [1, 1] * self.has_unnamed + [1] * len(self.keys)
        need(at + len(kinds) <= len(columns), "columns of a field")
        self.columns = columns[at:at + len(kinds)]
        need([c.kind for c in self.columns] == kinds, "kinds of a field's columns")

    def decode(self, columns, rows, row_count):
        """The values that are not null; rows are where they stand."""
        first = self.columns[0]
        need(first.slots == len(rows), "slots of a field")
        first.read_codes(columns, rows, row_count)
        if self.type == MAP:
            return self.decode_map(columns, rows, row_count)
        if self.type in (UUIDS, KEYWORDS):
            counts, second = first.values(), self.columns[1]
            need(second.slots == sum(counts), "items of lists")
            second.read_codes(columns, None, row_count)
            items = iter(second.values())
            return [[next(items) for _ in range(count)] for count in counts]
        if first.kind == NUMBER_COLUMN:
            return [number_of(self.type, bits) for bits in first.values()]
        return first.values()

    def decode_map(self, columns, rows, row_count):
        if self.tree is None:
            need(not rows, "a map without scope")
            return []
        shapes = [self.tree.path(node) for node in self.columns[0].values()]
        unnamed = self.has_unnamed
        slot_rows = [[] for _ in range(unnamed + len(self.keys))]
        for row, shape in zip(rows, shapes):
            seen = {}
            for element, null, occurrence in shape:
                counts = not null or (unnamed and element == 0)
                need(occurrence == seen.get(element, 0), "an occurrence")
                if counts:
                    slot_rows[element].append(row)
                    seen[element] = occurrence + 1
        per_element = []
        for element, element_rows in enumerate(slot_rows):
            own = (self.columns[1:3] if unnamed and element == 0
                   else [self.columns[1 + unnamed + element]])
            for column in own:
                need(column.slots == len(element_rows), "slots of a map's element")
                column.read_codes(columns, element_rows, row_count)
            per_element.append(iter(zip(*(column.values() for column in own))))
        return [self.pairs(shape, per_element) for shape in shapes]

    def pairs(self, shape, per_element):
        pairs = []
        for element, null, _ in shape:
            if self.has_unnamed and element == 0:
                key, value = next(per_element[0])
                pairs.append((key, None if null else value))
            else:
                key = self.keys[element - self.has_unnamed]
                pairs.append((key, None if null else next(per_element[element])[0]))
        return pairs


class Block:
    """The block that begins at `at` of data."""

    def __init__(self, data, at):
        r = Bytes(data, at)
        features = r.head(b"LHBK", 1, 128, known=1)
        self.at, self.size = at, r.uint(4)
        codec, cipher = r.uint(1), r.uint(1)
        if codec > 1 or cipher:
            raise Unsupported("codec or cipher of a block")
        r.uint(2), r.uint(4)
        self.rows, self.stream = r.uint(4), r.uint(4)
        self.ids = r.uint(8), r.uint(8)
        self.row_bytes = r.uint(8)
        self.times, self.arrivals = (r.sint(8), r.sint(8)), (r.sint(8), r.sint(8))
        groups, image_size, structure_size = r.uint(4), r.uint(4), r.uint(4)
        r.take(24)
        need(groups <= 65536 and self.rows >= 1 and at + self.size <= len(data), "a block's header")
        checksum = r.uint(4)
        table = r.take(16 * groups)
        need(crc32c(crc32c(0, data[at:at + 124]), table) == checksum, "a block's checksum")
        self.image = inflate(r, Bytes(table), groups)
        need(r.at == at + self.size and len(self.image) == image_size, "sizes of a block")
        need(structure_size <= image_size, "the structure's size")
        self.read_structure(Bytes(self.image[image_size - structure_size:]), 5 if features else 2)

    def read_structure(self, r, encoding_max):
        self.columns = [Column(r, self.image, encoding_max) for _ in range(r.varint())]
        need([c.kind for c in self.columns[:4]] == [3, 3, 3, 3], "the first four columns")
        self.fields, at = [], 4
        for _ in range(r.varint()):
            field = Field(r, self.columns, at)
            need(not self.fields or field.id > self.fields[-1].id, "order of fields")
            self.fields.append(field)
            at += len(field.columns)
        for column in self.columns[:at]:
            if column.has_templates:
                parts = self.columns[at:at + 1 + column.variables]
                need(len(parts) == 1 + column.variables, "columns of texts' parts")
                column.join(parts)
                at += len(parts)
        need(at == len(self.columns), "number of columns")
        self.tree = Tree(r, len(self.fields), False)
        need(not r.more(), "the structure has bytes left")

    def events(self):
        everyone = range(self.rows)
        for column in self.columns[:4]:
            need(column.slots == self.rows, "slots of the first columns")
            column.read_codes(self.columns, everyone, self.rows)
        ids, times, arrivals, shapes = (c.values() for c in self.columns[:4])
        shapes = [self.tree.path(node) for node in shapes]
        for shape in self.tree.paths:
            elements = [element for element, _, _ in shape]
            need(elements == sorted(set(elements)), "fields of a shape")
        values = []
        for number, field in enumerate(self.fields):
            rows = [r for r in everyone if (number, 0, 0) in shapes[r]]
            values.append(iter(field.decode(self.columns, rows, self.rows)))
        events = []
        for row in everyone:
            event = Event(self.stream, signed(times[row]), [])
            event.id, event.arrival = ids[row], signed(arrivals[row])
            for element, null, _ in shapes[row]:
                field = self.fields[element]
                event.values.append((field.id, field.type, None if null else next(values[element])))
            events.append(event)
        self.check(events)
        return events

    def check(self, events):
        ids, times, arrivals = ([getattr(e, name) for e in events] for name in ("id", "time", "arrival"))
        need(ids == sorted(set(ids)) and (ids[0], ids[-1]) == self.ids, "ids of a block")
        need((min(times), max(times)) == self.times, "times of a block")
        need((min(arrivals), max(arrivals)) == self.arrivals, "arrivals of a block")


def inflate(r, table, count):
    parts = []
    for _ in range(count):
        stored, size, codec, crc = (table.uint(4) for _ in range(4))
        data = r.take(stored)
        need(crc32c(0, data) == crc and size >= 1 and codec <= 1, "a group of a block")
        if codec:
            try:
                data = zlib.decompress(data, wbits=-15)
            except zlib.error as error:
                need(False, f"deflate: {error}")
        need(len(data) == size, "size of a group")
        parts.append(data)
    return b"".join(parts)


class EventFile:
    def __init__(self, data):
        need(len(data) >= 64 + 192, "size of an event file")
        header = Bytes(data)
        header.head(b"LHEV", 1, 64)
        checked(data[:64], "header of an event file")
        header.uint(4)
        number, stream = header.uint(8), header.uint(4)
        self.footer = data[-192:]
        r = Bytes(self.footer)
        r.head(b"LHEF", 1, 192)
        checked(self.footer, "footer of an event file")
        r.uint(4)
        self.first, self.last, self.number = r.uint(8), r.uint(8), r.uint(8)
        self.stream, self.block_count, self.event_count = r.uint(4), r.uint(4), r.uint(8)
        self.times, self.arrivals = (r.sint(8), r.sint(8)), (r.sint(8), r.sint(8))
        self.row_bytes, size, self.toc_size = r.uint(8), r.uint(8), r.uint(8)
        self.rollover, self.rollover_files = (r.uint(8), r.uint(8)), r.uint(4)
        need((number, stream) == (self.number, self.stream), "header and footer differ")
        need(size == len(data), "size in the footer")
        self.blocks, self.events, at = [], [], 64
        while at < len(data) - 192:
            block = Block(data[:-192], at)
            need(block.stream == stream, "stream of a block")
            self.blocks.append(block)
            self.events += block.events()
            at += block.size
        self.check()
        self.data = data

    def check(self):
        ids = [event.id for event in self.events]
        need(ids == sorted(set(ids)) and (ids[0], ids[-1]) == (self.first, self.last), "ids of a file")
        need(len(ids) == self.event_count and len(self.blocks) == self.block_count, "counts of a file")
        for name in ("times", "arrivals"):
            pairs = [getattr(block, name) for block in self.blocks]
            need((min(p[0] for p in pairs), max(p[1] for p in pairs)) == getattr(self, name), name)
        need(sum(block.row_bytes for block in self.blocks) == self.row_bytes, "bytes of rows")

    def check_toc(self, toc):
        need(len(toc) == self.toc_size == 196 + 72 * len(self.blocks), "size of the toc")
        need(toc[:4] == b"LHTC" and toc[4:188] == self.footer[4:188], "head of the toc")
        checked(toc[:192], "head of the toc")
        checked(toc, "toc")
        r, rows = Bytes(toc, 192), 0
        for block in self.blocks:
            need((r.uint(8), r.uint(8)) == block.ids and r.uint(8) == block.at
                 and r.uint(4) == block.size and r.uint(4) == block.rows and r.uint(4) == rows
                 and r.uint(4) == crc32c(0, self.data[block.at:block.at + block.size])
                 and (r.sint(8), r.sint(8)) == block.times
                 and (r.sint(8), r.sint(8)) == block.arrivals, "an entry of the toc")
            rows += block.rows
