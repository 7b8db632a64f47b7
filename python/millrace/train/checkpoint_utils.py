# SPDX-License-Identifier: Apache-2.0
"""Reading checkpoints, waiting for them, and variables that begin with their values."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace import tf_logging
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.ops import gen_ops
from millrace.ops.variables import PartitionedVariable, Variable, global_variables
from millrace.train.saver import latest_checkpoint, list_variables, load_checkpoint, load_variable

__all__ = ["load_checkpoint", "load_variable", "list_variables", "init_from_checkpoint", "wait_for_new_checkpoint", "checkpoints_iterator"]


def wait_for_new_checkpoint(
    checkpoint_dir: str, last_checkpoint: Optional[str] = None, seconds_to_sleep: float = 1, timeout: Optional[float] = None
) -> Optional[str]:
    """The path of a checkpoint other than the last one; None after the timeout."""
    tf_logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    stop = None if timeout is None else time.time() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            return str(path)
        if stop is not None and time.time() + seconds_to_sleep > stop:
            return None
        time.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: str, min_interval_secs: float = 0, timeout: Optional[float] = None, timeout_fn: Optional[Callable[[], bool]] = None
) -> Iterator[str]:
    """Checkpoints as they appear."""
    path = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        start, path = time.time(), found
        yield path
        time.sleep(max(0.0, start + min_interval_secs - time.time()))


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Any) -> None:
    """Makes the initializers of variables give them the values of a checkpoint.

    The map leads from names in the checkpoint to variables or their names; names that end in a slash are scopes.
    """
    path = latest_checkpoint(ckpt_dir_or_file) or ckpt_dir_or_file
    reader = load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    for old, new in dict(assignment_map).items():
        if isinstance(new, (Variable, PartitionedVariable)) or isinstance(new, (list, tuple)) and all(isinstance(v, Variable) for v in new):
            _begin_as(path, shapes, old, new)
        elif not old.endswith("/") and not str(new).endswith("/"):
            _begin_as(path, shapes, old, _variable_called(new))
        elif not new.endswith("/"):
            raise at_user_line(ValueError("Assignment map with scope only name %s should map to scope only name. Should be 'scope/'." % new))
        else:
            _scope_begins_as(path, shapes, old, new)


def _called() -> Dict[str, List[Variable]]:
    """The graph's variables by name: the parts of one that is cut together."""
    found: Dict[str, List[Variable]] = {}
    for v in global_variables():
        info = v._get_save_slice_info()
        found.setdefault(info.full_name if info is not None else v.op.name, []).append(v)
    return found


def _variable_called(name: str) -> List[Variable]:
    found = _called().get(name)
    if not found:
        raise at_user_line(ValueError("Assignment map specifies a variable that is not in the graph: %s" % name))
    return found


def _scope_begins_as(path: str, shapes: Dict[str, List[int]], old: str, new: str) -> None:
    prefix, scope = "" if old == "/" else old, "" if new == "/" else new
    inside = {name: parts for name, parts in _called().items() if name.startswith(scope)}
    if not inside:
        raise at_user_line(ValueError("No variables of the graph are in scope %s of the assignment map" % new))
    for name, parts in inside.items():
        wanted = prefix + name[len(scope) :]
        if wanted not in shapes:
            raise at_user_line(ValueError("Tensor %s (%s in %s) is not found in %s checkpoint" % (wanted, name[len(scope) :], old, path)))
        _begin_as(path, shapes, wanted, parts)


def _begin_as(path: str, shapes: Dict[str, List[int]], name: str, target: Any) -> None:
    parts: List[Variable] = [target] if isinstance(target, Variable) else list(target)
    if name not in shapes:
        raise at_user_line(ValueError("Tensor %s is not found in %s checkpoint" % (name, path)))
    for v in parts:
        info = v._get_save_slice_info()
        shape = list(info.full_shape) if info is not None else v.shape.as_list()
        if shape != shapes[name]:
            raise at_user_line(
                ValueError("Shape of variable %s (%s) doesn't match with shape of tensor %s (%s) from checkpoint reader." % (v.name, shape, name, shapes[name]))
            )
        with v.graph.as_default(), get_default_graph().device(v.device), get_default_graph().control_dependencies(None):
            with get_default_graph().device("/cpu:0"):  # of the variable's task
                saved = gen_ops.restore_v2(path, [name], [info.spec if info is not None else ""], [v.dtype.base_dtype], name="checkpoint_initializer")[0]
            saved.set_shape(v.shape)
            v._initializer_op = v.assign(saved, read_value=not v._is_resource)  # of a reference the new value, as in 1.15
            v._initial_value = v._first_value = saved
