#!/usr/bin/env python3
"""Functions of at most 80 lines, files of at most 800: one concept each."""
import tree

FUNCTION_LINES_MAX = 80
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
    start = None
    # The house style puts a function's braces, and nothing else, alone in column 0.
    for number, line in text:
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            length = number - start - 1
            if length > FUNCTION_LINES_MAX:
                complaints.append(f"{source}:{start}: a function of {length} lines, "
                                  f"at most {FUNCTION_LINES_MAX}")
            start = None
tree.finish(complaints, len(sources), "files")
