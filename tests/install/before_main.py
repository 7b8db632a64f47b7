#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that loading the library runs no code of ours.

  before_main.py LIBRARY

Every function in .init_array may only set up the standard streams, which <iostream> (by way of Abseil's headers) asks for
in each file that includes it, and do the compiler's own work. Anything else, such as a registration, would run before
main, be lost in static linking, and cost every program that loads the library.
"""

import re
import subprocess
import sys

ALLOWED = re.compile(r"std::ios_base::Init|_ZNSt8ios_base4Init|__cxa_atexit")
TARGET = re.compile(r"\s(?:call|jmp)\w*\s.*?<(.*)>$")
COMPILERS_OWN = {"frame_dummy", "__cpu_indicator_init"}  # the latter is libgcc's, for __builtin_cpu_supports


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def init_functions(library):
    section = next(line.split("]")[1].split() for line in lines_of("readelf", "-SW", library) if " .init_array " in line)
    begin, size = int(section[2], 16), int(section[4], 16)
    functions = set()
    for line in lines_of("readelf", "-rW", library):
        words = line.split()
        if len(words) >= 4 and "RELATIVE" in words[2] and begin <= int(words[0], 16) < begin + size:
            functions.add(int(words[3], 16))
    return functions, size // 8


def main():
    library = sys.argv[1]
    functions, entries = init_functions(library)
    if len(functions) != entries:
        print(f"{entries} entries in .init_array, but {len(functions)} functions found")
        return 1
    bad, seen, name = [], 0, None
    for line in lines_of("objdump", "-d", "-C", "--no-show-raw-insn", "-j", ".text", library):
        if line.endswith(">:"):
            address, _, symbol = line.partition(" ")
            name = symbol[1:-2] if int(address, 16) in functions else None
            seen += name is not None
            if name in COMPILERS_OWN:
                name = None
        elif name and ("call" in line or "jmp" in line):
            found = TARGET.search(line)
            target = found.group(1) if found else line
            if not ALLOWED.search(target) and not target.startswith(name + "+"):
                bad.append(f"{name} runs {target.strip()}")
    if seen != len(functions):
        print(f"{len(functions)} functions in .init_array, but {seen} of them disassembled")
        return 1
    print("\n".join(bad) or f"{seen} functions in .init_array, none of which runs code of ours")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
