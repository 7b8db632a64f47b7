# SPDX-License-Identifier: Apache-2.0
"""Variables that begin as those of a checkpoint, also where words have moved to other rows since."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from millrace import gfile, tf_logging
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, get_collection
from millrace.ops.variables import PartitionedVariable, Variable
from millrace.train import checkpoint_utils
from millrace.train.checkpoint_management import latest_checkpoint
from millrace.train.object_names import names_in_checkpoint_of_objects
from millrace.train.saver import NewCheckpointReader


class VocabInfo(NamedTuple):
    """Which words the rows (axis 0) or columns (axis 1) of a variable are now, and which they were in the checkpoint. A size of -1 means
    all of a file. What is new begins as backup_initializer says, or as zeros."""

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


class _Settings(NamedTuple):
    ckpt_to_initialize_from: str
    vars_to_warm_start: Any
    var_name_to_vocab_info: Dict[str, VocabInfo]
    var_name_to_prev_var_name: Dict[str, str]


class WarmStartSettings(_Settings):
    """What `warm_start` is given, for an estimator."""

    def __new__(
        cls, ckpt_to_initialize_from: str, vars_to_warm_start: Any = ".*", var_name_to_vocab_info: Any = None, var_name_to_prev_var_name: Any = None
    ) -> "WarmStartSettings":
        if not ckpt_to_initialize_from:
            raise at_user_line(ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings"))
        return super().__new__(cls, ckpt_to_initialize_from, vars_to_warm_start, var_name_to_vocab_info or {}, var_name_to_prev_var_name or {})


def _name_of(variable: Any) -> str:
    info = variable._get_save_slice_info() if isinstance(variable, Variable) else None
    return info.full_name if info is not None else variable.name.split(":")[0]


def _chosen(wanted: Any) -> List[Any]:
    """The variables that are meant: trainable ones by a pattern, any by a list of patterns or of variables."""
    if wanted is None:
        return []
    if isinstance(wanted, str):
        return get_collection(GraphKeys.TRAINABLE_VARIABLES, wanted)
    if isinstance(wanted, list):
        if all(isinstance(v, str) for v in wanted):
            return [v for scope in wanted for v in get_collection(GraphKeys.GLOBAL_VARIABLES, scope)]
        if all(isinstance(v, (Variable, PartitionedVariable)) for v in wanted):
            return [part for v in wanted for part in (list(v) if isinstance(v, PartitionedVariable) else [v])]
    raise at_user_line(
        ValueError("If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  If not, it must be a `str`.  Given %s" % (wanted,))
    )


def _words(path: str, size: int) -> List[bytes]:
    with gfile.GFile(path, "rb") as file:
        words = [line.rstrip(b"\r\n") for line in file]
    if size > len(words):
        raise at_user_line(ValueError("%s has %d words, fewer than the %d that a VocabInfo says" % (path, len(words), size)))
    return words if size < 0 else words[:size]


def _moved(old: np.ndarray, shape: List[int], info: VocabInfo, dtype: Any) -> Any:
    """The old rows where their words are now. What the old ones have no word for is as the initializer says."""
    before = {word: i for i, word in reversed(list(enumerate(_words(info.old_vocab, info.old_vocab_size))))}
    now = _words(info.new_vocab, info.new_vocab_size)
    if shape[info.axis] != len(now) + info.num_oov_buckets:
        raise at_user_line(
            ValueError("a variable of shape %s has not %d words and %d buckets along axis %d" % (shape, len(now), info.num_oov_buckets, info.axis))
        )
    pairs = [(new, before[word]) for new, word in enumerate(now) if word in before]
    to, start = np.asarray([p[0] for p in pairs], np.int64), np.asarray([p[1] for p in pairs], np.int64)
    known = np.zeros(shape[info.axis], bool)
    known[to] = True
    moved = np.zeros(shape, old.dtype)
    if info.axis == 0:
        moved[to] = old[start]
    else:
        moved[:, to] = old[:, start]
    if info.backup_initializer is None or known.all():
        return convert_to_tensor(moved)
    from millrace.ops import array_ops

    mask = np.broadcast_to(known[:, None] if info.axis == 0 else known[None, :], shape)
    return array_ops.where(convert_to_tensor(np.array(mask)), moved, info.backup_initializer(shape, dtype=dtype))


def _begin_with_words(path: str, name: str, parts: List[Any], info: VocabInfo) -> None:
    from millrace.ops import array_ops

    if info.axis not in (0, 1):
        raise at_user_line(ValueError("axis of a VocabInfo must be 0 or 1, got %s" % info.axis))
    old = NewCheckpointReader(path).get_tensor(name)
    first = parts[0]._get_save_slice_info()
    shape = list(first.full_shape) if first is not None else parts[0].shape.as_list()
    if old.ndim != len(shape) or any(i != info.axis and a != b for i, (a, b) in enumerate(zip(old.shape, shape))):
        raise at_user_line(
            ValueError(
                "Shape of variable %s (%s) doesn't match with shape of tensor %s (%s) from checkpoint reader." % (parts[0].name, shape, name, list(old.shape))
            )
        )
    whole = _moved(old, shape, info, parts[0].dtype.base_dtype)
    for part in parts:
        where = part._get_save_slice_info()
        value = whole if where is None else array_ops.slice(whole, list(where.var_offset), list(where.var_shape))
        assigned = part.assign(value)
        part._initializer_op, part._initial_value, part._first_value = getattr(assigned, "op", assigned), value, value


def _get_var_info(var: Any, prev_tensor_name: Optional[str] = None) -> Tuple[str, Any]:
    """(what a variable is called in the checkpoint, the variable, or the list of its parts)."""
    parts = list(var) if isinstance(var, (PartitionedVariable, list)) else [var]
    if not all(isinstance(part, Variable) for part in parts):
        raise at_user_line(TypeError("var MUST be one of the following: a Variable, list of Variable or PartitionedVariable, but is %s" % type(var)))
    return prev_tensor_name or _name_of(parts[0]), parts if len(parts) > 1 else parts[0]


def _infer_var_name(var: Any) -> str:
    """What a variable, or one in parts, is called in checkpoints."""
    return _get_var_info(var)[0]


def _warm_start_var(var: Any, prev_ckpt: str, prev_tensor_name: Optional[str] = None) -> None:
    """warm_start of one variable, as releases up to 1.8 call it."""
    name, parts = _get_var_info(var, prev_tensor_name)
    checkpoint_utils.init_from_checkpoint(prev_ckpt, {name: parts})


def _warm_start_var_with_vocab(
    var: Any,
    current_vocab_path: str,
    current_vocab_size: int,
    prev_ckpt: str,
    prev_vocab_path: str,
    previous_vocab_size: int = -1,
    current_oov_buckets: int = 0,
    prev_tensor_name: Optional[str] = None,
    initializer: Any = None,
    axis: int = 0,
) -> None:
    """warm_start of one variable by its words."""
    if not (current_vocab_path and current_vocab_size and prev_ckpt and prev_vocab_path):
        raise at_user_line(
            ValueError(
                "Invalid args: Must provide all of [current_vocab_path, current_vocab_size, prev_ckpt, prev_vocab_path}: got %s"
                % ([current_vocab_path, current_vocab_size, prev_ckpt, prev_vocab_path],)
            )
        )
    name, parts = _get_var_info(var, prev_tensor_name)
    info = VocabInfo(current_vocab_path, current_vocab_size, current_oov_buckets, prev_vocab_path, previous_vocab_size, initializer, axis)
    _begin_with_words(latest_checkpoint(prev_ckpt) or prev_ckpt, name, parts if isinstance(parts, list) else [parts], info)


def warm_start(
    ckpt_to_initialize_from: str,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Optional[Dict[str, VocabInfo]] = None,
    var_name_to_prev_var_name: Optional[Dict[str, str]] = None,
) -> None:
    """Makes the initializers of variables give them a checkpoint's values.

    `vars_to_warm_start`: a pattern for trainable variables, a list of patterns or of variables, or None for those of var_name_to_vocab_info
    alone. `var_name_to_prev_var_name`: what variables are called in the checkpoint, where that is something else.
    """
    vocabularies, earlier = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    path = latest_checkpoint(ckpt_to_initialize_from) or ckpt_to_initialize_from
    grouped: Dict[str, List[Any]] = {}
    for variable in _chosen(vars_to_warm_start):
        grouped.setdefault(_name_of(variable), []).append(variable)
    for variable in get_collection(GraphKeys.GLOBAL_VARIABLES):
        name = _name_of(variable)
        if name in vocabularies and not any(variable is v for v in grouped.get(name, ())):
            grouped.setdefault(name, []).append(variable)
    present = {_name_of(v) for v in get_collection(GraphKeys.GLOBAL_VARIABLES)} if vars_to_warm_start is None else grouped
    for names, viable, what in ((vocabularies, grouped, "var_name_to_vocab_info"), (earlier, present, "var_name_to_prev_var_name")):
        unknown = sorted(set(names) - set(viable))
        if unknown:
            raise at_user_line(
                ValueError(
                    "You provided the following vars in %s, but they were not used: %s.  Perhaps you misspelled them?  Here is the list "
                    "of viable variable names: %s" % (what, unknown, sorted(grouped))
                )
            )
    if not earlier:
        earlier = names_in_checkpoint_of_objects(path)
    plain: Dict[str, Any] = {}
    for name, parts in grouped.items():
        before = earlier.get(name, name)
        tf_logging.debug("Warm-starting variable: %s; prev_var_name: %s", name, before)
        if name in vocabularies:
            _begin_with_words(path, before, parts, vocabularies[name])
        else:
            plain[before] = parts if len(parts) > 1 or parts[0]._get_save_slice_info() is not None else parts[0]
    checkpoint_utils.init_from_checkpoint(path, plain)
