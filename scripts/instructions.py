#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""instructions.py LOOP [steps]: instructions per call, send, credit update and buffer; with `steps` of a 64 B call,
32 at a time, by the step they belong to.

LOOP is the program tests/bench/instruction_loop. It is run twice under callgrind, SHORT and LONG times, and the
difference divided, so that starting up costs nothing. An instruction belongs to the function it stands in after
inlining, and a function to
  provider   namespaces bx::loopback and bx::virtual_time: a NIC, its queues and a clock made of software
  library    any other name in bx: what an application pays above its provider, at both ends together
  program    the benchmark's own, namespace bench
  C library  the rest: memcpy and memcmp of either side
and within the library to a step by the source file of its line, wherever that is inlined.
"""
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

SHORT, LONG = 2048, 12048
CALLS_32 = ("calls", "64", "32")
# What, arguments of LOOP after the count, how many of it are in one of LOOP's, and whether the library's part is
# inline in the program, so that theirs cannot be told apart.
ROWS = [
    ("64 B call, one at a time", ("calls", "64", "1"), 1, False),
    ("64 B call, 8 at a time", ("calls", "64", "8"), 1, False),
    ("64 B call, 32 at a time", CALLS_32, 1, False),
    ("1 KiB eager send, half a call", ("calls", "1024", "32"), 2, False),
    ("4 KiB eager send, half a call", ("calls", "4096", "32"), 2, False),
    ("credit update of a message", ("credits",), 1, True),
    ("buffer, allocate and free", ("buffers",), 1, True),
]
PARTS = ("library", "provider", "program", "C library")
STEPS = {
    "memory": ("arena.h", "arena.cc", "size_class.h", "buffer.h", "buffer.cc"),
    "call and answer": ("calls.cc", "call.h", "call_path.h", "slot_table.h", "service.h", "session.h", "handles.cc",
                        "result.h", "expected.hpp"),
    "deadline": ("deadlines.h", "reactor.h", "time.h", "chrono"),
    "encode and decode": ("header.h", "message.h", "message.cc", "batch.h", "codec.h"),
    "choose and send": ("sending.cc", "send_path.h", "transfer_choice.h"),
    "post and retire": ("lane.h", "lane.cc"),
    "poll and route": ("receiving.cc", "deferred.cc", "qp_index.h", "wr_id.h"),
    "receives": ("receive_pool.h", "receive_pool.cc", "receive_path.h", "receives.cc"),
    "credits": ("credits.h",),
    "window": ("send_window.h",),
    "statistics": ("log_histogram.h", "parts_stats.h"),
    "turn": ("worker.cc", "worker.h"),
}
STEP_OF = {file: step for step, files in STEPS.items() for file in files}
OTHER_STEP = "lists and containers"


def part_of(function):
    name = function.replace("non-virtual thunk to ", "")
    if name.startswith(("bx::loopback::", "bx::virtual_time::")):
        return "provider"
    if name.startswith("bx::"):
        return "library"
    return "program" if name.startswith("bench::") else "C library"


def lines_of(profile):
    """Yields (function, file, instructions) of callgrind's output (its manual, chapter "Format Specification")."""
    names = {"fn": {}, "file": {}}
    function = file = ""
    inclusive = False  # the line behind calls= repeats what the callee cost
    for line in profile:
        match = re.match(r"(c?fn|c?f[lie])=\((\d+)\)(?: (.*))?$", line)
        if match:
            kind = "fn" if match.group(1).endswith("fn") else "file"
            if match.group(3):
                names[kind][match.group(2)] = match.group(3)
            name = names[kind][match.group(2)]
            if match.group(1) == "fn":
                function = name
            elif match.group(1) in ("fl", "fi", "fe"):
                file = os.path.basename(name)
        elif line.startswith("calls="):
            inclusive = True
        elif re.match(r"[\d+*-]", line):
            if not inclusive:
                yield function, file, int(line.split()[1])
            inclusive = False


def instructions(loop, count, arguments):
    with tempfile.NamedTemporaryFile("r", prefix="bx-callgrind-") as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", loop, str(count), *arguments]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        counts = collections.Counter()
        for function, file, cost in lines_of(open(out.name, encoding="utf-8")):
            part = part_of(function)
            counts[part] += cost
            if part == "library":
                counts[STEP_OF.get(file, OTHER_STEP)] += cost
    return counts


def measure(loop, arguments, per=1):
    short, long = (instructions(loop, count, arguments) for count in (SHORT, LONG))
    return {key: (long[key] - short[key]) / (LONG - SHORT) / per for key in long}


def print_rows(loop):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda row: measure(loop, row[1], row[2]), ROWS))
    print(f"{'instructions per':32}" + "".join(f"{part:>12}" for part in PARTS))
    for (what, _, _, inlined), result in zip(ROWS, results):
        if inlined:
            result = {"library": result.get("library", 0) + result["program"]}
        print(f"{what:32}" + "".join(f"{result.get(part, 0):12.0f}" for part in PARTS))


def print_steps(loop):
    result = measure(loop, CALLS_32)
    for step in [*STEPS, OTHER_STEP]:
        print(f"{step:32}{result.get(step, 0):12.0f}")
    print(f"{'together':32}{result['library']:12.0f}")


def main():
    if len(sys.argv) == 2:
        print_rows(sys.argv[1])
    elif len(sys.argv) == 3 and sys.argv[2] == "steps":
        print_steps(sys.argv[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
