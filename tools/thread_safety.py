#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clang's thread-safety analysis of the sources that hold locks.

  tools/thread_safety.py [--cache FILE] [ROOT]

A source is looked at when it, or the header of its name, speaks of a mutex; one that was in order is looked at again
only when it, a header below it, or the compiler has changed. Exits with 77 where there is no clang++.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

LOCKS = re.compile(r"\b(?:Mutex\w*|ABSL_\w*(?:GUARDED|LOCK)\w*|GraphLock|GraphReaderLock)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# A condition or a callback that says what it requires is called through templates that cannot say so.
FLAGS = ["-std=c++20", "-fsyntax-only", "-Isrc", "-Iinclude", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
FLAGS += ["--system-header-prefix=base/exceptions.h", '-DMILLRACE_VERSION=""']
NOT_RUN = ("_test.cc", "_benchmark.cc", "absl_tsan.cc")


class Sources:
    def __init__(self, root, compiler):
        self.root = root
        version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
        self.salt = (version + " ".join(FLAGS)).encode()
        self.texts = {}
        self.below = {}

    def text(self, path):
        if path not in self.texts:
            try:
                with open(os.path.join(self.root, path), encoding="utf-8") as file:
                    self.texts[path] = file.read()
            except FileNotFoundError:
                self.texts[path] = ""
        return self.texts[path]

    def locking(self):
        """The sources that are worth a look."""
        for folder, _, names in os.walk(os.path.join(self.root, "src")):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if not name.endswith(".cc") or name.endswith(NOT_RUN):
                    continue
                if LOCKS.search(self.text(path)) or LOCKS.search(self.text(path[:-3] + ".h")):
                    yield path

    def includes(self, path):
        """The files of the project that `path` reads, itself among them."""
        seen, waiting = set(), [path]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if at not in self.below:
                places = [os.path.join(top, name) for name in INCLUDE.findall(self.text(at)) for top in ("src", "include")]
                self.below[at] = [p for p in places if os.path.exists(os.path.join(self.root, p))]
            waiting += self.below[at]
        return sorted(seen)

    def state(self, path):
        digest = hashlib.sha256(self.salt)
        for name in self.includes(path):
            digest.update(name.encode() + b"\0" + self.text(name).encode() + b"\0")
        return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", help="remembers here what was in order")
    parser.add_argument("root", nargs="?", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options = parser.parse_args()
    compiler = shutil.which("clang++")
    if compiler is None:
        print("clang++ is missing: no thread-safety analysis (skipped)")
        return 77
    sources = Sources(options.root, compiler)
    known = {}
    if options.cache and os.path.exists(options.cache):
        with open(options.cache, encoding="utf-8") as file:
            known = json.load(file)
    states = {path: sources.state(path) for path in sources.locking()}
    wanted = [path for path, state in states.items() if known.get(path) != state]

    def look(path):
        run = subprocess.run([compiler, *FLAGS, path], cwd=options.root, capture_output=True, text=True, check=False)
        return path, run.returncode, run.stderr

    bad = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, code, output in pool.map(look, wanted):
            if code != 0:
                bad.add(path)
                print(output, end="")
    if options.cache:
        os.makedirs(os.path.dirname(os.path.abspath(options.cache)), exist_ok=True)
        with open(options.cache, "w", encoding="utf-8") as file:
            json.dump({path: state for path, state in states.items() if path not in bad}, file, indent=0)
    print(f"thread safety: {len(states)} sources with locks, {len(wanted)} looked at, {len(bad)} not in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
