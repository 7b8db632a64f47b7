# SPDX-License-Identifier: Apache-2.0
"""python -m millrace.compat program.py [arguments]: runs a program that says `import tensorflow as tf`."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import traceback
from typing import Any, NoReturn

from millrace.compat import imports


USAGE = """usage: python -m millrace.compat [--numpy-as-is] program.py [arguments]
       python -m millrace.compat [--numpy-as-is] -m module [arguments]
       python -m millrace.compat [--numpy-as-is] -c code [arguments]
       python -m millrace.compat [--numpy-as-is] - [arguments]: the program is what standard input says
Runs a program that says `import tensorflow as tf`, unchanged, on Millrace.
  --numpy-as-is  leave NumPy, Python and other packages without what they had when TensorFlow 1.x was current
  -h, --help     show this
In a notebook: %load_ext millrace"""


def _report(kind: Any, value: Any, trace: Any) -> None:
    """The traceback without the frames of this package and of the import machinery."""
    from millrace.framework.registry import PACKAGE_PATH

    hidden = (PACKAGE_PATH, "<frozen ", os.path.dirname(os.__file__) + os.sep + "runpy.py")
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(hidden)]
    if not issubclass(kind, Exception) or not frames:
        traceback.print_exception(kind, value, trace)
        return
    sys.stderr.write(
        "Traceback (most recent call last):\n%s%s" % ("".join(traceback.format_list(frames)), "".join(traceback.format_exception_only(kind, value)))
    )


def _run_code(code: Any, name: str) -> None:
    """Runs compiled code as the module __main__; `name` is its file, if it has one."""
    module = type(sys)("__main__")
    module.__dict__.update(__builtins__=__builtins__)
    if name:
        module.__dict__["__file__"] = name
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _refuse(what: str) -> NoReturn:
    """Ends where there is nothing to run, as Python's own command line does."""
    sys.stderr.write("python -m millrace.compat: %s\n" % what)
    sys.exit(2)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if not (name + ".").startswith("%s." % error.name):  # a package of its path imports what is not there
            raise
        return False


def main() -> None:
    """Runs the program that the command line names."""
    arguments = sys.argv[1:]
    old_names = True
    while arguments[:1] == ["--numpy-as-is"]:
        old_names = False
        del arguments[0]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return
    form = arguments[0] if arguments[:1] in (["-c"], ["-m"]) else ""
    given = arguments[1:] if form else arguments
    if not given or (not form and given[0].startswith("-") and given[0] != "-"):
        sys.exit("unknown option %s\n%s" % (given[0], USAGE) if given else USAGE)
    program = given[0]
    if not form and program != "-" and (os.path.isdir(program) or not os.path.exists(program)):
        _refuse("%s is a folder, want a program" % program if os.path.isdir(program) else "%s: there is no such file" % program)
    sys.argv = [form or program] + given[1:]
    sys.path[0] = "" if form == "-c" or program == "-" else os.getcwd() if form == "-m" else os.path.dirname(os.path.abspath(program))
    imports.install()
    if old_names:
        from millrace.compat import dropped_modules, numpy_names, python_names

        numpy_names.install()
        python_names.install()
        dropped_modules.install()
    sys.excepthook = _report
    if form == "-m":
        if not _is_module(program):
            _refuse("there is no module %s" % program)
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    elif form == "-c":
        _run_code(compile(program, "<string>", "exec"), "")
    elif program == "-":
        _run_code(compile(sys.stdin.buffer.read(), "<stdin>", "exec"), "")
    else:
        with open(program, "rb") as file:
            _run_code(compile(file.read(), program, "exec"), program)


if __name__ == "__main__":
    main()
