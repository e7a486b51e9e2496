#!/usr/bin/env python3
"""Functions of at most 80 lines, in tests 100, files of at most 800: one concept each."""
import tree

FUNCTION_LINES_MAX = 80
TEST_LINES_MAX = 100  # a test is read from top to bottom, once
FILE_LINES_MAX = 800
# file or file:function start -> reason
EXCEPTIONS = {}

complaints = []
sources = tree.files(".c", ".h")
for source in sources:
    text = tree.lines(source)
    count = len(text) - 1
    if count > FILE_LINES_MAX and source not in EXCEPTIONS:
        complaints.append(f"{source}: {count} lines, at most {FILE_LINES_MAX}")
    most = TEST_LINES_MAX if source.startswith("tests/") else FUNCTION_LINES_MAX
    start = None
    # The house style puts a function's braces, and nothing else, alone in column 0.
    for number, line in text:
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            length = number - start - 1
            if length > most:
                complaints.append(f"{source}:{start}: a function of {length} lines, at most {most}")
            start = None
tree.finish(complaints, len(sources), "files")
