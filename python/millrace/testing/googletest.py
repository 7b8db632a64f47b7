# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.platform.googletest: unittest, with a folder for tests, replaced attributes and sharded runs."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import sys
import tempfile
import unittest
from typing import Any, List, Optional, Tuple
from unittest import *  # noqa: F403

from millrace.testing.benchmark import Benchmark, run_benchmarks  # noqa: F401

_folder: Optional[str] = None


def GetTempDir() -> str:
    """A folder for the tests of this process, which is deleted at its end."""
    global _folder
    if _folder is None:
        name = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
        _folder = tempfile.mkdtemp(prefix=name)
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    return _folder


def test_src_dir_path(relative_path: str) -> str:
    """Where a file of TensorFlow's source tree is when tests are run by Bazel."""
    return os.path.join(os.environ["TEST_SRCDIR"], "org_tensorflow", "tensorflow", relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]


def StatefulSessionAvailable() -> bool:
    """Never."""
    return False


class StubOutForTesting:
    """Replaces attributes of modules, classes and objects; CleanUp, or the end of a context, puts them back."""

    def __init__(self) -> None:
        self._kept: List[Tuple[Any, str, bool, Any]] = []

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Replaces an attribute of one object."""
        own = vars(parent) if hasattr(parent, "__dict__") else {}
        old = own[child_name] if child_name in own else getattr(parent, child_name)
        self._kept.append((parent, child_name, child_name in own, old))
        setattr(parent, child_name, new_child)

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:
        """Replaces an attribute where it is defined: of an object without it, in the class that has it."""
        owner = obj
        if not isinstance(obj, type(sys)) and attr_name not in vars(obj):
            kinds = obj.__mro__ if isinstance(obj, type) else type(obj).__mro__
            owner = next((k for k in kinds if attr_name in vars(k)), None)
        if owner is None or not hasattr(owner, attr_name):
            raise AttributeError("Attribute not found.")
        self.Set(owner, attr_name, new_attr)

    def CleanUp(self) -> None:
        """Puts all back, the last one first."""
        while self._kept:
            parent, name, own, old = self._kept.pop()
            if own or isinstance(parent, type(sys)):
                setattr(parent, name, old)
            else:
                delattr(parent, name)

    UnsetAll = SmartUnsetAll = CleanUp

    def __enter__(self) -> "StubOutForTesting":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.CleanUp()


def g_main(argv: Any) -> None:
    """Runs the tests, or this process's share of them when the environment says that there are several."""
    shards, index = os.environ.get("TEST_TOTAL_SHARDS"), os.environ.get("TEST_SHARD_INDEX")
    if os.environ.get("TEST_SHARD_STATUS_FILE"):
        with open(os.environ["TEST_SHARD_STATUS_FILE"], "w", encoding="utf-8"):
            pass
    loader = unittest.TestLoader()
    if shards is not None and index is not None:
        turns, names_of = itertools.cycle(range(int(shards))), loader.getTestCaseNames
        loader.getTestCaseNames = lambda case: [n for n in sorted(names_of(case)) if next(turns) == int(index)]  # type: ignore[method-assign, assignment]
    unittest.main(module="__main__", argv=argv, testLoader=loader)


def main(argv: Any = None) -> None:  # type: ignore[no-redef]
    """Runs the tests of the program; with --benchmarks=PATTERN its benchmarks."""
    from millrace import flags

    arguments = sys.argv if argv is None else argv
    for argument in arguments:
        if argument.startswith("--benchmarks="):
            run_benchmarks(argument.partition("=")[2])
            return
    g_main(flags.FLAGS(arguments))
