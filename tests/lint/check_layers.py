#!/usr/bin/env python3
"""tools, bench -> public headers -> engine -> {index, io} -> io/base: who may include what."""
import re

import tree

# The first matching folder decides. What is not listed for a folder is refused.
ALLOWED = [
    ("engine/include/lahar/", ("lahar/",)),
    ("engine/", ("lahar/", "engine/", "index/", "io/")),
    ("index/", ("lahar/", "index/", "io/base/")),
    ("io/base/", ("lahar/", "io/base/")),
    ("io/", ("lahar/", "io/")),
    ("bench/kernels/", ("lahar/", "bench/", "engine/", "index/", "io/")),
    ("bench/", ("lahar/", "bench/")),
    ("tools/", ("lahar/", "tools/", "bench/")),
]
# Headers of libraries that only these files may know.
SINGLE_HOME = {
    "liburing.h": ("io/uring_backend.c",),
    "json-c/": ("tools/", "tests/"),
    "jemalloc/": ("tools/", "bench/"),
    "utf8proc.h": ("index/", "tests/"),
}
# Public headers stay readable by any C or C++ compiler with nothing installed.
PUBLIC_SYSTEM = {"stdbool.h", "stddef.h", "stdint.h"}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check(path, number, bracket, target):
    where = f"{path}:{number}: "
    for header, homes in SINGLE_HOME.items():
        if target.startswith(header) and not path.startswith(homes):
            return where + f"{target} may only be included by {', '.join(homes)}"
    if path.startswith("engine/include/lahar/"):
        if bracket == "<" and target not in PUBLIC_SYSTEM:
            return where + f"a public header includes <{target}>"
    if bracket == "<":
        return None
    for folder, targets in ALLOWED:
        if path.startswith(folder):
            if not target.startswith(targets):
                return where + f"{folder} may not include \"{target}\""
            return None
    return None


complaints = []
sources = tree.files(".c", ".h")
for source in sources:
    for line_number, line in tree.lines(source):
        match = INCLUDE.match(line)
        if match:
            complaint = check(source, line_number, match.group(1), match.group(2))
            if complaint:
                complaints.append(complaint)
tree.finish(complaints, len(sources), "files")
