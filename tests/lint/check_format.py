#!/usr/bin/env python3
"""clang-format would change nothing."""
import os
import shutil
import subprocess
import sys

import tree

if shutil.which("clang-format") is None:
    print("skipped: clang-format is not installed")
    sys.exit(77)
sources = tree.files(".c", ".h")
run = subprocess.run(["clang-format", "--dry-run", "-Werror", "--style=file"] + sources,
                     cwd=tree.ROOT, capture_output=True, text=True, check=False)
found = [line for line in run.stderr.split("\n") if ": error:" in line]
if run.returncode != 0 and not found:
    found = [run.stderr]
seen = sorted({os.path.normpath(line.split(":")[0]) for line in found})
tree.finish([f"{path}: run clang-format -i" for path in seen], len(sources), "files")
