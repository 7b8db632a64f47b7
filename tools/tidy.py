#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the house rules that a compiler does not.

  tools/tidy.py [ROOT]

Every #include in src/ obeys src/layers.txt, and every import in python/millrace python/layers.txt; every file states its
licence; headers have #pragma once; src/ holds no CHECK, assert or abort; gRPC is named by its transport alone; threads,
clocks, waits, sockets and the default Env are named in base/ alone; nothing is named util, misc or common. Files that are
too long are warned about. Prints path:line: message, and exits with 1 when an error was found.
"""

import os
import re
import sys

import python_layers

MAX_LINES = 700
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = (".h", ".cc", ".c", ".cu", ".py", ".pyi", ".cmake", ".sh", "CMakeLists.txt")
BAD_STEMS = re.compile(r"(^|_)(utils?|misc|common)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
GRPC_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]grpc(?:pp)?/')
GRPC_FOLDER = os.path.join("src", "cluster", "grpc")
FATAL = re.compile(r"(?<![\w.>])(?:std::)?(CHECK(?:_[A-Z]+)?|DCHECK(?:_[A-Z]+)?|assert|abort)\s*\(")
# What Env stands for, so that a simulated world can take its place.
OUTSIDE = re.compile(
    r"std::j?thread\b|std::this_thread::(?:sleep|get_id)\w*|\bpthread_create\b|\b(?:steady|system|high_resolution)_clock\b"
    r"|\b(?:clock_gettime|gettimeofday|nanosleep)\b|\babsl::(?:Now|SleepFor|GetCurrentTimeNanos)\b"
    r"|\b(?:Await|Wait|LockWhen|WaitForNotification)With(?:Timeout|Deadline)\b|(?<![\w.>])::socket\("
    r"|\bmu\w*(?:\.|->)(?:Reader)?(?:Await|LockWhen)\b|\bCondVar\b|\bcondition_variable\b"
    r"|\babsl::(?:Notification|BlockingCounter|Barrier)\b|\bstd::(?:future|promise|latch|barrier|\w*semaphore)\b"
)
# Waits of what has no Env: base/this_world.h.
WITHOUT_ENV = re.compile(r"\bAwaitInThisWorld\b")
WITHOUT_ENV_ALLOWED = {"src/capi/plugin/plugin_kernel.cc", "src/graph/shared_graph.cc", "src/kernel/cancellation.cc"}
DEFAULT_ENV = re.compile(r"\bEnv::Default\b")
CHOOSE_THE_ENV = ("system", "capi")  # the folders that say which Env a process has
OUTSIDE_ALLOWED = {
    "src/capi/env.cc"  # TF_StartThread: the caller's thread, with the stack that it wants
}
SKIPPED_FOLDERS = {"build", "third_party", "__pycache__"}


class Layers:
    """The table of src/layers.txt: the number of each folder, and the folders it may include."""

    def __init__(self, path):
        self.number = {}
        self.allowed = {}
        self.problems = []
        with open(path, encoding="utf-8") as file:
            for line_number, line in enumerate(file, 1):
                words = line.split("#")[0].split()
                if not words:
                    continue
                number, folder, allowed = int(words[0]), words[1], words[2:]
                for other in allowed:
                    if self.number.get(other, number) >= number:
                        self.problems.append((line_number, f"{folder} may not list {other}, which is not below it"))
                self.number[folder] = number
                self.allowed[folder] = set(allowed)

    def folder_of(self, path):
        """The row that a path relative to src/ belongs to: the longest that matches."""
        folder = os.path.dirname(path)
        while folder and folder not in self.number:
            folder = os.path.dirname(folder)
        return folder or None


def without_comments_and_strings(text):
    """The text with comments and literals blanked, line breaks kept."""
    pattern = re.compile(r'R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
    # A quote between digits separates thousands.
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text)
    return pattern.sub(lambda match: "\n" * match.group().count("\n"), text)


class Tidy:
    def __init__(self, root):
        self.root = root
        self.errors = 0
        self.warnings = 0
        self.layers = Layers(os.path.join(root, "src", "layers.txt"))
        for line, problem in self.layers.problems:
            self.error("src/layers.txt", line, problem)

    def error(self, path, line, message):
        self.errors += 1
        print(f"{path}:{line}: error: {message}")

    def warn(self, path, line, message):
        self.warnings += 1
        print(f"{path}:{line}: warning: {message}")

    def files(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("."))
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), self.root)

    def check_file(self, path):
        if not path.endswith(LICENSED):
            return
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.split("\n")
        if not any(LICENCE in line for line in lines[:2]):
            self.error(path, 1, f"the first line (or the second, after #!) must say {LICENCE}")
        is_public_name = path.startswith("python/millrace/")  # programs import these modules by TensorFlow's names
        if BAD_STEMS.search(os.path.basename(path).split(".")[0]) and not is_public_name:
            self.error(path, 1, "say what is in the file instead of util, misc or common")
        if path.endswith(".h") and not path.endswith("-inl.h"):  # those are read once per instruction set
            self.check_header(path, lines)
        if len(lines) - 1 > MAX_LINES:
            self.warn(path, MAX_LINES, f"{len(lines) - 1} lines: split the file by meaning")
        if path.endswith((".h", ".cc", ".c")) and os.path.dirname(path) != GRPC_FOLDER:
            self.check_grpc(path, lines)
        if path.startswith("src" + os.sep) and path.endswith((".h", ".cc")):
            self.check_includes(path, lines)
            if not path.endswith("_test.cc"):
                self.check_fatal(path, text)
                self.check_outside(path, own_folder=self.layers.folder_of(os.path.relpath(path, "src")), text=text)

    def check_header(self, path, lines):
        public = path.startswith("include" + os.sep)  # C compilers read some of these, and users copy them
        guarded = any(line.startswith("#ifndef") for line in lines)
        if not any(line.strip() == "#pragma once" for line in lines) and not (public and guarded):
            self.error(path, 1, "a header needs #pragma once")

    def check_includes(self, path, lines):
        inside = os.path.relpath(path, "src")
        own = self.layers.folder_of(inside)
        if own is None:
            self.error(path, 1, "its folder has no row in src/layers.txt")
            return
        for line_number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            if os.path.exists(os.path.join(self.root, "src", target)):
                other = self.layers.folder_of(target)
                if other != own and other not in self.layers.allowed[own]:
                    self.error(path, line_number, f"{own} may not include {other} (src/layers.txt)")
            elif os.path.exists(os.path.join(self.root, "include", target)):
                if own != "capi":
                    self.error(path, line_number, f"only capi includes the public header {target}")
            elif target.startswith("simulation/"):
                if not path.endswith("_test.cc"):
                    self.error(path, line_number, f"{target} is of tests/simulation, which is for tests alone")
            elif target.startswith("..") or os.path.exists(os.path.join(self.root, os.path.dirname(path), target)):
                self.error(path, line_number, f'write the path of "{target}" from src/')

    def check_grpc(self, path, lines):
        for line_number, line in enumerate(lines, 1):
            if GRPC_INCLUDE.match(line):
                self.error(path, line_number, f"only {GRPC_FOLDER} includes gRPC's headers")

    def check_fatal(self, path, text):
        code = without_comments_and_strings(text)
        for line_number, line in enumerate(code.split("\n"), 1):
            match = FATAL.search(line)
            if match:
                self.error(path, line_number, f"{match.group(1)}() ends the process: return a Status")

    def check_outside(self, path, own_folder, text):
        if own_folder == "base":
            return
        patterns = [] if path in OUTSIDE_ALLOWED else [OUTSIDE]
        if path not in WITHOUT_ENV_ALLOWED:
            patterns.append(WITHOUT_ENV)
        if (own_folder or "").split("/")[0] not in CHOOSE_THE_ENV:
            patterns.append(DEFAULT_ENV)
        for line_number, line in enumerate(without_comments_and_strings(text).split("\n"), 1):
            for match in (p.search(line) for p in patterns):
                if match:
                    self.error(path, line_number, f"{match.group()}: ask an Env (base/env.h) instead")

    def run(self):
        for path in self.files():
            self.check_file(path)
        for path, line, message in python_layers.check(self.root):
            self.error(path, line, message)
        print(f"tidy: {self.errors} errors, {self.warnings} warnings")
        return 1 if self.errors else 0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(here)
    return Tidy(root).run()


if __name__ == "__main__":
    sys.exit(main())
