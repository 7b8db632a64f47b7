# SPDX-License-Identifier: Apache-2.0
"""python -m millrace.compat [--numpy-as-is] program.py [arguments]: runs a program that says `import tensorflow as tf`."""
from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from millrace.compat import imports


def _report(kind: Any, value: Any, trace: Any) -> None:
    """The traceback without the frames of this package and of the import machinery."""
    from millrace.framework.registry import PACKAGE_PATH
    hidden = (PACKAGE_PATH, "<frozen ", os.path.dirname(os.__file__) + os.sep + "runpy.py")
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(hidden)]
    if not issubclass(kind, Exception) or not frames:
        traceback.print_exception(kind, value, trace)
        return
    sys.stderr.write("Traceback (most recent call last):\n%s%s" % (
        "".join(traceback.format_list(frames)), "".join(traceback.format_exception_only(kind, value))))


def main() -> None:
    """Runs the program that the command line names."""
    old_names = sys.argv[1:2] != ["--numpy-as-is"]
    if not old_names:
        del sys.argv[1]
    if len(sys.argv) < 2:
        sys.exit("usage: python -m millrace.compat [--numpy-as-is] program.py [arguments]\n"
                 "  --numpy-as-is  leave NumPy and Python without what they had when TensorFlow 1.x was current")
    program = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    imports.install()
    if old_names:
        from millrace.compat import numpy_names, python_names
        numpy_names.install()
        python_names.install()
    sys.excepthook = _report
    with open(program, "rb") as file:
        code = compile(file.read(), program, "exec")
    module = type(sys)("__main__")
    module.__dict__.update(__file__=program, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


if __name__ == "__main__":
    main()
