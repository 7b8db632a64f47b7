#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes libraries to link against that are glibc as it was at an older version.

  glibc_stubs.py VERSION FOLDER [CC]

glibc keeps every form that a function ever had, each under the version that brought it, and a linker takes the newest. The
libraries made here hold of this machine's glibc what VERSION (such as 2.28) had, as empty functions: a program that is
linked to them asks for the older forms, and one that needs more does not link. What has moved into libc since is in
the library where VERSION had it. Linked with -L FOLDER; nothing of it is loaded when the program runs.
"""

import os
import re
import subprocess
import sys

LOADER = "ld-linux-x86-64.so.2"
LIBRARIES = {"libc.so.6": "libc.so", "libm.so.6": "libm.so", LOADER: "ld.so"}
# Before 2.34 these were libraries of their own; what libc has of them under a version below is there for old programs.
MERGED_IN = (2, 34)
MERGED = (
    ("libdl.so.2", re.compile(r"dl[a-z]")),
    ("librt.so.1", re.compile(r"(aio|lio|mq|timer|shm)_|__mq_")),
    ("libutil.so.1", re.compile(r"openpty|forkpty|login")),
    ("libpthread.so.0", re.compile(r"")),
)
SYMBOL = re.compile(
    r"^\s*\d+: [0-9a-f]+\s+(\S+)\s+(FUNC|IFUNC|OBJECT|TLS)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+\s+"
    r"(\w+)(@@?)GLIBC_([0-9.]+)$"
)


def number(version):
    return tuple(int(part) for part in version.split("."))


def path_of(library, cc):
    if library == LOADER:
        return "/lib64/" + LOADER
    return subprocess.run([cc, "-print-file-name=" + library], check=True, capture_output=True, text=True).stdout.strip()


def symbols_of(path, newest):
    """name -> (its newest version that is not above `newest`, type, size, whether it has moved here since)."""
    found, defaults = {}, {}
    table = subprocess.run(["readelf", "--dyn-syms", "-W", path], check=True, capture_output=True, text=True).stdout
    for line in table.splitlines():
        match = SYMBOL.match(line)
        if not match:
            continue
        size, kind, name, default, version = match.groups()
        if default == "@@":
            defaults[name] = number(version)
        if number(version) <= newest and (name not in found or number(version) > number(found[name][0])):
            found[name] = (version, kind, int(size, 0))
    return {name: entry + (defaults.get(name) == MERGED_IN,) for name, entry in found.items()}


def write_library(folder, soname, symbols, cc):
    by_version = {}
    with open(os.path.join(folder, "stub.s"), "w", encoding="utf-8") as source:
        for name, (version, kind, size) in sorted(symbols.items()):
            by_version.setdefault(version, []).append(name)
            data = kind in ("OBJECT", "TLS")
            section = '.tbss,"awT",@nobits' if kind == "TLS" else ".bss" if data else ".text"
            what = "tls_object" if kind == "TLS" else "object" if data else "function"
            source.write(f".section {section}\n.globl {name}\n.type {name},@{what}\n{name}:\n")
            if data:
                source.write(f".zero {max(size, 1)}\n.size {name},{size}\n")
        source.write('.section .note.GNU-stack,"",@progbits\n')
    with open(os.path.join(folder, "stub.map"), "w", encoding="utf-8") as versions:
        for version, names in sorted(by_version.items(), key=lambda item: number(item[0])):
            versions.write("GLIBC_%s { global: %s; %s};\n" % (version, "; ".join(names), "" if versions.tell() else "local: *; "))
    subprocess.run(
        [
            cc,
            "-shared",
            "-nostdlib",
            "-fuse-ld=bfd",
            "-Wl,-soname," + soname,
            "-Wl,--version-script=" + os.path.join(folder, "stub.map"),
            "-o",
            os.path.join(folder, soname),
            os.path.join(folder, "stub.s"),
        ],
        check=True,
    )
    os.remove(os.path.join(folder, "stub.s"))
    os.remove(os.path.join(folder, "stub.map"))


def main():
    newest, folder = number(sys.argv[1]), sys.argv[2]
    cc = sys.argv[3] if len(sys.argv) > 3 else "cc"
    os.makedirs(folder, exist_ok=True)
    made = {soname: {} for soname in list(LIBRARIES) + [soname for soname, _ in MERGED]}
    for library in LIBRARIES:
        for name, (version, kind, size, moved) in symbols_of(path_of(library, cc), newest).items():
            home = library
            if moved and library == "libc.so.6":
                home = next(soname for soname, names in MERGED if names.match(name))
            made[home][name] = (version, kind, size)
    for soname, symbols in made.items():
        if not symbols:
            sys.exit("no symbols for " + soname)
        write_library(folder, soname, symbols, cc)
    fixed = path_of("libc_nonshared.a", cc)
    scripts = {"libc.so": f"INPUT ( libc.so.6 {fixed} AS_NEEDED ( {LOADER} ) )", "libm.so": "INPUT ( libm.so.6 )"}
    scripts.update({soname.split(".so")[0] + ".so": f"INPUT ( {soname} )" for soname, _ in MERGED})
    for name, text in scripts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as script:
            script.write(text + "\n")
    print("glibc %s: %s" % (sys.argv[1], ", ".join("%s %d" % (name, len(s)) for name, s in made.items())))


if __name__ == "__main__":
    main()
