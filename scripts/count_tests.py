#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads JUnit report(s) of CTest or of GoogleTest and prints "N passed, N failed". Exits 1 if any failed, was skipped or none ran.

A skipped test is a failure here: a backend that is missing must not pass for one that works.
"""
import sys
import xml.etree.ElementTree as ElementTree


def main(paths):
    passed = failed = 0
    for path in paths:
        try:
            suite = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError) as error:
            print(f"no test report: {error}", file=sys.stderr)
            failed += 1
            continue
        for case in suite.iter("testcase"):
            # GoogleTest says "run" of what failed or was skipped, too.
            skipped = case.get("result", "completed") != "completed" or case.find("skipped") is not None
            if case.get("status") == "run" and not skipped and case.find("failure") is None:
                passed += 1
            else:
                failed += 1
                print(f"{'skipped' if skipped else 'failed'}: {case.get('name')}", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
