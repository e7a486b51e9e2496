#!/usr/bin/env python3
"""Every source, test and man page is named by a build file of its folder or one above."""
import os
import re

import tree

# Read by a program that takes the whole folder.
TAKEN_AS_FOLDER = ("tests/package/", "tests/golden/", "bench/peers/")


def build_text(directory):
    text = ""
    while True:
        for name in ("CMakeLists.txt",):
            path = os.path.join(tree.ROOT, directory, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    text += file.read()
        if directory == "":
            return text
        directory = os.path.dirname(directory)


complaints = []
sources = tree.files(".c", ".sh", ".1")
for source in sources:
    if source.startswith(TAKEN_AS_FOLDER):
        continue
    words = re.sub(r"[()]", " ", build_text(os.path.dirname(source))).split()
    name = os.path.basename(source)
    # A loop may name files by their stems: foreach(name a b) ... ${name}.c
    stem, suffix = os.path.splitext(name)
    accepted = {name, stem} if any("}" + suffix in word for word in words) else {name}
    stripped = [word.strip('".;,') for word in words]
    if not any(word in accepted or word.endswith("/" + name) for word in stripped):
        complaints.append(f"{source}: no CMakeLists.txt names it")
includes = [(source, line) for source in tree.files(".c", ".h")
            for _, line in tree.lines(source) if "#include" in line]
for header in tree.files(".h"):
    if header.startswith(("engine/include/",) + TAKEN_AS_FOLDER):
        continue
    tail = os.path.basename(header)
    if not any(tail in line and source != header for source, line in includes):
        complaints.append(f"{header}: nothing includes it")
tree.finish(complaints, len(sources), "files")
