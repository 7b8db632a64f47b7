# SPDX-License-Identifier: Apache-2.0
"""What goes wrong when a graph runs, by kind, and how the library's errors become exceptions."""

from __future__ import annotations

import re
import warnings
from typing import Any, Dict, Optional, Type, TypeVar

import millrace._core as _core

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = range(8)
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = range(8, 15)
DATA_LOSS, UNAUTHENTICATED = 15, 16


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor is asked for what only its value has."""


class OpError(Exception):
    """An error of running an operation. `op` is the operation where it is known, `message` says what is wrong."""

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int = 2) -> None:
        super().__init__(message)
        self._node_def, self._op, self._message, self._error_code = node_def, op, message, error_code

    @property
    def message(self) -> str:
        """What is wrong."""
        return self._message

    @property
    def op(self) -> Any:
        """The operation that failed, or None."""
        return self._op

    @property
    def error_code(self) -> int:
        """The number of its kind, such as tf.errors.INVALID_ARGUMENT."""
        return self._error_code

    @property
    def node_def(self) -> Any:
        """The NodeDef of the operation that failed, or None."""
        return self._node_def if self._node_def is not None or self._op is None else self._op.node_def

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> Any:
        return type(self), (None, None, self._message, self._error_code)  # an operation stays where its graph is


_CLASSES: Dict[int, Type[OpError]] = {}


def _define(name: str, code: int, doc: str) -> Type[OpError]:
    def __init__(self: OpError, node_def: Any, op: Any, message: str, error_code: int = code) -> None:
        OpError.__init__(self, node_def, op, message, error_code if code == UNKNOWN else code)

    made = type(name, (OpError,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})
    _CLASSES[code] = made
    return made


CancelledError = _define("CancelledError", CANCELLED, "The step was cancelled.")
UnknownError = _define("UnknownError", UNKNOWN, "An error of no known kind.")
InvalidArgumentError = _define("InvalidArgumentError", INVALID_ARGUMENT, "An operation got a wrong argument.")
DeadlineExceededError = _define("DeadlineExceededError", DEADLINE_EXCEEDED, "It took longer than it was given.")
NotFoundError = _define("NotFoundError", NOT_FOUND, "Something that was asked for, such as a file, is not there.")
AlreadyExistsError = _define("AlreadyExistsError", ALREADY_EXISTS, "Something that was to be made is there already.")
PermissionDeniedError = _define("PermissionDeniedError", PERMISSION_DENIED, "Not allowed.")
UnauthenticatedError = _define("UnauthenticatedError", UNAUTHENTICATED, "The caller has not said who it is.")
ResourceExhaustedError = _define("ResourceExhaustedError", RESOURCE_EXHAUSTED, "Memory or another resource is used up.")
FailedPreconditionError = _define(
    "FailedPreconditionError", FAILED_PRECONDITION, "The system is not in the state that is needed, such as an uninitialised variable."
)
AbortedError = _define("AbortedError", ABORTED, "It was given up, and may be tried again.")
OutOfRangeError = _define("OutOfRangeError", OUT_OF_RANGE, "Past the end, as when an input has no more elements.")
UnimplementedError = _define("UnimplementedError", UNIMPLEMENTED, "Not provided.")
InternalError = _define("InternalError", INTERNAL, "A fault of the library.")
UnavailableError = _define("UnavailableError", UNAVAILABLE, "A task cannot be reached at the moment.")
DataLossError = _define("DataLossError", DATA_LOSS, "Stored data is damaged.")


def exception_type_from_error_code(error_code: int) -> Type[OpError]:
    """The class of a number."""
    return _CLASSES[error_code]


def _make_specific_exception(node_def: Any, op: Any, message: str, error_code: int) -> OpError:
    """The exception of a number; UnknownError, with a warning, where no class has it."""
    if error_code in _CLASSES:
        return _CLASSES[error_code](node_def, op, message)
    warnings.warn("Unknown error code: %d" % error_code, stacklevel=2)
    return UnknownError(node_def, op, message, error_code)


def error_code_from_exception_type(cls: Type[OpError]) -> int:
    """The number of a class; with a warning an UnknownError, as in TensorFlow, where it is none of these."""
    for code, known in _CLASSES.items():
        if known is cls:
            return code
    warnings.warn("Unknown class exception", stacklevel=2)
    return UnknownError(None, None, "Unknown class exception: %s" % cls)  # type: ignore[return-value]


Error = TypeVar("Error", bound=Exception)


def _with_user_line(text: str) -> str:
    file, line = _core.user_location()
    where = "%s:%d" % (file, line)
    if not file or re.search(re.escape(where) + r"(?!\d)", text):
        return text
    return "%s%s At %s" % (text, "" if text.endswith((".", "?")) else ".", where)


def at_user_line(error: Error) -> Error:
    """The error with the line of the program that is being run at the end of its message."""
    error.args = (_with_user_line(str(error.args[0])),)
    if isinstance(error, OpError):
        error._message = error.args[0]
    return error


def made_at(tensor: Any) -> str:
    """ ", made at file:line" of a tensor."""
    where = tensor.op._location
    return ", made at %s" % where if where else ""


def warn_growth(line: str, operations: int) -> None:
    """Warns of a line that adds operations between runs."""
    file, _, number = line.rpartition(":")
    warnings.warn_explicit(
        "The graph grows in a loop: operations made here were new in four runs (the graph has %d now). Each such run is prepared "
        "anew, and the memory comes back with the graph only. Make them before the loop and feed what changes; Graph.finalize() "
        "makes it an error." % operations,
        RuntimeWarning,
        file,
        int(number),
    )


_NODE = re.compile(r"\[\[node ([A-Za-z0-9.][A-Za-z0-9_.\\/>-]*) \(")
_QUOTED = re.compile(r"'([A-Za-z0-9.][A-Za-z0-9_.\\/>-]*)'")
_MOST_INPUTS = 6


def _operation_in(message: str, graph: Any) -> Optional[Any]:
    """The operation that a message is about."""
    for name in _NODE.findall(message) + _QUOTED.findall(message):
        found = graph._find(name)
        if found is not None:
            return found
    return None


def _inputs_of(op: Any) -> str:
    """Lines that say what the inputs of an operation are, and where they were made."""
    lines = ["\n\t input %d: %s%s" % (i, x, made_at(x)) for i, x in enumerate(op.inputs)]
    if len(lines) > _MOST_INPUTS:
        lines[_MOST_INPUTS:] = ["\n\t and %d more" % (len(lines) - _MOST_INPUTS)]
    return "".join(lines)


def _why_closed(graph: Any) -> str:
    """A line that says what went wrong in a thread that fills a queue, so that the queues were closed; "" when nothing did."""
    for runner in graph.get_collection("queue_runners"):
        failure = getattr(runner, "failure", None)
        if failure is not None and not isinstance(failure, (OutOfRangeError, CancelledError)):
            return "\n\t A thread that fills queue %r had failed: %s: %s" % (runner.name, type(failure).__name__, str(failure).split("\n", 1)[0])
    return ""


def error_for(code: int, message: str, building: bool, graph: Any) -> Exception:
    """What to raise of what the library reported: ValueError and its like for graphs that cannot be built."""
    op = None if graph is None else _operation_in(message, graph)
    if code == FAILED_PRECONDITION and "uninitialized" in message:
        message = message.replace("\n", ". Run tf.global_variables_initializer() or restore a checkpoint before\n", 1)
    if op is not None and _NODE.search(message):
        message += _inputs_of(op)
    elif not message.endswith("."):  # a sentence is a text of TensorFlow's, and stays as it is
        message = _with_user_line(message)
    if graph is not None and code in (OUT_OF_RANGE, CANCELLED) and not building:
        message += _why_closed(graph)
    if building:
        if code == UNIMPLEMENTED:
            return NotImplementedError(message)
        if (code == NOT_FOUND and "gradient" in message.lower()) or (code == INVALID_ARGUMENT and "Gradient explicitly disabled" in message):
            return LookupError(message)
        if code == NOT_FOUND and "op type" in message.lower():
            return ValueError(message)
        if code in (INVALID_ARGUMENT, OUT_OF_RANGE, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION):
            return ValueError(message)
    return _CLASSES.get(code, UnknownError)(None, op, message)


class _Status:
    """How a call of the C API went: always well, since Millrace's own calls raise what went wrong."""

    code, message = 0, ""


class ScopedTFStatus:
    """What holds a status, for calls that take one."""

    def __init__(self) -> None:
        self.status = _Status()


class raise_exception_on_not_ok_status:
    """Kept for programs that import it; statuses are checked already."""

    def __enter__(self) -> _Status:
        return _Status()

    def __exit__(self, *unused: Any) -> None:
        return None
