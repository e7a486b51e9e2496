#!/usr/bin/env python3
"""count_cases.py [--must-fail] JUNIT.xml...: counts test cases in what ctest wrote.

One ctest test may hold many cases, so the numbers come from what the programs print:
Criterion's "Synthesis" line, or the last line "N passed, N failed, N skipped" of a plain
program. A test that prints neither is one case. Whatever ctest itself calls failed (a wrong
exit status, a time-out, a sanitizer report) is at least one failed case.

Prints "PASSED FAILED SKIPPED" on standard output and what failed, with its output, on
standard error. With --must-fail every test has to be seen as failed: the canary."""
import re
import sys
import xml.etree.ElementTree as ElementTree

SYNTHESIS = re.compile(r"Synthesis: Tested: \D*(\d+)\D* \| Passing: \D*(\d+)\D* \| "
                       r"Failing: \D*(\d+)\D* \| Crashing: \D*(\d+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LAST_LINE = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
SHOWN_LINES_MAX = 120


def count(case):
    """(passed, failed, skipped, output) of one ctest test."""
    output = COLOUR.sub("", case.findtext("system-out") or "")
    lines = [line.strip() for line in output.strip().split("\n")]
    synthesis = SYNTHESIS.search(output)
    last = next((LAST_LINE.match(line) for line in reversed(lines) if LAST_LINE.match(line)), None)
    ok = case.get("status") == "run"
    if synthesis:
        _, passed, failing, crashing = map(int, synthesis.groups())
        skipped = sum(1 for line in lines if line.startswith("[SKIP]"))
        counts = [passed, failing + crashing, skipped]
    elif last:
        counts = list(map(int, last.groups()))
    elif case.find("skipped") is not None:
        counts = [0, 0, 1]
    else:
        counts = [1, 0, 0] if ok else [0, 1, 0]
    was_skipped = case.find("skipped") is not None and case.get("status") == "notrun"
    if not ok and not was_skipped and counts[1] == 0:
        counts[1] = 1
    return counts[0], counts[1], counts[2], output


def main():
    paths = sys.argv[1:]
    must_fail = "--must-fail" in paths
    totals = [0, 0, 0]
    unseen = []
    cases = [case for path in paths if path != "--must-fail"
             for case in ElementTree.parse(path).getroot().iter("testcase")]
    for case in cases:
        passed, failed, skipped, output = count(case)
        totals = [a + b for a, b in zip(totals, (passed, failed, skipped))]
        if must_fail and failed == 0:
            unseen.append(case.get("name"))
        elif failed and not must_fail:
            shown = output.strip().split("\n")
            if len(shown) > SHOWN_LINES_MAX:
                shown = [f"... {len(shown) - SHOWN_LINES_MAX} lines left out ..."] + shown[-SHOWN_LINES_MAX:]
            print(f"--- {case.get('name')} failed:", *shown, sep="\n", file=sys.stderr)
    print(*totals)
    if must_fail and (unseen or not cases):
        print(f"not seen to fail: {', '.join(unseen) or 'nothing ran'}", file=sys.stderr)
        sys.exit(1)


main()
