#!/usr/bin/env python3
"""Decodes a whole index shard by docs/format/shard.md alone and prints what it holds.

One line a fact, sorted by whoever compares: ids and times of documents, and for every field
each term, uuid or value with its documents. Speed does not matter here.
"""
import sys

PAGE = 16384
M64 = (1 << 64) - 1


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def make_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = make_table()


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, size):
        assert self.at + size <= len(self.data), "beyond the end"
        self.at += size
        return self.data[self.at - size:self.at]

    def uint(self, size):
        return int.from_bytes(self.take(size), "little")

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.uint(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def packed(self, count, width):
        bits = int.from_bytes(self.take((count * width + 7) // 8), "little")
        mask = (1 << width) - 1
        return [(bits >> (i * width)) & mask for i in range(count)]


def gaps_to_documents(first, gaps):
    documents = [first]
    for gap in gaps:
        documents.append(documents[-1] + gap + 1)
    return documents


def set_bits(data, first=0):
    return [first + i * 8 + b for i, byte in enumerate(data) for b in range(8) if byte >> b & 1]


class Shard:
    def __init__(self, data):
        self.data = data
        trailer = data[-64:]
        assert crc32c(trailer[:60]) == int.from_bytes(trailer[60:], "little"), "trailer"
        r = Reader(trailer)
        assert r.take(8) == b"LAHARIDX" and r.uint(2) == 1 and r.uint(2) == 1 and r.uint(4) == 0
        offset, size, whole, self.count, checksum = (r.uint(n) for n in (8, 8, 8, 4, 4))
        assert whole == len(data) == offset + size + 64
        directory = data[offset:offset + size]
        assert crc32c(directory) == checksum, "directory"
        self.body = data[:offset]
        assert self.body[:16] == trailer[:16]
        assert r.uint(4) == 0, "encrypted"
        near, far = r.uint(4), r.uint(4)
        self.read_directory(Reader(directory))
        self.check_filter(near, far)

    def check_filter(self, near, far):
        uuids = {key for kind, _, _, content in self.fields if kind == 3 for key, *_ in content}
        assert (near != 0) == (len(uuids) >= 16) and (near != 0 or far == 0)
        end = len(self.body)
        for layer, blocks, probes in ((0, near >> 3, near & 7), (1, far >> 3, far & 7)):
            assert (1 <= probes <= 7 and len(self.body) % 64 == 0) if blocks else probes == 0
            begin = end - blocks * 64
            if blocks:
                bits = [self.filter_bits(key, layer, blocks, probes) for key in uuids]
                assert set_bits(self.body[begin:end]) == sorted(set().union(*bits))
            end = begin

    @staticmethod
    def filter_bits(key, layer, blocks, probes):
        def mix(v):
            v = (v ^ v >> 32) * 0xBF58476D1CE4E5B9 & M64
            v = (v ^ v >> 29) * 0x94D049BB133111EB & M64
            return v ^ v >> 32
        low, high = (int.from_bytes(key[i:i + 8], "little") for i in (0, 8))
        h = mix(low * 0x9E3779B97F4A7C15 + high & M64)
        if layer == 1:
            h = mix(h + 0x9E3779B97F4A7C15 & M64)
        block, p = (h >> 32) * blocks >> 32, (h * 0xBF58476D1CE4E5B9 & M64) >> 1
        return {block * 512 + (p >> 9 * i & 511) for i in range(probes)}

    def read_directory(self, r):
        self.first_id, self.last_id = r.uint(8), r.uint(8)
        self.bounds = [r.uint(8) for _ in range(6)]
        self.ids = self.read_ids(r)
        self.groups = self.read_groups(r.varint(), r.varint())
        self.times = self.read_column(r)
        self.fields = [self.read_field(r) for _ in range(r.varint())]
        for page in range((len(self.body) + PAGE - 1) // PAGE):
            content = page.to_bytes(8, "little") + self.body[page * PAGE:(page + 1) * PAGE]
            assert crc32c(content) == r.uint(4), f"page {page}"
        assert r.at == len(r.data)

    def read_ids(self, r):
        if r.uint(1) == 0:
            runs = [(r.uint(4), r.uint(8)) for _ in range(r.varint())] + [(self.count, 0)]
            return [first + i for (begin, first), (end, _) in zip(runs, runs[1:])
                    for i in range(end - begin)]
        size = r.varint()
        entries = [(r.uint(4), r.uint(8)) for _ in range((self.count + 127) // 128)]
        gaps, ids = r.take(size), []
        for block, (offset, first) in enumerate(entries):
            g = Reader(gaps, offset)
            width, base = g.uint(1), g.varint()
            gaps_above = g.packed(min(128, self.count - block * 128) - 1, width)
            ids += gaps_to_documents(first, [base + gap for gap in gaps_above])
        return ids

    def read_groups(self, count, directory):
        groups = []
        for first in range(0, count, 64):
            begin = Reader(self.body, directory + first // 64 * 8)
            r = Reader(self.body, begin.uint(8))
            base, size_width, width = r.uint(4), r.uint(1), r.uint(1)
            sizes = [s + 1 for s in r.packed(min(64, count - first), size_width)]
            documents = iter(r.packed(sum(sizes), width))
            groups += [[base + next(documents) for _ in range(size)] for size in sizes]
            assert r.at == begin.uint(8)
        if groups:
            assert sorted(d for group in groups for d in group) == list(range(self.count))
            assert groups == sorted(groups)
        return groups

    def read_field(self, r):
        kind = r.uint(1)
        name = r.take(r.varint())
        presence = self.documents(r.varint())
        if kind in (1, 2):
            content = self.read_dictionary(*(r.varint() for _ in range(4)))
        elif kind == 3:
            content = self.read_uuids(*(r.varint() for _ in range(4)), *(r.uint(1) for _ in range(3)))
        else:
            content = self.read_column(r)
        return kind, name, presence, content

    def documents(self, reference):
        if reference & 1 == 0:
            return [reference >> 1]
        if reference & 3 == 1:
            return self.read_list(Reader(self.body, reference >> 2))
        assert reference in (3, 7)
        return list(range(self.count)) if reference == 3 else []

    def documents_of(self, groups):
        return sorted(d for group in groups for d in self.groups[group])

    def read_list(self, r, universe=None):
        universe = self.count if universe is None else universe
        head = r.varint()
        count, kind = head >> 3, head & 7
        if kind == 0:
            first, width = r.varint(), r.uint(1)
            documents = gaps_to_documents(first, r.packed(count - 1, width))
        elif kind == 1:
            documents = self.read_blocks(r, count)
        elif kind == 2:
            documents = set_bits(r.take((universe + 7) // 8))
        elif kind == 4:
            documents = self.documents_of([r.varint()])
        elif kind == 5:
            documents = self.documents_of(self.read_list(r, len(self.groups)))
        else:
            assert kind == 3
            missing = set(self.read_list(r))
            documents = [d for d in range(self.count) if d not in missing]
        assert len(documents) == count
        return documents

    def read_blocks(self, r, count):
        end = r.uint(4) + r.at
        blocks = (count + 127) // 128
        skips = [r.uint(8) for _ in range(blocks)]
        data, documents = r.at, []
        for i, skip in enumerate(skips):
            first, width, offset = skip & (1 << 28) - 1, skip >> 28 & 63, skip >> 34
            after = data + (skips[i + 1] >> 34) if i + 1 < blocks else end
            block = Reader(self.body[:after], data + offset)
            if width == 63:
                documents += set_bits(block.take(after - block.at), first)
            else:
                n = min(128, count - i * 128)
                documents += gaps_to_documents(first, block.packed(n - 1, width))
        return documents

    def read_column(self, r):
        zones, extras, v = r.varint(), r.varint(), r.varint()
        extra_count, is_grouped = v >> 1, v & 1
        z, pairs = Reader(self.body, zones), []
        for first in range(0, len(self.groups) if is_grouped else self.count, 1024):
            low, high, place = z.uint(8), z.uint(8), z.uint(8)
            if place == 0:
                continue
            b = Reader(self.body[:(place >> 16) + (place & 0xFFFF)], place >> 16)
            kind, width, n, divisor = b.uint(1), b.uint(1), b.uint(2), b.varint()
            where = range(n)
            if kind == 1:
                where = set_bits(b.take(128))
            elif kind == 2:
                where = [b.uint(2) for _ in range(n)]
            values = [low + q * divisor for q in b.packed(n, width)]
            assert min(values) == low and max(values) == high and len(where) == n
            pairs += [(first + d, v) for d, v in zip(where, values)]
        if is_grouped:
            assert extra_count == 0
            return sorted((d, v) for group, v in pairs for d in self.groups[group])
        e = Reader(self.body, extras)
        return sorted(pairs + [(e.uint(4), e.uint(8)) for _ in range(extra_count)])

    def read_uuids(self, count, uuids, directory, references, b, s, w):
        keys = [self.body[uuids + i * 16:uuids + i * 16 + 16] for i in range(count)]
        assert keys == sorted(set(keys))
        d = Reader(self.body, directory)
        for i in range((1 << b) + 1):
            below = sum(1 for k in keys
                        if (int.from_bytes(k, "big") << s & (1 << 128) - 1) >> (128 - b) < i)
            assert d.uint(4) == below
        packed = Reader(self.body, references).packed(count, w)
        return [(k, k, 0, self.documents(ref)) for k, ref in zip(keys, packed)]

    def read_dictionary(self, term_count, top, end, common):
        terms, blocks = [], (term_count + 63) // 64
        t = Reader(self.body, top)
        tops = [(t.uint(8), t.uint(8)) for _ in range(blocks)] + [(0, end)]
        for i in range(blocks):
            r = Reader(self.body[:tops[i + 1][1]], tops[i][1])
            folded, shared = b"", 0
            for k in range(min(64, term_count - i * 64)):
                folded, shared, term = self.read_term(r, folded, shared)
                prefix = folded[common:common + 8].ljust(8, b"\0")
                assert k > 0 or tops[i][0] == int.from_bytes(prefix, "big")
                assert not terms or folded[:common] == terms[0][0][:common]
                terms.append(term)
            assert r.at == len(r.data)
        assert [t[:3] for t in terms] == sorted(t[:3] for t in terms)
        return terms

    def read_term(self, r, folded, shared):
        header = r.uint(1)
        step, code = header >> 5, header & 31
        shared = r.uint(1) if step == 7 else shared + step - 3
        size, is_hex = (code, False) if code < 16 else (code - 15, True)
        if code == 31:
            v = r.varint()
            size, is_hex = v >> 1, v & 1
        if is_hex:
            pairs = r.take((size + 1) // 2)
            suffix = "".join(f"{p & 15:x}{p >> 4:x}" for p in pairs)[:size].encode()
        else:
            suffix = r.take(size)
        folded = folded[:shared] + suffix
        exact, flags, reference = folded, 0, r.varint()
        if reference & 3 == 3 and reference >> 2 >= 3:
            flags = (reference >> 2) - 2
            if flags & 4:
                bits = set(set_bits(r.take((len(folded) + 7) // 8)))
                exact = bytes(c & ~0x20 if i in bits else c for i, c in enumerate(folded))
            elif flags & 8:
                exact = r.take(r.uint(1))
            reference = r.varint()
        return folded, shared, (folded, exact, flags & 3, self.documents(reference))


def main():
    shard = Shard(open(sys.argv[1], "rb").read())
    out = []
    for document, number in enumerate(shard.ids):
        out.append(f"id {document} {number}")
    for document, value in shard.times:
        out.append(f"time {document} {value}")
    for kind, name, presence, content in shard.fields:
        name = name.decode()
        out.append(f"present {name} {kind} {' '.join(map(str, presence))}")
        if kind == 4:
            out += [f"number {name} {document} {value}" for document, value in content]
        else:
            out += [f"term {name} {kind} {exact.hex()} {cut} {' '.join(map(str, documents))}"
                    for _, exact, cut, documents in content]
    print("\n".join(sorted(out)))


if __name__ == "__main__":
    main()
