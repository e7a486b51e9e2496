"""What all formats share: docs/format/README.md. The bytes' reader and CRC-32C come from the shard's decoder."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "index"))

from decode_shard import TABLE, Reader  # noqa: E402,F401


class Damaged(Exception):
    """Bytes that are not what the format says."""


class Unsupported(Exception):
    """A version or a feature that this decoder does not know."""


def need(condition, what):
    if not condition:
        raise Damaged(what)


def crc32c(crc, data):
    """CRC-32C of data, going on from crc."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


class Bytes(Reader):
    """A reader whose failures are Damaged."""

    def take(self, size):
        need(0 <= size <= len(self.data) - self.at, "beyond the end")
        return super().take(size)

    def varint(self):
        value = 0
        for i in range(10):
            byte = self.uint(1)
            value |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                need(value < 1 << 64, "a varint beyond 64 bits")
                return value
        raise Damaged("a varint of more than ten bytes")

    def sint(self, size):
        return int.from_bytes(self.take(size), "little", signed=True)

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def sized(self):
        return self.take(self.varint())

    def more(self):
        return self.at < len(self.data)

    def head(self, magic, version, size, known=0):
        """Magic, version, size and required features, which every structure begins with. Returns
        those features, of which known are known."""
        need(self.take(len(magic)) == magic, f"no {magic.decode('latin-1')}")
        found = self.uint(2)
        if found > version:
            raise Unsupported(f"{magic.decode('latin-1')} version {found}")
        need(found == version, f"{magic.decode('latin-1')} version {found}")
        need(self.uint(2) == size, f"{magic.decode('latin-1')}: size of the structure")
        return self.no_features(4, known)

    def no_features(self, size, known=0):
        features = self.uint(size)
        if features & ~known:
            raise Unsupported(f"required features {features:#x}")
        return features


def checked(data, what):
    """data without its last four bytes, which are its checksum."""
    need(len(data) >= 4 and crc32c(0, data[:-4]) == int.from_bytes(data[-4:], "little"),
         f"{what}: checksum")
    return data[:-4]
