#!/usr/bin/env python3
"""NiFi's own event files through lahar import.

    nifi_import.py LAHAR [DATA]

The repository under DATA/public/nifi/prov-repo has to give the events that its decoded copy lists; the
damaged files of DATA/odd/prov what its INDEX.tsv says. The rest is made of that repository: compressed as
NiFi does it, in members; compressed only in part; torn at any place. One skip is counted where DATA is absent.
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HEAD_SIZE = 11654  # of 0.prov, as its line in INDEX.tsv says
EVENTS = 30


class Test:
    def __init__(self, lahar, data, scratch):
        self.lahar, self.scratch = lahar, scratch
        self.repository = data / "public/nifi/prov-repo"
        self.odd = data / "odd/prov"
        self.whole = (self.repository / "0.prov").read_bytes()
        self.passed = self.failed = self.stores = 0

    def expect(self, condition, what):
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print(f"FAIL {what}")

    def run(self, *arguments):
        return subprocess.run([self.lahar, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)

    def take(self, *paths):
        """Status, summary, messages and events of an import into a new store."""
        self.stores += 1
        store = f"{self.scratch}/store-{self.stores}"
        done = self.run("import", "nifi", store, "--json", *paths)
        summary = json.loads(done.stdout) if done.stdout else None
        out = self.run("scan", store, "--json").stdout if os.path.isdir(store) else b""
        events = [json.loads(line) for line in out.splitlines()]
        return done.returncode, summary, done.stderr.decode(), events, store

    def directory(self, **files):
        path = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        for name, content in files.items():
            (path / name.replace("_", ".")[1:]).write_bytes(content)
        return path

    # --- the whole repository --------------------------------------------------------------------

    def check_repository(self):
        status, summary, messages, events, store = self.take(self.repository)
        self.expect(status == 0 and messages == "", f"status {status}: {messages}")
        self.expect(summary == {"events": EVENTS, "files": 1, "errors": 0, "first_id": 1,
                                "last_id": EVENTS}, f"{summary}")
        decoded = [json.loads(line) for line in
                   (self.repository / "0.prov.decoded.jsonl").read_text().splitlines()]
        self.expect(len(events) == len(decoded), "as many events")
        for event, wanted in zip(events, decoded):
            self.check_event(event, wanted)
        uuid = decoded[0]["updatedAttributes"]["uuid"]
        graph = json.loads(self.run("lineage", store, uuid, "--json").stdout)
        types = [node["type"] for node in graph["nodes"] if "ev" in node]
        self.expect(types == ["CREATE", "ATTRIBUTES_MODIFIED", "DROP"], f"lineage: {types}")

    def check_event(self, event, wanted):
        fields, what = event["fields"], f"event {wanted['eventId']}"
        attributes = {**wanted["previousAttributes"], **wanted["updatedAttributes"]}
        claims = {"claim": wanted["contentClaim"], "prev_claim": wanted["previousContentClaim"]}
        # The copy names the member of the union: "Unchanged" is the previous claim.
        explicit = claims["claim"].get("Explicit Value") if isinstance(claims["claim"], dict) else None
        if isinstance(claims["claim"], dict) and "Unchanged" in claims["claim"]:
            explicit = claims["prev_claim"]
        claims["claim"] = explicit
        for name, claim in claims.items():
            for key, part in (("container", "Container"), ("section", "Section"), ("id", "Identifier"),
                              ("offset", "Offset"), ("size", "Size")):
                expected = claim[f"Content Claim {part}"] if claim else None
                self.expect(fields.get(f"{name}.{key}") == expected, f"{what}: {name}.{key}")
        simple = {"type": wanted["eventType"], "component": wanted["componentId"],
                  "component_type": wanted["componentType"], "details": wanted["details"],
                  "transit_uri": wanted["transitUri"], "relationship": wanted["relationship"],
                  "source_system": wanted["sourceSystemFlowFileIdentifier"],
                  "alternate_id": wanted["alternateIdentifier"], "uuid": attributes["uuid"],
                  "size": explicit["Content Claim Size"] if explicit else 0}
        for name, value in simple.items():
            self.expect(fields.get(name) == value, f"{what}: {name} is {fields.get(name)}")
        self.expect(fields.get("attributes", {}) == wanted["updatedAttributes"], f"{what}: updated")
        self.expect(fields.get("previous_attributes", {}) == wanted["previousAttributes"],
                    f"{what}: previous")
        duration = wanted["durationMillis"]
        self.expect(fields.get("duration") == (duration * 10**6 if duration >= 0 else None),
                    f"{what}: duration")
        for name, ms in (("time", wanted["eventTimeMillis"]), ("entry_time", wanted["entryDateMillis"]),
                         ("lineage_start", wanted["lineageStartMillis"])):
            text = event["time"] if name == "time" else fields[name]
            self.expect(text[-10:-1] == f"{ms % 1000:03}000000", f"{what}: {name} {text}")

    # --- damage ------------------------------------------------------------------------------------

    def check_odd(self):
        whole = [event["fields"] for event in self.take(self.repository)[3]]
        for name, status, kept, message in (
                ("nifi_truncated_mid_record.prov", 1, list(range(27)), "cut off"),
                ("nifi_truncated_header.prov", 1, [], "head of the file"),
                ("nifi_bitflip.prov", 1, [i for i in range(EVENTS) if i != 2], "event 2: "),
                ("nifi_empty.prov", 0, [], "")):
            found = self.take(self.odd / name)
            self.expect(found[0] == status, f"{name}: status {found[0]}")
            self.expect([event["fields"] for event in found[3]] == [whole[i] for i in kept],
                        f"{name}: {len(found[3])} events")
            self.expect(found[1]["errors"] == status and message in found[2] and
                        found[2].count("\n") == status, f"{name}: {found[1]} {found[2]}")

    def check_torn(self):
        """Wherever the file ends, the records before it are taken."""
        ends = [HEAD_SIZE]
        while ends[-1] < len(self.whole):
            ends.append(ends[-1] + 8 + int.from_bytes(self.whole[ends[-1] + 4:ends[-1] + 8], "big"))
        self.expect(len(ends) == EVENTS + 1 and ends[-1] == len(self.whole), "records fill the file")
        for size in (1, 5, 40, 3000, HEAD_SIZE - 1, ends[0], ends[0] + 1, ends[0] + 9, ends[1],
                     ends[7] - 1, ends[7], ends[29], len(self.whole) - 1):
            status, summary, _, events, _ = self.take(self.directory(_0_prov=self.whole[:size]))
            is_even = size in ends
            self.expect(len(events) == sum(end <= size for end in ends[1:]), f"cut at {size}")
            self.expect(status == (not is_even) and summary["errors"] == (not is_even),
                        f"cut at {size}: {summary}")

    # --- forms of a repository -----------------------------------------------------------------------

    def check_compressed(self):
        members = b"".join(gzip.compress(self.whole[at:at + 5000], 1)
                           for at in range(0, len(self.whole), 5000))
        whole = [event["fields"] for event in self.take(self.repository)[3]]
        status, summary, messages, events, _ = self.take(self.directory(_0_prov_gz=members))
        self.expect(status == 0 and summary["errors"] == 0 and
                    [event["fields"] for event in events] == whole, f"compressed: {messages}")
        # NiFi was stopped while it compressed: the uncompressed file is whole.
        half = members[:len(members) // 2]
        status, summary, messages, events, _ = self.take(
            self.directory(_0_prov_gz=half, _0_prov=self.whole))
        self.expect(status == 0 and len(events) == EVENTS and summary["files"] == 1,
                    f"half compressed: {messages}")
        status, summary, _, events, _ = self.take(self.directory(_0_prov_gz=half))
        self.expect(status == 1 and summary["errors"] == 1 and 0 <= len(events) < EVENTS and
                    [event["fields"] for event in events] == whole[:len(events)], "half of it")
        # Cut between two members: no record is torn, and still something is missing.
        first = gzip.compress(self.whole[:HEAD_SIZE], 1)
        status, summary, _, events, _ = self.take(self.directory(
            _0_prov_gz=first + gzip.compress(self.whole[HEAD_SIZE:], 1)[:12]))
        self.expect(status == 1 and summary["errors"] == 1 and not events, "a member cut off")

    def check_directory(self):
        """Files in order of their numbers; others are no event files."""
        path = self.directory(_9_prov=self.whole, _10_prov=self.whole, _0_prov=self.whole[:HEAD_SIZE],
                              _x_prov=b"x", _1_toc=b"x", _7_prov_tmp=b"x")
        status, summary, messages, events, _ = self.take(path)
        self.expect(status == 0 and summary["files"] == 3 and len(events) == 2 * EVENTS,
                    f"three files: {summary} {messages}")
        status, summary, messages, events, _ = self.take(self.directory(
            _0_prov=b"\0\7Another" + self.whole, _1_prov=self.whole))
        self.expect(status == 1 and len(events) == EVENTS and "not an event file" in messages,
                    f"another kind: {messages}")
        shutil.rmtree(path)
        self.expect(self.take(path)[0] == 3, "no directory")
        self.expect(self.take(self.directory())[0] == 1, "an empty directory")
        self.expect(self.run("import", "nifi", f"{self.scratch}/none").returncode == 2, "usage")
        self.expect(self.run("import", "other", f"{self.scratch}/none", path).returncode == 2, "usage")
        done = self.run("import", "nifi", "--no-create", f"{self.scratch}/none", self.repository)
        self.expect(done.returncode == 3 and not os.path.exists(f"{self.scratch}/none"), "no store")


def main():
    given = os.environ.get("LAHAR_TEST_DATA") or sys.argv[2]
    data = pathlib.Path(given)
    if not (data / "public/nifi/prov-repo").is_dir() or not (data / "odd/prov").is_dir():
        print(f"no files in {data}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix="lahar-import-") as scratch:
        test = Test(os.path.abspath(sys.argv[1]), data, scratch)
        for check in (test.check_repository, test.check_odd, test.check_torn, test.check_compressed,
                      test.check_directory):
            check()
    print(f"{test.passed} passed, {test.failed} failed, 0 skipped")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
