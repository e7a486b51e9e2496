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


def follow_suites():
    """The tests of following, as `suite/test`, and the suites."""
    found = set()
    for name in sorted(os.listdir(os.path.join(tree.ROOT, "tests/unit/follow"))):
        if name.endswith(".c"):
            text = "\n".join(line for _, line in tree.lines(f"tests/unit/follow/{name}"))
            for suite, test in re.findall(r"Test\((\w+), (\w+)[,)]", text):
                found |= {suite, f"{suite}/{test}"}
    return found


def check_scenarios(page, last):
    """Each scenario has a row of its own or shares one; what a row names exists, written whole."""
    known, rows, named_count = follow_suites(), {}, 0
    for number, line in tree.lines(page):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 2 or not cells[0].startswith("S-"):
            continue
        for scenario in re.findall(r"S-(\d+)", cells[0]):
            rows.setdefault(int(scenario), []).append(number)
        names = re.findall(r"`([^`]+)`", cells[1])
        script = None
        for name in names:
            if name.startswith("tests/"):
                script = source_of(name[len("tests/"):])
                if script is None:
                    complaints.append(f"{page}:{number}: there is no file {name}")
            elif "/" not in name and name not in known and not cells[1].startswith("cannot"):
                if script is None or not re.search(rf"^case_{name}\(\)", script, re.M):
                    complaints.append(f"{page}:{number}: there is no case {name}")
            elif "/" in name and name not in known:
                complaints.append(f"{page}:{number}: there is no test {name}")
        if not names and not cells[1].startswith("cannot occur: "):
            complaints.append(f"{page}:{number}: no test, and no reason")
        named_count += len(names)
    for scenario in range(1, last + 1):
        if len(rows.get(scenario, [])) != 1:
            complaints.append(f"{page}: S-{scenario:02} has {len(rows.get(scenario, []))} rows")
    return named_count


count += check_scenarios("docs/filelog.md", 93)
tree.finish(complaints, count, "named tests")
