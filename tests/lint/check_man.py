#!/usr/bin/env python3
"""Man pages format without a warning, and have the sections that a reader expects."""
import os
import shutil
import subprocess
import sys

import tree

SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION")

if shutil.which("groff") is None:
    print("skipped: groff is not installed")
    sys.exit(77)
complaints = []
pages = tree.files(".1", ".3", ".7")
for page in pages:
    run = subprocess.run(["groff", "-man", "-ww", "-b", "-z", "-Tutf8", "-K", "utf8", page],
                         cwd=tree.ROOT, capture_output=True, text=True, check=False)
    if run.returncode != 0 or run.stderr.strip():
        complaints.append(f"{page}: {run.stderr.strip()}")
    text = open(os.path.join(tree.ROOT, page), encoding="utf-8").read()
    for section in SECTIONS:
        if f".SH {section}\n" not in text and not text.startswith(".so "):
            complaints.append(f"{page}: no section {section}")
    for number, line in tree.lines(page):
        if not line.isascii():
            complaints.append(f"{page}:{number}: not ASCII; use groff escapes")
tree.finish(complaints, len(pages), "man pages")
