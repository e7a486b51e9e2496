#!/usr/bin/env python3
"""Calls that a library inside somebody's process must not make, and ones that hide errors."""
import re

import tree

# A good guest prints nothing, ends nothing, and depends on no global state.
IN_LIBRARY = ("printf fprintf vprintf vfprintf puts fputs putchar perror abort exit _exit quick_exit "
              "signal sigaction system popen setlocale localtime gmtime ctime asctime strtok strerror "
              "rand srand random drand48 getenv setenv alloca sleep").split()
# Wrong in what is installed: no bound, or errors cannot be seen.
EVERYWHERE = "gets strcpy strcat sprintf vsprintf atoi atol atoll atof strtok alloca tmpnam".split()
# A test knows its buffers; but a Criterion test that exits is counted as passing.
IN_TESTS = "gets tmpnam".split()
# (file, call): why it is right there.
EXCEPTIONS = {
    ("io/base/error.c", "abort"): "LAHAR_ASSERT: a broken invariant must not go on to write",
    ("io/base/error.c", "fprintf"): "LAHAR_ASSERT says where, before it ends the process",
}


def pattern(names):
    return re.compile(r"(?<![\w.>])(" + "|".join(map(re.escape, names)) + r")\s*\(")


library_pattern = pattern(IN_LIBRARY + EVERYWHERE)
test_pattern = pattern(IN_TESTS + ["exit"])
plain_test_pattern = pattern(IN_TESTS)
other_pattern = pattern(EVERYWHERE)
complaints = []
sources = tree.files(".c", ".h")
for source in sources:
    calls = other_pattern
    if source.startswith(tree.LIBRARY):
        calls = library_pattern
    elif source.startswith("tests/"):
        is_criterion = any("criterion/criterion.h" in line for _, line in tree.lines(source))
        calls = test_pattern if is_criterion else plain_test_pattern
    for number, line in tree.without_comments(source):
        for match in calls.finditer(line):
            if (source, match.group(1)) not in EXCEPTIONS:
                complaints.append(f"{source}:{number}: {match.group(1)}() is banned here")
tree.finish(complaints, len(sources), "files")
