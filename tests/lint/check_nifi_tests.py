#!/usr/bin/env python3
"""Every test that docs/nifi.md names exists, and every row of its tables names one or says why none
can: a file and a sentence, `folder/file: sentence`."""
import os
import re

import tree

PAGE = "docs/nifi.md"
complaints, count, in_tables = [], 0, False
sources = {}


def source_of(name):
    for path in (f"tests/unit/{name}", f"tests/{name}"):
        if path not in sources and os.path.isfile(os.path.join(tree.ROOT, path)):
            sources[path] = "\n".join(line for _, line in tree.lines(path))
        if path in sources:
            return sources[path]
    return None


for number, line in tree.lines(PAGE):
    in_tables = line.startswith("## Known defects") or in_tables and not line.startswith("## ")
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    if not in_tables or len(cells) != 3 or cells[2] in ("test", "---"):
        continue
    named = re.findall(r"`([\w/]+\.\w+): (\w+)`", cells[2])
    if not named and not cells[1].startswith("cannot occur: "):
        complaints.append(f"{PAGE}:{number}: no test, and no reason")
    if re.sub(r"`[\w/]+\.\w+: \w+`", "", cells[2]).strip():
        complaints.append(f"{PAGE}:{number}: the last cell holds more than tests")
    for file, sentence in named:
        count += 1
        text = source_of(file)
        patterns = {".c": rf"\w*Test\(\w+, {sentence}[,)]|{{\"{sentence}\",",
                    ".sh": rf"^case_{sentence}\(\)", ".py": rf"def {sentence}\("}
        if text is None or not re.search(patterns[os.path.splitext(file)[1]], text, re.M):
            complaints.append(f"{PAGE}:{number}: there is no test {file}: {sentence}")
if count == 0:
    complaints.append(f"{PAGE}: names no tests")
tree.finish(complaints, count, "named tests")
