# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.batching: functions of batches that several steps, run from several threads, fill."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

from millrace.framework.errors import at_user_line
from millrace.framework.function import Defun
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import gen_ops
from millrace.ops.functional_calls import _listed, _name_of
from millrace.ops.gen_ops import batch, unbatch  # noqa: F401

_MINUTE = 60_000_000


def _checked(args: Sequence[Any]) -> None:
    for a in args:
        if not isinstance(a, Tensor):
            raise at_user_line(ValueError("All arguments to functions decorated with `batch_function`  are supposed to be Tensors; found %r" % (a,)))


def called_in_batches(in_tensors: Sequence[Any], captured_tensors: Sequence[Any], f: Any, **attributes: Any) -> Any:
    """The rows of these inputs of what a function (a Defun, or its name) returns for the batch that they become part of."""
    return gen_ops.batch_function(list(in_tensors), list(captured_tensors), f=_name_of(f), **attributes)


def batch_function(
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: Optional[Sequence[int]] = None,
    max_enqueued_batches: int = 10,
    autograph: bool = True,
) -> Callable[..., Any]:
    """Decorator: calls of the function in steps that run at the same time become one call, for the rows of all; each step gets its own rows of the result.

    A batch has max_batch_size rows at most, waits batch_timeout_micros at most for more, and is filled up to one of allowed_batch_sizes. There is no
    gradient (see batch_function_v1). Arguments are tensors with equal first dimensions; autograph is not used.
    """
    del autograph

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        def decorated(*args: Any) -> Any:
            _checked(args)

            @Defun(*[a.dtype for a in args])
            def computation(*batched: Any) -> Any:
                for tensor, given in zip(batched, args):
                    if given.shape.ndims:
                        tensor.set_shape([None, *given.shape.as_list()[1:]])
                return function(*batched)

            with name_scope("batch") as scope:
                made = _listed(
                    called_in_batches(
                        args,
                        computation.captured_inputs,
                        computation,
                        num_batch_threads=num_batch_threads,
                        max_batch_size=max_batch_size,
                        batch_timeout_micros=batch_timeout_micros,
                        max_enqueued_batches=max_enqueued_batches,
                        allowed_batch_sizes=list(allowed_batch_sizes or ()),
                        shared_name=scope,
                        Tout=computation._outputs,
                    )
                )
            return made

        return decorated

    return decorator


def batch_function_v1(
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: Optional[Sequence[int]] = None,
    grad_timeout_micros: int = _MINUTE,
    unbatch_timeout_micros: int = _MINUTE,
    max_enqueued_batches: int = 10,
) -> Callable[..., Any]:
    """Decorator: batch_function with a gradient. The function's nodes are the graph's own; one of the steps of a batch runs them for all, and the
    others wait for their rows, as long as the timeouts say."""

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        def decorated(*args: Any) -> Any:
            _checked(args)
            with name_scope("batch") as scope:
                batched, index, number = gen_ops.batch(
                    args,
                    num_batch_threads=num_batch_threads,
                    max_batch_size=max_batch_size,
                    batch_timeout_micros=batch_timeout_micros,
                    max_enqueued_batches=max_enqueued_batches,
                    allowed_batch_sizes=list(allowed_batch_sizes or ()),
                    grad_timeout_micros=grad_timeout_micros,
                    shared_name=scope,
                )
                results = function(*batched)
                with name_scope("unbatch") as inner:
                    rows: List[Any] = [
                        gen_ops.unbatch(t, index, number, timeout_micros=unbatch_timeout_micros, shared_name="%s/%s" % (inner, t.name))
                        for t in ([results] if isinstance(results, Tensor) else results)
                    ]
            return rows[0] if isinstance(results, Tensor) else rows

        return decorated

    return decorator
