#!/usr/bin/env python3
"""Runs the models of docs/model with spin, and their mutations, each of which must be found.

  tests/model/check_models.py [--long]

Prints one line a run and "N passed, N failed, N skipped"; exits 77 without spin.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

MODELS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "model"

# (model, definitions, whether an error has to be found)
SHORT = [
    ("ring.pml", ["BATCHES=1", "WINDOW=1"], False),
    ("ring.pml", ["BATCHES=1", "WINDOW=1", "LOST_WAKE"], True),
    ("ring.pml", ["BATCHES=1", "WINDOW=1", "LATE_LINK"], True),
    ("ring.pml", ["BATCHES=1", "WINDOW=1", "NO_WINDOW"], True),
    ("owner.pml", ["BATCHES=1"], False),
    ("owner.pml", ["BATCHES=1", "NO_CALL"], True),
    ("owner.pml", ["BATCHES=1", "BLIND"], True),
    ("owner.pml", ["BATCHES=1", "NO_WANTED"], True),
    ("group.pml", ["BATCHES=1"], False),
    ("group.pml", ["BATCHES=1", "NO_DEPART"], True),
    ("group.pml", ["BATCHES=1", "LATE_END"], True),
]
LONG = [
    ("group.pml", ["BATCHES=1", "ALONE"], True),
    ("ring.pml", [], False),
    ("ring.pml", ["BATCHES=2", "WINDOW=1"], False),
    ("ring.pml", ["BATCHES=2", "WINDOW=1", "NO_ALARM"], True),
]


def has_error(model, definitions, directory):
    """None when the search did not come to its end."""
    command = ["spin"] + ["-D" + d for d in definitions]
    command += ["-search", "-O2", "-DSAFETY", "-m200000", str(MODELS / model)]
    output = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False).stdout
    if "max search depth too small" in output or "errors: " not in output:
        sys.stdout.write(output)
        return None
    return "errors: 0" not in output


def main():
    if shutil.which("spin") is None:
        print("0 passed, 0 failed, 1 skipped")
        return 77
    passed = failed = 0
    for model, definitions, expected in LONG if "--long" in sys.argv else SHORT:
        with tempfile.TemporaryDirectory() as directory:
            is_good = has_error(model, definitions, directory) == expected
        passed += is_good
        failed += not is_good
        print("%s %s: %s" % (model, " ".join(definitions), "ok" if is_good else "FAILED"))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
