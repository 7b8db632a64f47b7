# SPDX-License-Identifier: Apache-2.0
"""Which lines of a program made which operations of a graph, as JSON that TensorBoard's trace plugin of 1.2 to 1.8 reads: a TraceInfo."""

from __future__ import annotations

import io
import json
import os
import re
import tokenize
from typing import Any, Dict, List, Optional, Sequence, Set

from millrace import gfile
from millrace.framework import errors
from millrace.framework.graph import get_default_graph
from millrace.protos.definitions import TraceInfo as TraceInfo  # type: ignore[attr-defined]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TF_LIB_REGEX_FPATHS = ["^" + re.escape(_PACKAGE + os.sep), os.path.join("bin", "ipython"), r"<frozen "]
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)


def store_trace_info(output_file_path: str, graph: Any = None, ignore_regex_fpaths: Optional[Sequence[str]] = None) -> None:
    """Writes the operations of a graph with the lines that made them, and the files of these lines, but for files whose paths match one of the patterns:
    where none are given, this package's."""
    ignored = [re.compile(pattern) for pattern in ignore_regex_fpaths or TF_LIB_REGEX_FPATHS]
    ops: List[Dict[str, Any]] = []
    paths: Set[str] = set()
    for op in (graph or get_default_graph()).get_operations():
        lines = [(frame[0], frame[1]) for frame in op.traceback if os.path.isabs(frame[0]) and not any(p.search(frame[0]) for p in ignored)]
        paths.update(path for path, _ in lines)
        ops.append({
            "name": op.name,
            "opType": op.type,
            "device": op.device or "",
            "traceback": [{"filePath": path, "lineNumber": line} for path, line in lines],
            "inputs": [_tensor(t) for t in op.inputs],
            "outputs": [_tensor(t) for t in op.outputs],
        })  # fmt: skip
    made: Dict[str, Any] = {"ops": ops, "files": [_file(path) for path in sorted(paths)]}
    with gfile.Open(output_file_path, "w") as file:
        file.write(json.dumps(made, indent=2))


def _tensor(tensor: Any) -> Dict[str, Any]:
    shape = tensor.get_shape()
    sizes = [] if shape.ndims is None else [-1 if size is None else size for size in shape.as_list()]
    consumers = [op.name for op in tensor.consumers()]
    return {"shape": sizes, "dtype": tensor.dtype.name, "numBytesPerElem": tensor.dtype.size or 0, "consumers": consumers}


def _file(path: str) -> Dict[str, Any]:
    try:
        with gfile.Open(path) as file:
            source = file.read()
        lines = find_multiline_statements(source)
    except (errors.OpError, SyntaxError, tokenize.TokenError, UnicodeDecodeError):  # of a program that is no file any more, or no such text
        return {"filePath": path}
    return {"filePath": path, "sourceCode": source, "multilineStatements": {str(end): start for end, start in lines.items()}}


def find_multiline_statements(source: str) -> Dict[int, int]:
    """{last line: first line}, from 0, of the statements of a source that are of several lines. SyntaxError or TokenError for what is no Python."""
    found: Dict[int, int] = {}
    first: List[int] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            last = token.start[0] - 1
            if first and first[0] < last:
                found[last] = first[0]
            first = []
        elif token.type not in _NO_CODE and not first:
            first = [token.start[0] - 1]
    return found
