#!/usr/bin/env python3
"""Words that do not belong in the project: unfinished work, praise, and places on one machine."""
import re

import tree

# Written in two parts so that this file passes its own check.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
PRAISE = re.compile(r"\b(" + "|".join(("blazing" + "ly", "seam" + "less(ly)?", "cutting" + "-edge",
                                        "production" + "-ready", "battle" + "-tested", "world" + "-class"))
                    + r")\b", re.IGNORECASE)
PLACES = re.compile("(^|[^a-z])/(wo" + "rk|fa" + r"rm)/|deb\.deb" + r"ian\.org|registry\.np" + "mjs|/home/[a-z]")
TEXT = (".c", ".h", ".md", ".py", ".sh", ".txt", ".cmake", ".in", ".1", ".json", ".map", ".yml")

complaints = []
sources = [path for path in tree.files()
           if path.endswith(TEXT) or path in ("tests/run", "tools/quickstart", ".ci/run")]
for source in sources:
    if "/corpus/" in source or source.startswith("tests/data/"):
        continue
    for number, line in tree.lines(source):
        for name, words in (("unfinished", UNFINISHED), ("praise", PRAISE), ("place", PLACES)):
            match = words.search(line)
            if match:
                complaints.append(f"{source}:{number}: {name}: {match.group(0).strip()}")
tree.finish(complaints, len(sources), "files")
