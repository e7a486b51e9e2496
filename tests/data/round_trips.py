#!/usr/bin/env python3
"""Real files into a store by the command line, and out again.

    round_trips.py LAHAR [DATA]

Every file under logs/ and nifi/ of DATA/public goes in as lines and has to come back byte for
byte. What is JSON or a table by its name goes in as such too: its values have to come back, number
text and order of keys included, and its bytes when they were kept. Everything is compared while
the events are in journals, and again after rollover. The reader of this file is Python's, so no code
is shared with what is tested. Where DATA is absent one skip is counted.
"""
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

JSON_SUFFIXES = {".json", ".jsonl"}
JSON_FOLDERS = {"zeek_json"}
# Fragments of JSON, made to be refused in part.
NOT_WHOLE = {"test_partial_json.log"}


def values_of_json(data):
    """All values in order; objects as lists of pairs, numbers as their text."""
    text = data.decode("utf-8")
    decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: ("object", pairs),
                               parse_int=lambda digits: ("number", digits),
                               parse_float=lambda digits: ("number", digits))
    values, at = [], 0
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            break
        value, at = decoder.raw_decode(text, at)
        # An array of objects is brackets around objects.
        values += value if isinstance(value, list) else [value]
    return values


def values_of_csv(data):
    return [row for row in csv.reader(io.StringIO(data.decode("utf-8"), newline="")) if row]


class Trip:
    """One file in one store, under each format that suits it."""

    def __init__(self, lahar, path, store):
        self.lahar, self.path, self.store = lahar, path, store
        self.data = path.read_bytes()

    def run(self, *arguments):
        done = subprocess.run([self.lahar, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, arguments))}: status {done.returncode}: "
                                 f"{done.stderr.decode('utf-8', 'replace').strip()}")
        return done.stdout

    def formats(self):
        found = [("line", ["--format", "LineAsString"], bytes)]
        name = self.path.name
        if name in NOT_WHOLE:
            return found
        if self.path.suffix in JSON_SUFFIXES or self.path.parent.name in JSON_FOLDERS:
            found += [("json", ["--format", "JSONEachRow"], values_of_json),
                      ("json_raw", ["--format", "JSONEachRow", "--keep-raw"], bytes)]
        elif self.path.suffix == ".csv":
            found += [("csv", ["--format", "CSVWithNames"], values_of_csv),
                      ("csv_raw", ["--format", "CSVWithNames", "--keep-raw"], bytes)]
        return found

    def check(self):
        """What differs, and how many comparisons were equal."""
        wrong, equal = [], 0
        taken = []
        for stream, options, values in self.formats():
            try:
                self.run("ingest", self.store, "--stream", stream, *options, self.path)
                taken.append((stream, values))
            except AssertionError as error:
                wrong.append(str(error))
        for state in ("in journals", "after rollover"):
            if state != "in journals" and taken:
                self.run("rollover", self.store)
            for stream, values in taken:
                out = self.run("export", self.store, "--stream", stream, "--format", "raw")
                if values(out) == values(self.data):
                    equal += 1
                else:
                    wrong.append(f"{stream}, {state}")
        return wrong, equal


def main():
    lahar = os.path.abspath(sys.argv[1])
    given = os.environ.get("LAHAR_TEST_DATA") or sys.argv[2]
    root = pathlib.Path(given) / "public"
    files = sorted(path for folder in ("logs", "nifi") for path in (root / folder).rglob("*")
                   if path.is_file() and path.stat().st_size != 0)
    if not files:
        print(f"no files in {root}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lahar-trips-") as scratch:
        for number, path in enumerate(files):
            wrong, equal = Trip(lahar, path, f"{scratch}/{number}").check()
            passed += equal
            failed += len(wrong)
            for what in wrong:
                print(f"FAIL {path.relative_to(root)}: {what}")
    print(f"{len(files)} files")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
