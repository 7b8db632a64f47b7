# SPDX-License-Identifier: Apache-2.0
"""make_template: functions whose calls share variables."""

from __future__ import annotations

import functools
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, get_collection
from millrace.framework.registry import PACKAGE_PATH
from millrace.ops.variable_scope import variable_scope

_calls = threading.local()  # .running: the templates that are being called, the innermost last


def _skip_common_stack_elements(stacktrace: List[Any], base_case: List[Any]) -> List[Any]:
    """The end of a stack that another one does not have; its last element where they are equal."""
    for i, (here, there) in enumerate(zip(stacktrace, base_case)):
        if here != there:
            return stacktrace[i:]
    return stacktrace[-1:]


class Template:
    """A function that makes its variables when it is called first, and uses them again in each call after that.

    Checkpoints of objects keep its variables, by their names within its scope, and the templates that it calls.
    """

    def __init__(
        self, name: str, func: Callable[..., Any], create_scope_now: bool = False, unique_name: Optional[str] = None, custom_getter: Any = None
    ) -> None:
        if name is None:
            raise at_user_line(ValueError("name cannot be None."))
        self._func, self._template_name, self._unique_name, self._getter = func, name, unique_name, custom_getter
        self._scope: Any = None
        self._variables_created = False
        self._called_within: List[Template] = []
        self._kept: List[Any] = []  # the variables of its calls, which checkpoints know: others may come into its scope, as optimizers make theirs there
        self._made_at = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(1)), limit=20, lookup_lines=False)
        if create_scope_now:  # without a name scope: the first call opens that
            with self._open(auxiliary_name_scope=False) as scope:
                self._scope = scope

    def _open(self, auxiliary_name_scope: bool = True) -> Any:
        if self._unique_name:
            return variable_scope(self._unique_name, custom_getter=self._getter, auxiliary_name_scope=auxiliary_name_scope)
        return variable_scope(None, self._template_name, custom_getter=self._getter, auxiliary_name_scope=auxiliary_name_scope)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        running = _calls.__dict__.setdefault("running", [])
        if running and self not in running[-1]._called_within:
            running[-1]._called_within.append(self)
        running.append(self)
        try:
            return self._called(*args, **kwargs)
        except Exception as error:  # says as well where the template was made
            told = "%s\n\noriginally defined at:\n%s" % (error.args[0] if error.args else "", "".join(self._where_made()))
            error.args = (told, *error.args[1:])
            raise
        finally:
            running.pop()

    def _where_made(self) -> List[str]:
        """The frames of the program that made it, the innermost last."""
        return traceback.format_list([f for f in reversed(self._made_at) if not f.filename.startswith(PACKAGE_PATH)])

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        if self._scope is None:
            with self._open() as scope:
                self._scope = scope
                made = self._func(*args, **kwargs)
            self._kept = get_collection(GraphKeys.GLOBAL_VARIABLES, self.variable_scope_name)
        else:
            again = self._variables_created
            with variable_scope(self._scope, reuse=True if again else None):
                others = len(get_collection(GraphKeys.GLOBAL_VARIABLES, self.variable_scope_name)) if again else 0
                known = len(get_collection(GraphKeys.TRAINABLE_VARIABLES))
                made = self._func(*args, **kwargs)
                new = get_collection(GraphKeys.TRAINABLE_VARIABLES)[known:]
                if again and new:
                    raise at_user_line(
                        ValueError(
                            "Trainable variable created when calling a template after the first time, perhaps you used "
                            "tf.Variable when you meant tf.get_variable: %s" % (new,)
                        )
                    )
            self._kept += get_collection(GraphKeys.GLOBAL_VARIABLES, self.variable_scope_name)[others:]
        self._variables_created = True
        return made

    def _all(self, key: str) -> List[Any]:
        return get_collection(key, self.variable_scope_name) if self._variables_created else []

    _is_trackable = True  # by checkpoints of objects

    @property
    def _checkpoint_dependencies(self) -> List[Any]:
        from millrace.structures import TrackableReference

        return [TrackableReference(name, value) for name, value in self._children().items()]

    def _lookup_dependency(self, name: str) -> Any:
        return self._children().get(name)

    def _children(self) -> Dict[str, Any]:
        """Its variables, by their names within its scope, and the templates that it calls, by their scopes within it."""
        prefix = self.variable_scope_name or ""
        within: Dict[str, Any] = {}
        for template in self._called_within:
            scope = template.variable_scope_name or ""
            if scope.startswith(prefix):
                within.setdefault(scope[len(prefix) : -1], template)
        theirs = {id(v) for template in within.values() for v in template.variables}
        return {**{v.op.name[len(prefix) :]: v for v in self._kept if id(v) not in theirs}, **within}

    @property
    def name(self) -> str:
        """The template's name."""
        return self._template_name

    @property
    def variable_scope(self) -> Any:
        """The scope of the variables, or None before the first call."""
        return self._scope

    @property
    def variable_scope_name(self) -> Optional[str]:
        """What the names of its variables start with."""
        return None if self._scope is None else self._scope.name if self._scope.name.endswith("/") else self._scope.name + "/"

    @property
    def var_scope(self) -> Any:
        """variable_scope, as it was called first."""
        return self._scope

    func = property(lambda self: self._func, doc="The function.")
    variables = global_variables = property(lambda self: self._all(GraphKeys.GLOBAL_VARIABLES), doc="The variables made.")
    trainable_variables = property(lambda self: self._all(GraphKeys.TRAINABLE_VARIABLES), doc="Those that optimizers train.")
    non_trainable_variables = property(lambda self: [v for v in self.variables if v not in self.trainable_variables], doc="Those that they leave alone.")
    weights, trainable_weights, non_trainable_weights = variables, trainable_variables, non_trainable_variables
    local_variables = property(lambda self: self._all(GraphKeys.LOCAL_VARIABLES), doc="The local ones.")


def make_template(
    name_: str, func_: Callable[..., Any], create_scope_now_: bool = False, unique_name_: Optional[str] = None, custom_getter_: Any = None, **kwargs: Any
) -> Template:
    """A function whose calls share the variables that it gets with get_variable."""
    return make_template_internal(name_, func_, create_scope_now_, unique_name_, custom_getter_, **kwargs)


def make_template_internal(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: Optional[str] = None,
    custom_getter_: Any = None,
    create_graph_function_: bool = False,
    **kwargs: Any,
) -> Template:
    """make_template, whose function is a function of the graph where create_graph_function_ says so."""
    function = functools.partial(func_, **kwargs) if kwargs else func_
    if create_graph_function_:
        from millrace.framework.def_function import defun

        function = defun(function)
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)


__all__ = ["Template", "make_template", "make_template_internal"]
