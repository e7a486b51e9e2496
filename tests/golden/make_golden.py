#!/usr/bin/env python3
"""make_golden.py LAHAR DIRECTORY: writes the golden stores again, each with the events that it holds.

    python3 tests/golden/make_golden.py build/release/tools/lahar tests/golden/v1

A golden store stays as it is once a release has written its format: every later version has to read
it. Before 1.0 a format may still change without a new number; then, and only then, they are made again.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

LINES = b"""2024-05-17T09:30:00.125Z INFO pump 7 started, pressure 1.25 bar
2024-05-17T09:30:00.250Z INFO pump 8 started, pressure 1.31 bar
2024-05-17T09:30:01.000Z WARN valve 3 is slow: 412 ms\r

\x1b[31mERROR\x1b[0m sensor \xff\xfe gave bytes that are not UTF-8
caf\xc3\xa9 and cafe\xcc\x81 stay different
"""
RECORDS = b"""{"at":"2024-05-17T09:31:00.5Z","run":"9b2f8c1e-0001-4a5b-8c7d-00000000000a","n":-7,"ok":true,"tags":["a","b"],"note":"first"}
{"at":"2024-05-17T09:31:01Z","run":"9b2f8c1e-0001-4a5b-8c7d-00000000000b","n":9007199254740993,"ok":false,"tags":[],"extra":{"k":null,"list":[1.50,"x"]}}
{"at":"2024-05-17T09:31:02Z","run":null,"ratio":0.1,"parts":{"x":"1","y":null},"note":""}
"""
FLOW = b"""{"type":"CREATE","time":"2024-05-17T09:32:00Z","uuid":"9b2f8c1e-0002-4a5b-8c7d-000000000001","component":"maker","size":120,"attributes":{"filename":"a.txt"}}
{"type":"FORK","time":"2024-05-17T09:32:01Z","uuid":"9b2f8c1e-0002-4a5b-8c7d-000000000001","component":"splitter","children":["9b2f8c1e-0002-4a5b-8c7d-000000000002","9b2f8c1e-0002-4a5b-8c7d-000000000003"]}
{"type":"DROP","time":"2024-05-17T09:32:02Z","uuid":"9b2f8c1e-0002-4a5b-8c7d-000000000002","details":"done","attributes":{"filename":"a.txt","part":"1"}}
"""
FIELDS = ("run uuid", "n i64", "ratio f64", "ok bool", "tags list<keyword>", "parts map", "at time")


def run(*command, data=None):
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def ingest(lahar, store, stream, form, data):
    times = ["--time-field", {"runs": "at", "provenance": "time"}.get(stream, "time")]
    run(lahar, "ingest", store, "--stream", stream, "--format", form, *times, "-", data=data)


def make_closed(lahar, store):
    """Event files of three streams, journals with more, closed in order."""
    fields = [word for field in FIELDS for word in ("--field", field)]
    run(lahar, "stream", "create", store, "runs", *fields)
    ingest(lahar, store, "log", "LineAsString", LINES)
    ingest(lahar, store, "runs", "JSONEachRow", RECORDS)
    ingest(lahar, store, "provenance", "JSONEachRow", FLOW)
    run(lahar, "rollover", store)
    ingest(lahar, store, "log", "LineAsString", LINES)
    ingest(lahar, store, "provenance", "JSONEachRow", FLOW)


def make_killed(lahar, store):
    """A writer that was killed: its session is open, what it wrote is in the journals."""
    process = subprocess.Popen([lahar, "ingest", store, "--durability", "commit", "-"],
                               stdin=subprocess.PIPE)
    process.stdin.write(LINES)
    process.stdin.flush()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        time.sleep(0.2)
        shown = subprocess.run([lahar, "scan", store, "--json"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=False).stdout
        if shown:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()


def trim_journals(store):
    """Cuts the zeros off the journals: a file may end within a region."""
    directory = os.path.join(store, "journal")
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with open(path, "rb") as file:
            size = len(file.read().rstrip(b"\0"))
        os.truncate(path, max(4096, (size + 4095) // 4096 * 4096))


def main():
    lahar, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    for name, make in (("closed", make_closed), ("killed", make_killed)):
        store = os.path.join(directory, name)
        make(lahar, store)
        trim_journals(store)
        # Asked of a copy: whoever opens the store may change it.
        shutil.copytree(store, store + ".copy")
        with open(store + ".events.jsonl", "wb") as file:
            file.write(run(lahar, "scan", store + ".copy", "--json"))
        shutil.rmtree(store + ".copy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
