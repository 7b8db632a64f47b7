# SPDX-License-Identifier: Apache-2.0
"""tf.autograph: Python functions whose `if`, `while`, `for`, `and`, `or`, `not`, `assert` on tensors become operations of the graph."""

from __future__ import annotations

import ast
import inspect
from typing import Any, Callable, Optional

from millrace import tf_logging
from millrace.autograph import conversion, experimental
from millrace.autograph.conversion import converted
from millrace.autograph.experimental import Feature
from millrace.autograph.jumps import CannotConvert
from millrace.framework.errors import at_user_line

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]


def _checked(options: Any) -> None:
    features = options if isinstance(options, (list, tuple, set, frozenset)) else () if options is None else (options,)
    for feature in features:
        if feature in (Feature.LISTS, Feature.EQUALITY_OPERATORS):
            raise at_user_line(NotImplementedError("%s is not provided: use tf.TensorArray, tf.equal" % feature))


def to_graph(entity: Any, recursive: bool = True, arg_values: Any = None, arg_types: Any = None, experimental_optional_features: Any = None) -> Any:
    """The function converted: what it calls too, unless `recursive` is False.

    Raises: ValueError when it is no function; NotImplementedError when it holds what cannot be converted, with the reason."""
    del arg_values, arg_types  # conversion looks at no values
    _checked(experimental_optional_features)
    if not recursive:
        raise at_user_line(NotImplementedError("recursive=False is not provided: mark what is to stay with tf.autograph.experimental.do_not_convert"))
    function = entity.python_function if hasattr(entity, "python_function") else entity
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise at_user_line(ValueError("to_graph converts functions, got %r" % (entity,)))
    made = converted(function)
    if made is function:
        try:
            conversion.restated(function.__code__, function.__qualname__)
        except CannotConvert as error:
            raise at_user_line(NotImplementedError("%s cannot be converted: %s" % (function, error))) from None
    return made


def to_code(
    entity: Any, recursive: bool = True, arg_values: Any = None, arg_types: Any = None, indentation: str = "  ", experimental_optional_features: Any = None
) -> str:
    """The source of the converted function."""
    del recursive, arg_values, arg_types, indentation  # of one function; indented as Python's ast does
    _checked(experimental_optional_features)
    function = inspect.unwrap(entity.python_function if hasattr(entity, "python_function") else entity)
    try:
        node = conversion.restated(function.__code__, function.__qualname__)[1]
    except CannotConvert as error:
        raise at_user_line(NotImplementedError("%s cannot be converted: %s" % (function, error))) from None
    return ast.unparse(ast.fix_missing_locations(node)) + "\n"


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """From level 1 the log says which functions were left as they are, and why."""
    del alsologtostdout  # the log goes where tf.logging's goes
    if level > 0:
        tf_logging.set_verbosity(tf_logging.DEBUG)


def trace(*args: Any) -> None:
    """Prints while the graph is built."""
    print(*args)


def convert(recursive: bool = False, optional_features: Any = None, user_requested: bool = True, **kwargs: Any) -> Callable[..., Any]:
    """A decorator: the function is converted (tf.contrib.autograph.convert)."""
    del recursive, user_requested, kwargs  # everything that is called is converted
    _checked(optional_features)
    return converted
