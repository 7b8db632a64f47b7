# SPDX-License-Identifier: Apache-2.0
"""`millrace launch`: a program as all tasks of a cluster on this host."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any, List, Optional

from millrace.cli.answers import Answer
from millrace.launch import local


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "launch",
        usage="millrace launch [-h] -n WORKERS [--ps PS] [--serve-ps] [--compat] [--json] PROGRAM ...",  # argparse leaves PROGRAM out
        help="run a program as all tasks of a cluster on this host",
        description="Starts the program once for each task, with TF_CONFIG, on ports that are free. Lines "
        "are printed with the task's name. When one task fails all end, and its exit status is the launcher's; when all workers are done parameter servers end.",
    )
    parser.add_argument("-n", "--workers", type=int, required=True, help="how many workers")
    parser.add_argument("--ps", type=int, default=0, help="how many parameter servers")
    parser.add_argument("--serve-ps", action="store_true", help="parameter servers are `millrace serve`, not the program")
    parser.add_argument("--compat", action="store_true", help="the program imports tensorflow: run it by millrace.compat")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM ...", help="a Python file, or another command, and its arguments")
    parser.set_defaults(command=_launch)


def _launch(given: Any) -> Answer:
    program: List[str] = given.program[1:] if given.program[:1] == ["--"] else given.program
    if not program:
        raise ValueError("which program? millrace launch -n 2 program.py arguments")
    if not 1 <= given.workers <= 1000 or not 0 <= given.ps <= 1000:
        raise ValueError("-n is %d and --ps is %d, want 1 to 1000 workers and 0 to 1000 parameter servers" % (given.workers, given.ps))
    if os.path.isdir(program[0]):
        raise ValueError("%s is a folder, want a Python file or another command" % program[0])
    if program[0].endswith(".py") and not os.path.isfile(program[0]):
        raise ValueError("%s: there is no such file" % program[0])
    python = [sys.executable, *(["-m", "millrace.compat"] if given.compat else [])]
    command = [*python, *program] if program[0].endswith(".py") else program

    def of_task(job: str, _: int) -> List[str]:
        return [sys.executable, "-m", "millrace", "serve"] if job == "ps" and given.serve_ps else command

    cluster = local.LocalCluster({"ps": given.ps, "worker": given.workers}, of_task)
    told: List[int] = []

    def stop(number: int, _: Any) -> None:
        told.append(number)
        if len(told) > 1:
            cluster.signal(signal.SIGKILL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # in the tasks too, until they can take it
    try:
        cluster.start()
        print("millrace launch: `millrace top %s` shows what the tasks' servers do" % cluster.cluster["worker"][0], file=sys.stderr, flush=True)
        signal.signal(signal.SIGUSR1, lambda *_: cluster.signal(signal.SIGUSR1))
        code, who = cluster.wait(lambda: bool(told))
    finally:
        cluster.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    stopped_by: Optional[int] = told[0] if told else None
    if stopped_by is not None:
        code, who = 128 + stopped_by, ""
    text = (
        "all tasks are done"
        if code == 0
        else "%s ended with exit status %d; all others were ended" % (who, code)
        if who
        else "all tasks were ended by %s" % signal.Signals(stopped_by or signal.SIGTERM).name
    )
    sys.stdout.flush()
    print("millrace launch: %s" % text, file=sys.stderr)
    return Answer({"status": code, "first": who or None, "cluster": cluster.cluster}, "", code)
