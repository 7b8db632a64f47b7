# SPDX-License-Identifier: Apache-2.0
"""tf.print: tensors as text, when a step runs."""

from __future__ import annotations

import sys
from typing import Any, List, Optional

from millrace import tf_logging
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.ops import gen_ops, string_ops
from millrace.ops.variables import Variable

__all__ = ["print"]

_LEVELS = {
    tf_logging.debug: "log(info)",
    tf_logging.info: "log(info)",
    tf_logging.warning: "log(warning)",
    tf_logging.warn: "log(warning)",
    tf_logging.error: "log(error)",
}
_MARK = "\x1a"  # stands for a tensor while the text is made


def _text(value: Any, tensors: List[Any], top: bool) -> str:
    """A value as Python prints it, with a mark for each tensor, which goes into `tensors`."""
    if isinstance(value, (Tensor, Variable)):
        tensors.append(convert_to_tensor(value))
        return _MARK
    if isinstance(value, SparseTensor):
        return "'SparseTensor(indices=%s, values=%s, shape=%s)'" % tuple(_text(v, tensors, False) for v in (value.indices, value.values, value.dense_shape))
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%r: %s" % (k, _text(value[k], tensors, False)) for k in sorted(value, key=str))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "%s(%s)" % (type(value).__name__, ", ".join("%s=%s" % (k, _text(v, tensors, False)) for k, v in zip(value._fields, value)))
    if isinstance(value, tuple):
        return "(%s%s)" % (", ".join(_text(v, tensors, False) for v in value), "," if len(value) == 1 else "")
    if isinstance(value, list):
        return "[%s]" % ", ".join(_text(v, tensors, False) for v in value)
    return str(value) if top else repr(value)


def _stream(output_stream: Any) -> str:
    if output_stream is sys.stdout:
        return "stdout"
    if output_stream is None or output_stream is sys.stderr:
        return "stderr"
    if isinstance(output_stream, str) and (output_stream.startswith("file://") or output_stream in ("stdout", "stderr")):
        return output_stream
    for function, name in _LEVELS.items():
        if output_stream == function:
            return name
    raise at_user_line(
        ValueError(
            "Unsupported output stream, logging level, or file: %s. Give sys.stdout, sys.stderr, tf.logging.info, tf.logging.warning, "
            "tf.logging.error, or a path that begins with file://" % (output_stream,)
        )
    )


def print(*inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: Optional[str] = None) -> Operation:
    """An operation that prints values when it runs: tensors, and lists, tuples and dicts that have some, between other text.

    output_stream: sys.stderr (the default), sys.stdout, tf.logging.info and its like, or "file://" with a path, to whose end it writes.
    summarize: so many elements at each end of each dimension; all of them when it is -1.
    """
    if len(inputs) == 1 and isinstance(inputs[0], Tensor) and inputs[0].dtype.name == "string" and inputs[0].get_shape().ndims == 0:
        line: Any = inputs[0]
    else:
        tensors: List[Any] = []
        text = sep.join(_text(value, tensors, True) for value in inputs)
        placeholder = "{}"
        while placeholder in text:
            placeholder = "{%s}" % placeholder
        line = string_ops.string_format(text.replace(_MARK, placeholder), tensors, placeholder, summarize, name + "_format" if name else None)
    return gen_ops.print_v2(line, output_stream=_stream(output_stream), end=end, name=name)
