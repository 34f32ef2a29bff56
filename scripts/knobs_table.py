#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""knobs_table.py: turns the output of `bx config --json` (standard input) into docs/knobs.md (standard output)."""
import json
import sys

HEAD = """# Knobs of the library

Written by `scripts/docs` from `libbx/include/bx/config.h`, where each is declared once. A program sets members of
`bx::Config`; `bx run` takes them from the scenario (`library.NAME`), a knob file (`NAME = value` in `bx.conf`), the
environment and `--set library.NAME=value`. `bx config` prints the values in force and where each came from. A value out of
its range is refused by `bx::Context::create`, which names the knob.

| knob | unit | default | allowed | environment | what it is |
|---|---|---|---|---|---|
"""


def allowed(knob):
    if "choices" in knob:
        return ", ".join(knob["choices"])
    if knob["unit"] == "flag":
        return "false, true"
    return f"{knob['minimum']} to {knob['maximum']}"


def main():
    print(HEAD, end="")
    for knob in json.load(sys.stdin):
        print(f"| `{knob['name']}` | {knob['unit']} | {knob['default']} | {allowed(knob)} | `{knob['environment']}` | "
              f"{knob['sentence']} |")


if __name__ == "__main__":
    main()
