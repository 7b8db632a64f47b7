# SPDX-License-Identifier: Apache-2.0
"""Runs the calls of the table on a module: Millrace's, or (as a program of its own) the TensorFlow wheel's compat.v1."""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, Dict, Tuple

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def evaluate(tf: Any, call: Any) -> Any:
    """What a call gives, in a graph of its own."""
    with tf.Graph().as_default():
        result = call(tf)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return _values(session, result)


def _values(session: Any, result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        # One run for all tensors, since they may be random.
        tensors = [x for x in result if _is_tensor(x)]
        values = iter(session.run(tensors)) if tensors else iter(())
        return type(result)([next(values) if _is_tensor(x) else _values(session, x) for x in result])
    return session.run(result) if _is_tensor(result) else result


def _is_tensor(x: Any) -> bool:
    return hasattr(x, "graph") and not isinstance(x, (np.ndarray, np.generic))


def same(got: Any, wanted: Any, types: bool = True) -> Any:
    """None when they are equal, else what differs."""
    if isinstance(wanted, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return same(np.asarray(got), np.asarray(wanted), types) if isinstance(got, np.ndarray) else "got %r" % (got,)
        return next((d for d in (same(g, w, types) for g, w in zip(got, wanted)) if d is not None), None)
    if wanted is None or isinstance(wanted, (str, bytes)):
        return None if got == wanted else "got %r" % (got,)
    if isinstance(got, list) and len(got) == 1 and np.ndim(wanted) != 1:
        got = got[0]
    a, b = np.asarray(got), np.asarray(wanted)
    if a.shape != b.shape:
        return "shape %s, not %s" % (a.shape, b.shape)
    if (
        types
        and isinstance(got, (np.ndarray, np.generic))
        and isinstance(wanted, (np.ndarray, np.generic))
        and a.dtype != b.dtype
        and not (a.dtype.kind == b.dtype.kind == "f" and b.ndim == 0)
        and a.dtype.kind + b.dtype.kind != "OS"
    ):
        return "%s, not %s" % (a.dtype, b.dtype)
    equal = np.allclose(a, b, 2e-5, 2e-6, True) if b.dtype.kind in "fc" else np.array_equal(a, b)
    return None if equal else "got %s" % (a,)


def reference(tf: Any) -> Dict[Tuple[str, int], Any]:
    """(function, number of the call): ("value", value) or ("error", text)."""
    from suite import CASES

    found: Dict[Tuple[str, int], Any] = {}
    for c in CASES:
        for i, call in enumerate(c.calls if c.wheel else ()):
            try:
                found[c.name, i] = "value", evaluate(tf, call)
            except Exception as error:
                found[c.name, i] = "error", "%s: %s" % (type(error).__name__, str(error)[:200])
    return found


if __name__ == "__main__":
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
    import tensorflow.compat.v1 as wheel

    wheel.disable_v2_behavior()
    wheel.logging.set_verbosity(wheel.logging.ERROR)
    with open(sys.argv[1], "wb") as out:
        pickle.dump(reference(wheel), out)
