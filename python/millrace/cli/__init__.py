# SPDX-License-Identifier: Apache-2.0
"""The program `millrace` (also `python -m millrace`): looks at, runs, converts and compares graphs, models, checkpoints and record files.

Answers go to standard output, as text or with --json as one JSON value; what went wrong and how far long work has come go to standard error. Exit
status: 0, 1 when `diff` finds a difference, 2 when the command line or its input is wrong, 138 when `serve` finds its port taken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import Any, List, Optional

import numpy as np

from millrace import settings
from millrace.cli import certs, compare, convert, doctor, inspect, launch, run, serve, top, trace
from millrace.framework import versions
from millrace.launch import contract


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="millrace", description="Looks at, runs, converts and compares graphs, models, checkpoints and record files.")
    parser.add_argument("--version", action="store_true", help="say which Millrace this is")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in (inspect, run, trace, convert, compare, serve, launch, top, certs, doctor):
        module.add_to(commands)
    for command in {id(c): c for c in commands.choices.values()}.values():
        command.add_argument("--json", action="store_true", help="answer with one JSON value, for programs")
    return parser


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs a command line (that of the process when it is not given); the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.version:
        print(versions.GIT_VERSION)
        return 0
    if "command" not in given:
        parser.print_help(sys.stderr)
        return 2
    try:
        answer = given.command(given)
        if given.json or answer.text:
            print(json.dumps(_plain(answer.facts), indent=2, default=str, allow_nan=False) if given.json else answer.text)
        sys.stdout.flush()
        return int(answer.status)
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if _shows_tracebacks():
            raise
        print("millrace: %s" % _told(error), file=sys.stderr)
        return contract.LOST_PEER if contract.is_taken_port(error) else 2


def _shows_tracebacks() -> bool:
    try:
        return settings.text("MILLRACE_TRACEBACK") == "1"
    except (ValueError, RuntimeError):  # what is wrong with it, or with the library, hides no other error
        return False


def _plain(facts: Any) -> Any:
    """Facts that JSON can say: numbers that are none, and infinite ones, become the strings NaN, Infinity and -Infinity."""
    if isinstance(facts, dict):
        return {key: _plain(value) for key, value in facts.items()}
    if isinstance(facts, (list, tuple)):
        return [_plain(value) for value in facts]
    if isinstance(facts, (float, complex, np.floating)) and not np.isfinite(facts):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(facts), str(facts))
    return facts


def _told(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror:
        return "%s: %s" % (error.filename, error.strerror)
    if isinstance(error, KeyError) and error.args:  # whose text has quotes around it
        return str(error.args[0])
    text = str(getattr(error, "message", "") or error or type(error).__name__)
    return re.sub(r"\. At \S*:\d+\Z", "", text)  # the program that called is this one
