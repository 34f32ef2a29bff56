#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the tree to the rules of ARCHITECTURE.md that a compiler does not see.

Each folder is a layer; its files may include only the layers listed for it. Verbs headers, ns-3 headers, threads and
clocks have their places, and every source file names the licence of its folder. Run with --self-test it breaks each
rule on purpose and checks that the breach is found.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# layer -> layers it may include (besides itself)
LAYERS = {
    "libbx/base": [],
    "libbx/wire": ["libbx/base"],
    "libbx/core": ["libbx/wire", "libbx/base"],
    "libbx/fabric": ["libbx/base"],
    "libbx/include/bx": ["libbx/base", "libbx/fabric"],
    "libbx/memory": ["libbx/fabric", "libbx/base", "libbx/include/bx"],
    "libbx/engine": ["libbx/memory", "libbx/core", "libbx/wire", "libbx/fabric", "libbx/base", "libbx/include/bx"],
    "libbx/api": ["libbx/engine", "libbx/memory", "libbx/core", "libbx/wire", "libbx/fabric", "libbx/base",
                  "libbx/include/bx"],
    "libbx/providers/virtual": ["libbx/fabric", "libbx/base"],
    "libbx/providers/loopback": ["libbx/providers/virtual", "libbx/fabric", "libbx/base"],
    "libbx/providers/native": ["libbx/fabric", "libbx/base"],
    "libbx/providers/verbs": ["libbx/providers/native", "libbx/fabric", "libbx/base"],
    "libbx/exporters/prometheus": ["libbx/include/bx", "libbx/fabric", "libbx/base"],
    "sim/model": ["libbx/base"],
    "sim/ns3": ["sim/model", "libbx/base"],
    "sim/provider": ["sim/model", "libbx/providers/virtual", "libbx/fabric", "libbx/base"],
    "harness": ["libbx/include/bx", "libbx/providers/virtual", "libbx/providers/loopback",
                "libbx/providers/native", "libbx/providers/verbs", "sim/provider",
                "sim/model", "libbx/fabric", "libbx/base"],
}
LICENCES = [("libbx/", "BSD-3-Clause"), ("sim/", "GPL-2.0-only"), ("harness/", "GPL-2.0-only")]
SYSTEM_RULES = [  # (pattern of an include or of code, folders it may stand in, what it is)
    (re.compile(r"#include <(infiniband|rdma)/"), ["libbx/providers/verbs"], "verbs headers"),
    (re.compile(r"#include [<\"]ns3/"), ["sim/"], "ns-3 headers"),
    (re.compile(r"#include [<\"]ns3/\w+-module\.h"), [], "ns-3 umbrella headers"),
    (re.compile(r"#include <(thread|mutex|shared_mutex|condition_variable|future|barrier|latch|semaphore)>"),
     ["libbx/providers/native", "libbx/exporters/", "sim/model/partitions.cc", "harness/"], "threads and locks"),
    (re.compile(r"\b(steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday)\b"),
     ["libbx/providers/native", "harness/"], "reading a clock"),
    (re.compile(r"\bgetenv\b"), ["harness/"], "reading the environment"),
    (re.compile(r"\bstd::(uniform_int_distribution|uniform_real_distribution|normal_distribution|random_device|mt19937)"),
     [], "the standard library's distributions: they differ between implementations"),
    (re.compile(r"\bunordered_(map|set)<[^,>]*\*"), [], "pointer-keyed hash maps: their order differs between runs"),
]
INCLUDE = re.compile(r'^\s*#include\s+["<]([^">]+)[">]')


def layer_of(path):
    best = None
    for layer in LAYERS:
        if path.startswith(layer + "/") and (best is None or len(layer) > len(best)):
            best = layer
    return best


def included_layer(name):
    return "libbx/include/bx" if name.startswith("bx/") else layer_of(name)


def breaches(path, text):
    """The rules that the file at `path` (relative, with /) with contents `text` breaks, as lines for a person."""
    found = []
    layer = layer_of(path)
    if layer is None:
        return [f"{path}: belongs to no layer of ARCHITECTURE.md"]
    for prefix, licence in LICENCES:
        if path.startswith(prefix) and f"SPDX-License-Identifier: {licence}" not in text.split("\n", 1)[0]:
            found.append(f"{path}:1: first line must say SPDX-License-Identifier: {licence}")
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            other = included_layer(match.group(1))
            if other is not None and other != layer and other not in LAYERS[layer]:
                found.append(f"{path}:{number}: {layer} may not include {other}")
        code = line if match else line.split("//", 1)[0]
        for pattern, allowed, what in SYSTEM_RULES:
            if pattern.search(code) and not any(path.startswith(folder) for folder in allowed):
                found.append(f"{path}:{number}: {what} may stand only in {', '.join(allowed) or 'no folder'}")
    return found


def check_tree():
    found, files = [], 0
    for top in ("libbx", "sim", "harness"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                files += 1
                found += breaches(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    print("\n".join(found) if found else f"{files} files keep the layer rules")
    return 1 if found or files == 0 else 0


def self_test():
    bsd, gpl = "// SPDX-License-Identifier: BSD-3-Clause\n", "// SPDX-License-Identifier: GPL-2.0-only\n"
    broken = [
        ("libbx/base/a.h", bsd + '#include "libbx/fabric/types.h"'),
        ("libbx/core/a.h", bsd + '#include "libbx/fabric/types.h"'),
        ("libbx/engine/a.cc", bsd + '#include "libbx/providers/loopback/loopback_fabric.h"'),
        ("libbx/engine/a.cc", bsd + "#include <infiniband/verbs.h>"),
        ("libbx/fabric/a.h", bsd + "#include <bx/bx.h>"),
        ("libbx/memory/a.h", bsd + '#include "libbx/engine/worker.h"'),
        ("libbx/providers/virtual/a.cc", bsd + '#include "ns3/simulator.h"'),
        ("sim/model/a.cc", gpl + '#include "libbx/fabric/types.h"'),
        ("sim/model/a.cc", gpl + '#include "ns3/core-module.h"'),
        ("sim/model/a.cc", gpl + '#include "sim/ns3/nic_net_device.h"'),
        ("sim/model/a.cc", bsd),
        ("libbx/engine/a.cc", gpl),
        ("libbx/engine/a.cc", bsd + "#include <mutex>"),
        ("libbx/engine/a.cc", bsd + "auto t = std::chrono::steady_clock::now();"),
        ("libbx/core/a.h", bsd + 'const char* home = getenv("HOME");'),
        ("sim/model/a.cc", gpl + "std::mt19937 generator;"),
        ("libbx/engine/a.h", bsd + "std::unordered_map<Peer*, int> m;"),
        ("libbx/stray/a.h", bsd),
    ]
    kept = [
        ("libbx/engine/a.cc", bsd + '#include <bx/bx.h>\n#include "libbx/core/credits.h"\n// std::mutex is not used'),
        ("sim/model/a.cc", gpl + '#include "ns3/simulator.h"\n#include "libbx/base/prng.h"'),
    ]
    wrong = [f"not found in {p}: {t!r}" for p, t in broken if not breaches(p, t)]
    wrong += [f"found in {p}: {breaches(p, t)}" for p, t in kept if breaches(p, t)]
    print("\n".join(wrong) if wrong else f"{len(broken)} breaches found, {len(kept)} clean files passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(self_test() if "--self-test" in sys.argv else check_tree())
