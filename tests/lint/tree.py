"""The project's own files, and how every lint program reports and ends."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = ("engine/", "index/", "io/")
SKIPPED_DIRECTORIES = {".git", "build"}


def files(*suffixes):
    """Paths relative to the root, sorted; all files when no suffix is given."""
    found = []
    for directory, names, leaves in os.walk(ROOT):
        names[:] = [name for name in names if name not in SKIPPED_DIRECTORIES]
        for leaf in leaves:
            if not suffixes or leaf.endswith(suffixes):
                found.append(os.path.relpath(os.path.join(directory, leaf), ROOT))
    return sorted(found)


def lines(path):
    """(line number, text) of one file."""
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return list(enumerate(file.read().split("\n"), 1))


def without_comments(path):
    """As lines(), with C comments and string contents blanked."""
    text = "\n".join(line for _, line in lines(path))
    out = []
    state = "code"
    i = 0
    while i < len(text):
        two = text[i:i + 2]
        char = text[i]
        if state == "code":
            if two in ("/*", "//"):
                state = two
                out.append("  ")
                i += 2
                continue
            if char in "\"'":
                state = char
            out.append(char)
        elif state in ("/*", "//"):
            if state == "/*" and two == "*/":
                state = "code"
                out.append("  ")
                i += 2
                continue
            if state == "//" and char == "\n":
                state = "code"
            out.append(char if char == "\n" else " ")
        else:
            if char == "\\":
                out.append("  ")
                i += 2
                continue
            if char == state or char == "\n":
                state = "code"
                out.append(char)
            else:
                out.append(" ")
        i += 1
    return list(enumerate("".join(out).split("\n"), 1))


def finish(complaints, checked, what):
    """Prints what is wrong and ends with the status that ctest expects."""
    for complaint in complaints:
        print(complaint)
    if checked == 0:
        print(f"nothing was checked: no {what}")
        sys.exit(1)
    print(f"{checked} {what} checked, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)
