# SPDX-License-Identifier: Apache-2.0
"""Changes recorded cases and runs each variant on TensorFlow's library and on ours: where do they differ?

  vary.py LIB.so [--seed N] [--count K] [--only TEXT] [--wave N] [--kind KIND] [--shard I/N] [--out FILE]
  vary.py LIB.so --only CASE --seed N --number K --show     one variant, what was fed and what came out

Needs a Python with TensorFlow 2.21 and ml_dtypes, and the folder `shared/peer` of tests/peer/run.py; says "skipped" and
exits 77 without them. Both libraries run in child processes, so that an abort or a wait without end costs one variant.
A difference counts when it is there a second time, and TensorFlow said the same twice. Judged are values, error codes
and gradients. Ours are compared with the gradient nodes that TensorFlow's Python made where the variant kept them, else
with TF_AddGradients of TensorFlow. Verdicts: wrong, error (we refuse), noerror (TensorFlow refuses), code (another),
missing (UNIMPLEMENTED), crash, hang; "import" before it where one refuses the graph itself; "grad" or "built" before it
for gradients. Not every difference is a fault of ours: docs/compatibility.md lists what TensorFlow leaves open.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("MILLRACE_SHARED") or os.path.join(HERE, "..", "..", "..", "shared")
MEMORY = 8 << 30
RESOURCE_EXHAUSTED, UNIMPLEMENTED = 8, 12
# Ops whose results nobody promises: random values, memory as it was, times and places.
SHAPE_ONLY = ("Random", "Empty", "Multinomial", "Stateless", "Sampler", "Candidate", "Dropout", "Timestamp")


def skip(why: str) -> None:
    print("skipped: " + why)
    sys.exit(77)


def outcome(run: Any) -> Any:
    """What a call gives: a list of arrays, or (code, message)."""
    import capi

    try:
        return run()
    except capi.TfError as error:
        return error.code, error.msg[:300]
    except MemoryError:
        return RESOURCE_EXHAUSTED, "this Python is out of memory"


def run_steps(graph: Any, variant: dict[str, Any], folder: str) -> list[Any]:
    from tmp_paths import subst

    def step(s: dict[str, Any]) -> Any:
        feeds = {name: subst(value, folder) for name, value in s["feeds"].items()}
        return graph.run(feeds, s["fetches"], s["targets"], s["dtypes"])

    return [outcome(lambda s=s: step(s)) for s in variant["steps"]]


def run_gradients(library: Any, variant: dict[str, Any], made: bool) -> Any:
    """The gradients: those whose nodes stand in the graph, or those that the library adds."""
    import capi
    from tmp_paths import subst

    grad = variant["grad"]
    feeds = {name: subst(value, "/tmp") for name, value in grad["feeds"].items()}
    graph = capi.Graph(library, variant["graph"])
    if made:
        result = graph.run(feeds, grad["built"], [], grad["dtypes"])
    else:
        outputs = graph.gradients(grad["ys"], grad["xs"])
        there = [o for o in outputs if o.oper]
        values = iter(graph.run_outputs(feeds, there, grad["dtypes"]))
        result = [next(values) if o.oper else None for o in outputs]
    graph.close()
    return result


def serve(path: str, is_peer: bool, pipe: Any) -> None:
    """A child: runs the variants that come, until None."""
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.path.insert(0, os.path.join(SHARED, "peer"))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    import capi

    library = capi.Lib(capi.tf_lib() if is_peer else path)
    pipe.send("ready")
    while (variant := pipe.recv()) is not None:
        folder = tempfile.mkdtemp()
        graph = outcome(lambda v=variant: capi.Graph(library, v["graph"]))
        if isinstance(graph, tuple):
            pipe.send({"import": graph})
        else:
            answer: dict[str, Any] = {"steps": run_steps(graph, variant, folder)}
            graph.close()
            pipe.send(dict(answer))
            grad = variant["grad"]
            if grad and not any(isinstance(s, tuple) for s in answer["steps"]):
                if grad["built"]:
                    answer["built"] = outcome(lambda v=variant: run_gradients(library, v, True))
                if not (is_peer and grad["built"]):
                    answer["grad"] = outcome(lambda v=variant: run_gradients(library, v, False))
            pipe.send(answer)
        shutil.rmtree(folder, ignore_errors=True)


class Side:
    """One of the two libraries, in a child that is started again when it dies."""

    def __init__(self, path: str, is_peer: bool, timeout: float) -> None:
        self.path, self.is_peer, self.timeout = path, is_peer, timeout
        self.context = multiprocessing.get_context("spawn")
        self.child: Any = None

    def start(self) -> None:
        self.pipe, other = self.context.Pipe()
        self.child = self.context.Process(target=serve, args=(self.path, self.is_peer, other), daemon=True)
        self.child.start()
        other.close()
        if not self.pipe.poll(120) or self.pipe.recv() != "ready":
            sys.exit("the library does not load: " + self.path)

    def send(self, variant: dict[str, Any]) -> None:
        if self.child is None:
            self.start()
        self.pipe.send(variant)

    def receive(self) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        try:
            while True:
                if not self.pipe.poll(self.timeout):
                    self.child.kill()
                    answer["end"] = "hang"
                    break
                first = not answer
                answer = self.pipe.recv()
                if "import" in answer or not first:
                    return answer
        except (EOFError, ConnectionResetError):
            answer["end"] = "crash"
        self.child.join()
        self.child = None
        return answer

    def stop(self) -> None:
        if self.child is not None:
            self.pipe.send(None)
            self.child.join(5)
            self.child.kill()


def compare_results(want: Any, got: Any, judge: Any) -> tuple[str, str] | None:
    """Two outcomes of a run."""
    if isinstance(want, tuple):
        if not isinstance(got, tuple):
            return "noerror", f"should fail with {want[0]}: {want[1]}"
        if got[0] != want[0]:
            verdict = "missing" if got[0] == UNIMPLEMENTED else "code"
            return verdict, f"{got[0]} ({got[1][:160]}), want {want[0]} ({want[1][:160]})"
        return None
    if isinstance(got, tuple):
        return ("missing" if got[0] == UNIMPLEMENTED else "error"), f"{got[0]}: {got[1]}"
    for number, (a, b) in enumerate(zip(want, got)):
        if a is None or b is None:
            if (a is None) != (b is None):
                return "wrong", f"output {number}: is missing on one side"
            continue
        if (difference := judge(a, b)) is not None:
            return "wrong", f"output {number}: {difference}"
    return None


def judges(variant: dict[str, Any]) -> tuple[Any, Any]:
    from diff import same

    loose = variant["check"] != "close" or variant["name"].startswith(SHAPE_ONLY)

    def value(a: Any, b: Any) -> str | None:
        if loose and not isinstance(a, str):
            return None if a.shape == b.shape and a.dtype == b.dtype else f"shape {b.shape}, want {a.shape}"
        return None if isinstance(a, str) else same(a, b, variant["tol"])

    return value, lambda a, b: None if loose or isinstance(a, str) else same(a, b, (variant["tol"] or 0) * 5 or None)


def compare(variant: dict[str, Any], want: dict[str, Any], got: dict[str, Any]) -> tuple[str, str] | None:
    """(verdict, detail) where ours falls short."""
    if want.get("end") == got.get("end") == "hang":
        return None
    if "end" in got:
        return got["end"], "in the steps" if "steps" not in got else "in the gradients"
    if "import" in want:
        if "import" in got:
            return compare_results(want["import"], got["import"], None)
        steps = got["steps"]
        if steps and any(isinstance(s, tuple) and s[0] == want["import"][0] for s in steps):
            return None  # refused later
        first = compare_results(want["import"], steps[-1] if steps else [], None)
        return ("import " + first[0], first[1]) if first else None
    if "steps" not in want:
        return None
    if "import" in got:
        if any(isinstance(s, tuple) and s[0] == got["import"][0] for s in want["steps"]):
            return None  # refused earlier
        return "import error", f"{got['import'][0]}: {got['import'][1]}"
    value, gradient = judges(variant)
    for number, (a, b) in enumerate(zip(want["steps"], got["steps"])):
        if found := compare_results(a, b, value):
            return found[0], f"step {number} {found[1]}"
        if isinstance(a, tuple) and not variant["recorded"][number]:
            return None  # what else of a refused step ran, and what it leaves behind, is open
    return compare_gradients(variant, want, got, gradient)


def compare_gradients(variant: dict[str, Any], want: Any, got: Any, judge: Any) -> tuple[str, str] | None:
    theirs = want.get("built", want.get("grad"))
    if theirs is None or isinstance(theirs, tuple) or not variant["tame"]:
        return None
    for which in ("built", "grad"):
        if which in got and (found := compare_results(theirs, got[which], judge)):
            return f"{which} {found[0]}", found[1]
    return None


def run_once(sides: list[Side], variant: dict[str, Any]) -> tuple[Any, Any]:
    for side in sides:
        side.send(variant)
    peer, ours = (side.receive() for side in sides)
    return peer, ours


def agrees(variant: dict[str, Any], first: Any, second: Any) -> bool:
    """Does TensorFlow say the same twice? Where it does not, it shows memory that nobody wrote."""
    return "end" in first or "end" in second or compare(variant, first, second) is None


def op_of(variant: dict[str, Any]) -> str:
    return str(variant["name"].split("/")[0])


def report(found: list[dict[str, Any]], examples: int) -> None:
    groups = collections.defaultdict(list)
    for row in found:
        groups[row["op"], row["verdict"]].append(row)
    for (op, verdict), rows in sorted(groups.items(), key=lambda g: (g[0][1], -len(g[1]), g[0][0])):
        print(f"{verdict:14} {op} x{len(rows)}")
        for row in rows[:examples]:
            print(f"    {row['name']} --number {row['number']} [{row['kind']}: {row['note']}] {row['detail'][:260]}")


def show(variant: dict[str, Any], peer: Any, ours: Any) -> None:
    from tensorflow.core.framework import graph_pb2

    graph = graph_pb2.GraphDef.FromString(variant["graph"])
    print(variant["name"], variant["note"])
    for node in graph.node:
        text = " ".join(str(node.attr[a]).replace("\n", " ")[:160].join([a + "={", "}"]) for a in sorted(node.attr))
        print(" ", node.name, node.op, list(node.input), text)
    for number, step in enumerate(variant["steps"]):
        for name, value in step["feeds"].items():
            print(f"  step {number} {name} {getattr(value, 'dtype', '')}{getattr(value, 'shape', '')} {value!r:.600}")
        for side, answer in (("tensorflow", peer), ("ours", ours)):
            print(f"  {side}: {answer.get('steps', [answer] * (number + 1))[number]!r:.1500}")
    for which in ("built", "grad"):
        for side, answer in (("tensorflow", peer), ("ours", ours)):
            if which in answer:
                print(f"  {which} {side}: {answer[which]!r:.1500}")


def chosen(cases: list[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    from diff import waves

    wave = waves(os.path.join(SHARED, "spec", "op-waves.txt"))
    part, parts = (int(x) for x in args.shard.split("/"))
    taken = [c for c in cases if args.only in c["name"] and all(wave.get(o, 9) <= args.wave for o in c["ops"])]
    return taken[part::parts]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4, help="variants of each case")
    parser.add_argument("--number", type=int, help="only the variant of this number")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--kind", default="", help="only changes of this kind")
    parser.add_argument("--no-gradients", action="store_true")
    parser.add_argument("--wave", type=int, default=2)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--examples", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--out", help="write every difference there as JSON")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(SHARED, "peer", "goldens.pkl.xz")):
        skip("there are no recorded cases")
    for module in ("tensorflow", "ml_dtypes"):
        if importlib.util.find_spec(module) is None:
            skip(f"this Python lacks {module}")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.path[:0] = [HERE, os.path.join(SHARED, "peer")]
    import diff
    import variants

    cases = chosen(diff.load(os.path.join(SHARED, "peer", "goldens.pkl.xz")), args)
    sides = [Side("", True, args.timeout), Side(os.path.abspath(args.library), False, args.timeout)]
    counts: collections.Counter[str] = collections.Counter()
    found, shown = [], time.monotonic()
    for at, case in enumerate(cases):
        for number in range(args.count) if args.number is None else [args.number]:
            variant = variants.make(case, args.seed, number, args.kind, not args.no_gradients)
            if variant is None:
                continue
            counts["variants"] += 1
            peer, ours = run_once(sides, variant)
            counts["TensorFlow died"] += "end" in peer
            counts["TensorFlow refused"] += "import" in peer or any(isinstance(s, tuple) for s in peer.get("steps", ()))
            if args.show:
                show(variant, peer, ours)
            difference = compare(variant, peer, ours)
            if difference is not None:
                again, ours = run_once(sides, variant)
                difference = compare(variant, again, ours) if agrees(variant, peer, again) else None
            if difference is not None:
                counts[difference[0]] += 1
                row = {k: variant[k] for k in ("name", "number", "kind", "note")}
                row.update(op=op_of(variant), verdict=difference[0], detail=difference[1], seed=args.seed)
                found.append(row)
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"{at + 1} of {len(cases)} cases: {dict(counts)}", file=sys.stderr, flush=True)
            if args.out:
                with open(args.out, "w") as file:
                    json.dump(found, file, indent=1)
    for side in sides:
        with contextlib.suppress(OSError):
            side.stop()
    report(found, args.examples)
    print(f"{len(cases)} cases, seed {args.seed}: {dict(counts)}")
    if args.out:
        with open(args.out, "w") as file:
            json.dump(found, file, indent=1)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
