#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs libbx from a build tree into a prefix of its own and uses it from there as a stranger would: builds and runs
examples/ by find_package, one of them by pkg-config, and every installed header by itself. The prefix is moved before
it is used, so a path of the build that slipped into the package is found."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(args):
    first, prefix = args.work / "installed", args.work / "moved"
    for component in ["bx"] + (["bx-prometheus"] if args.prometheus else []):
        run("cmake", "--install", args.build, "--component", component, "--prefix", first)
    first.rename(prefix)
    for path in prefix.rglob("*"):
        if path.suffix in (".cmake", ".pc", ".h"):
            text = path.read_text(encoding="utf-8")
            for place in (ROOT, args.build, first):
                if f"{place}/" in text:
                    sys.exit(f"{path} names a place of the build: {place}")
    return prefix


def use_by_find_package(args, prefix):
    build = args.work / "examples"
    run("cmake", "-G", args.generator, "-S", ROOT / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={args.compiler}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={args.launcher}",
        f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS)}")
    run("cmake", "--build", build)
    print(run("ctest", "--test-dir", build, "--output-on-failure").strip())


def use_by_pkg_config(args, prefix):
    found = list(prefix.rglob("bx.pc"))
    if len(found) != 1:
        sys.exit(f"bx.pc is installed {len(found)} times")
    environment = os.environ | {"PKG_CONFIG_PATH": str(found[0].parent)}
    flags = run("pkg-config", "--cflags", "--libs", "--static", "bx-loopback", env=environment).split()
    compiler = ([args.launcher] if args.launcher else []) + [args.compiler]
    if args.sanitize:
        flags.append(f"-fsanitize={args.sanitize}")
    program, source = args.work / "echo", ROOT / "examples" / "echo.cc"
    run(*compiler, "-c", source, "-o", f"{program}.o", *(flag for flag in flags if not flag.startswith("-l")))
    run(args.compiler, f"{program}.o", "-o", program, *flags)
    print(run(program).strip())


# The optional component: a program that exports, compiled and linked.
def use_prometheus(args, prefix):
    source = args.work / "exporting"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(exporting LANGUAGES CXX)\n"
        "find_package(bx 0.1 REQUIRED COMPONENTS prometheus)\nadd_executable(exporting exporting.cc)\n"
        "target_link_libraries(exporting PRIVATE bx::prometheus)\n", encoding="utf-8")
    (source / "exporting.cc").write_text(
        "#include <libbx/exporters/prometheus/prometheus_exporter.h>\n"
        "int main() { return bx::exporters::PrometheusExporter().Collect().empty() ? 0 : 1; }\n", encoding="utf-8")
    build = source / "build"
    run("cmake", "-G", args.generator, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={args.compiler}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={args.launcher}")
    run("cmake", "--build", build)
    run(build / "exporting")
    print("bx::prometheus")


# Each header first in a source of its own would take a minute; all in one source finds what is not installed.
def include_every_header(args, prefix):
    include = prefix / "include"
    headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.h"))
    if not any(header == "bx/bx.h" for header in headers):
        sys.exit("bx/bx.h is not installed")
    source = args.work / "headers.cc"
    source.write_text("".join(f"#include <{header}>\n" for header in headers), encoding="utf-8")
    run(args.compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, f"-I{include}", source)
    print(f"{len(headers)} headers")


def check_version(args, prefix):
    source = args.work / "other"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(other LANGUAGES NONE)\nfind_package(bx 99 REQUIRED)\n",
        encoding="utf-8")
    done = subprocess.run(["cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0 or "99" not in done.stderr:
        sys.exit(f"version 99 was not refused:\n{done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--launcher", default="")
    parser.add_argument("--sanitize", default="")
    parser.add_argument("--prometheus", type=int, default=0)
    args = parser.parse_args()
    if args.launcher.endswith("-NOTFOUND"):
        args.launcher = ""
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    prefix = install(args)
    use_by_find_package(args, prefix)
    use_by_pkg_config(args, prefix)
    include_every_header(args, prefix)
    if args.prometheus:
        use_prometheus(args, prefix)
    check_version(args, prefix)


if __name__ == "__main__":
    main()
