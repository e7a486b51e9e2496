#!/usr/bin/env python3
"""Every test that some tables of docs/ name exists, and every row of them names one or says why none
can: a file and a sentence, `folder/file: sentence`."""
import os
import re

import tree

PAGES = {"docs/nifi.md": "## Known defects", "docs/durability.md": "## Errors"}
complaints, count = [], 0
sources = {}


def source_of(name):
    for path in (f"tests/unit/{name}", f"tests/{name}"):
        if path not in sources and os.path.isfile(os.path.join(tree.ROOT, path)):
            sources[path] = "\n".join(line for _, line in tree.lines(path))
        if path in sources:
            return sources[path]
    return None


def check_row(page, number, cells):
    """Checks the last of three cells; returns how many tests it names."""
    named = re.findall(r"`([\w/]+\.\w+): (\w+)`", cells[2])
    if not named and not cells[1].startswith("cannot occur: "):
        complaints.append(f"{page}:{number}: no test, and no reason")
    if re.sub(r"`[\w/]+\.\w+: \w+`", "", cells[2]).strip():
        complaints.append(f"{page}:{number}: the last cell holds more than tests")
    for file, sentence in named:
        text = source_of(file)
        patterns = {".c": rf"\w*Test\(\w+, {sentence}[,)]|{{\"{sentence}\",",
                    ".sh": rf"^case_{sentence}\(\)", ".py": rf"def {sentence}\("}
        if text is None or not re.search(patterns[os.path.splitext(file)[1]], text, re.M):
            complaints.append(f"{page}:{number}: there is no test {file}: {sentence}")
    return len(named)


for page, heading in PAGES.items():
    in_tables, named_count = False, 0
    for number, line in tree.lines(page):
        in_tables = line.startswith(heading) or in_tables and not line.startswith("## ")
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if in_tables and len(cells) == 3 and cells[2] not in ("test", "---"):
            named_count += check_row(page, number, cells)
    if named_count == 0:
        complaints.append(f"{page}: names no tests")
    count += named_count
tree.finish(complaints, count, "named tests")
