#!/usr/bin/env python3
"""check_golden.py fresh|golden|errors LAHAR LAHAR_LOAD: the formats against a second reader.

fresh:  stores that LAHAR writes now are decoded from the pages of docs/format to the same events.
golden: stores of earlier builds are read by both, as they were then.
errors: damage and later versions are refused with the status that they should have.
"""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import damage
import decode_store
import make_golden
from basics import Damaged
from decode_fields import event_as_shown, same

HERE = os.path.dirname(os.path.abspath(__file__))
STORED = ("id", "time", "arrival", "stream", "fields")
GOLDEN = os.path.join(HERE, "v1")


class Checks:
    def __init__(self, lahar, load, scratch):
        self.lahar, self.load, self.scratch = lahar, load, scratch
        self.passed = self.failed = 0

    def check(self, name, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name}: {detail}")

    def run(self, *arguments):
        return subprocess.run([self.lahar, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=60)

    def scan(self, store):
        return self.run("scan", store, "--json").stdout

    def compare(self, name, store, scanned):
        """The events that the pages make of the store, and the lines of `lahar scan --json`."""
        try:
            manifest, events = decode_store.read_store(store)
            decoded = [event_as_shown(event, manifest) for event in events]
        except Damaged as error:
            self.check(name, False, error)
            return []
        shown = parse(scanned)
        pairs = [(d, s) for d, s in zip(decoded, shown) if not same(d, s)]
        self.check(name, len(decoded) == len(shown) and not pairs,
                   f"{len(decoded)} decoded, {len(shown)} shown, {pairs[:1]}")
        return events


def parse(output):
    """What is stored of each event: not what the program derives from it."""
    lines = [json.loads(line, parse_int=str, parse_float=str) for line in output.splitlines()]
    return [{key: line[key] for key in STORED} for line in lines]


def fresh(checks):
    store = os.path.join(checks.scratch, "store")
    make_golden.make_closed(checks.lahar, store)
    # Of the lines so many that they are split into templates and variables.
    for workload, stream, form, count in (("W1", "provenance", "JSONEachRow", "450"),
                                          ("W2", "log", "LineAsString", "2000")):
        data = make_golden.run(checks.load, "gen", "--workload", workload, "-n", count)
        make_golden.ingest(checks.lahar, store, stream, form, data)
    checks.compare("rows in the journals", store, checks.scan(store))
    make_golden.run(checks.lahar, "rollover", store)
    make_golden.ingest(checks.lahar, store, "log", "LineAsString", make_golden.LINES)
    events = checks.compare("event files and journals", store, checks.scan(store))
    # What went in, by neither reader's word.
    names = decode_store.read_manifest(store).fields
    messages = [value for event in events for field, _, value in event.values
                if names[field] == b"message" and event.stream == events[0].stream]
    lines = [line.rstrip(b"\r") for line in make_golden.LINES.split(b"\n")[:-1]]
    checks.check("lines as given", messages[:6] == lines and messages[-6:] == lines, messages[:6])
    make_golden.run(checks.lahar, "retain", store, "--max-bytes", "1")
    make_golden.run(checks.lahar, "rollover", store)
    checks.compare("after retention", store, checks.scan(store))
    killed = os.path.join(checks.scratch, "killed")
    make_golden.make_killed(checks.lahar, killed)
    time.sleep(0.1)
    checks.compare("a writer that was killed", killed, checks.scan(killed))
    empty = os.path.join(checks.scratch, "empty")
    make_golden.run(checks.lahar, "stream", "create", empty, "none")
    checks.compare("an empty store", empty, b"")


def golden(checks):
    for name in ("closed", "killed"):
        expected = open(os.path.join(GOLDEN, name + ".events.jsonl"), "rb").read()
        store = shutil.copytree(os.path.join(GOLDEN, name), os.path.join(checks.scratch, name))
        checks.compare(f"{name}: decoded", store, expected)
        checks.check(f"{name}: scanned", parse(checks.scan(store)) == parse(expected), "other events")
        verified = checks.run("verify", store, "--full")
        checks.check(f"{name}: verified", verified.returncode == 0, verified.stdout + verified.stderr)
        # A writer takes it over: adds, rolls over, and everything is still there.
        make_golden.ingest(checks.lahar, store, "log", "LineAsString", make_golden.LINES)
        make_golden.run(checks.lahar, "rollover", store)
        after = checks.scan(store)
        count = len(parse(expected))
        checks.check(f"{name}: added to", parse(after)[:count] == parse(expected)
                     and len(parse(after)) == count + 6, "other events")
        checks.compare(f"{name}: decoded when rolled over", store, after)


def decoder_status(store):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return decode_store.status_of(store)


def errors(checks):
    for number, (name, golden_store, change, *statuses, words) in enumerate(damage.CASES):
        store = os.path.join(checks.scratch, str(number))
        shutil.copytree(os.path.join(GOLDEN, golden_store), store)
        change(store)
        scan, verify = checks.run("scan", store, "--json"), checks.run("verify", store)
        found = [decoder_status(store), scan.returncode, verify.returncode]
        said = (scan.stderr + verify.stdout + verify.stderr).decode()
        checks.check(name, found == statuses and words.lower() in said.lower(),
                     f"statuses {found}, not {statuses}; {said!r}")
        # A query ends, and meets what the scan met.
        query = checks.run("query", store, "NOT nothing", "--json")
        checks.check(f"{name}: query", query.returncode == scan.returncode,
                     f"status {query.returncode}, not {scan.returncode}; {query.stderr[:300]!r}")


def main():
    with tempfile.TemporaryDirectory(prefix="lahar-golden-") as scratch:
        checks = Checks(os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), scratch)
        {"fresh": fresh, "golden": golden, "errors": errors}[sys.argv[1]](checks)
    print(f"{checks.passed} passed, {checks.failed} failed, 0 skipped")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
