# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint keeps: objects that name the tensors to save, and set themselves from those that were read."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, get_collection
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.ops.block_ops import ensure_shape
from millrace.ops.variables import PartitionedVariable, Variable, global_variables


class SaveSpec:
    """One tensor of a checkpoint: its value (or a function of no arguments that makes it), the part of a whole that it is, and its name."""

    def __init__(self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: Optional[str] = None) -> None:
        self._tensor, self.slice_spec, self.name = tensor, slice_spec, name
        if callable(tensor) and not isinstance(tensor, Tensor):
            if dtype is None or device is None:
                raise at_user_line(ValueError("When passing a callable `tensor` to a SaveSpec, an explicit dtype and device must be provided."))
            self.dtype, self.device = dtypes.as_dtype(dtype), device
        else:
            self.dtype, self.device = tensor.dtype, tensor.device

    @property
    def tensor(self) -> Any:
        """The value."""
        return self._tensor() if callable(self._tensor) and not isinstance(self._tensor, Tensor) else self._tensor


class SaveableObject:
    """Something that a saver saves as the tensors of `specs`, and sets by `restore`."""

    def __init__(self, op: Any, specs: Any, name: str) -> None:
        self.op, self._specs, self.name = op, specs, name

    @property
    def specs(self) -> List[SaveSpec]:
        """The tensors that it is saved as."""
        return self._specs() if callable(self._specs) else self._specs

    optional_restore = False  # whether it is left as it is where the checkpoint lacks it
    device = property(lambda self: self.specs[0].device, doc="The device of its tensors.")

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        """An operation that sets it from the tensors of its specs. `restored_shapes`: what to reshape them to, or None."""
        raise at_user_line(ValueError("Calling an abstract method."))


class VariableSaveable(SaveableObject):
    """A variable that is a reference, or a part of one."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        super().__init__(var, [SaveSpec(var, slice_spec, name, dtype=var.dtype)], name)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = array_ops.reshape(value, restored_shapes[0])
        keeps_shape = restored_shapes is None and self.op.get_shape().is_fully_defined()
        with self.op.graph.colocate_with(self.op):
            return gen_ops.assign(self.op, value, validate_shape=keeps_shape)  # type: ignore[return-value]


class ResourceVariableSaveable(SaveableObject):
    """A variable behind a handle, or a part of one."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        self._var, self.handle_op = var, var.op.inputs[0] if isinstance(var, Tensor) else var.handle
        value = var if isinstance(var, Tensor) else var._snapshot
        self._shape = value.get_shape()
        super().__init__(value, [SaveSpec(value, slice_spec, name, dtype=value.dtype)], name)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = array_ops.reshape(value, restored_shapes[0])
        return gen_ops.assign_variable_op(self.handle_op, ensure_shape(value, self._shape))


class TableSaveable(SaveableObject):
    """A table that changes: its keys and its values."""

    def __init__(self, table: Any, name: str) -> None:
        self._table = table
        keys, values = table.export()
        super().__init__(table.table_ref, [SaveSpec(keys, "", name + "-keys"), SaveSpec(values, "", name + "-values")], name)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        del restored_shapes  # pairs have the shapes that they have
        with self.op.graph.colocate_with(self.op):
            return self._table._import(*restored_tensors)  # type: ignore[no-any-return]


class PythonStringStateSaveable(SaveableObject):
    """A string that a function gives when a checkpoint is written, and another one takes when it is read: no operation runs for that."""

    def __init__(self, name: str, state_callback: Callable[[], Any], restore_callback: Optional[Callable[[Any], None]] = None) -> None:
        self._state, self._take = state_callback, restore_callback
        self._value = array_ops.placeholder_with_default("", [], name="python_state")
        super().__init__(self._value, [SaveSpec(self._value, "", name, dtype=dtypes.string)], name)

    def feed_dict_additions(self) -> Dict[Tensor, Any]:
        """What a step that saves is fed."""
        return {self._value: self._state()}

    def python_restore(self, restored_strings: List[Any]) -> None:
        """Hands over the string of a checkpoint."""
        if self._take is not None:
            self._take(restored_strings[0])

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        """Nothing in the graph."""
        return control_flow_ops.no_op()


def parts_saved_by(value: Any) -> Dict[str, Callable[[str], SaveableObject]]:
    """By names of attributes, what makes a SaveableObject of a name: of tables, and of objects that say so by _gather_saveables_for_checkpoint."""
    if isinstance(value, type) or isinstance(value, Variable) and not hasattr(type(value), "_gather_saveables_for_checkpoint"):
        return {}
    if _is_table(value):
        return {"table": lambda name: TableSaveable(value, name)}
    given = value._gather_saveables_for_checkpoint() if hasattr(value, "_gather_saveables_for_checkpoint") else {}
    return {attribute: functools.partial(_made, made) for attribute, made in given.items()}


def _made(given: Any, name: str) -> SaveableObject:
    """What an object gave: a variable, a SaveableObject, or what makes one of either kind."""
    made = given if isinstance(given, (Variable, SaveableObject)) else given(name=name)
    return made if isinstance(made, SaveableObject) else _of_variable(made, "", name, lambda v: "What an object is saved as is no variable: %r" % (v,))


def all_saveable_objects(scope: Optional[str] = None) -> List[Any]:
    """What a saver saves when it is not told."""
    return global_variables(scope) + get_collection(GraphKeys.SAVEABLE_OBJECTS, scope)


def _is_table(value: Any) -> bool:
    return hasattr(value, "table_ref") and hasattr(value, "_import")


def _of_variable(value: Any, slice_spec: str, name: str, wrong: Callable[[Any], str]) -> SaveableObject:
    if isinstance(value, Variable):
        return ResourceVariableSaveable(value, slice_spec, name) if value._is_resource else VariableSaveable(value._ref(), slice_spec, name)
    if isinstance(value, Tensor):
        if value.dtype._is_ref_dtype:
            return VariableSaveable(value, slice_spec, name)
        if value.op.type == "ReadVariableOp":
            return ResourceVariableSaveable(value, slice_spec, name)
        if value.op.type == "VarHandleOp":
            return ResourceVariableSaveable(Variable._of_op(value.op), slice_spec, name)
    raise at_user_line(TypeError(wrong(value)))


def _taken_apart(values: Any) -> List[Any]:
    """The values, with what an object is saved as in its place."""
    found = []
    for value in values:
        parts = {} if _is_table(value) else parts_saved_by(value)
        found += [make(value.op.name if isinstance(value, Variable) else getattr(value, "name", attribute)) for attribute, make in parts.items()] or [value]
    return found


def by_name(values: Any) -> Dict[str, Any]:
    """{the name to save under: value} of a list; the parts of one variable come together in a list."""
    found: Dict[str, Any] = {}
    for value in sorted(_taken_apart(values), key=lambda v: str(getattr(v, "name", v))):
        info = value._get_save_slice_info() if isinstance(value, Variable) else None
        if isinstance(value, (SaveableObject, PartitionedVariable)):
            name = value.name
        elif _is_table(value):
            name = value.table_ref.op.name
        elif info is not None:
            name = info.full_name
            if name in found and not isinstance(found[name], list):
                raise at_user_line(ValueError("Mixing slices and non-slices with the same name: %s" % name))
            found.setdefault(name, []).append(value)
            continue
        else:
            _of_variable(value, "", value.op.name if isinstance(value, (Tensor, Variable)) else "", lambda v: "Variable to save is not a Variable: %r" % (v,))
            name = value.op.name if not isinstance(value, Tensor) or value.op.type != "ReadVariableOp" else value.op.inputs[0].op.name
        if name in found:
            raise at_user_line(ValueError("At least two variables have the same name: %s" % name))
        found[name] = list(value) if isinstance(value, PartitionedVariable) else value
    return found


def _of_parts(name: str, parts: Any) -> List[SaveableObject]:
    whole: Optional[str] = None
    made = []
    for part in parts:
        if not isinstance(part, Variable):
            raise at_user_line(ValueError("Slices must all be Variables: %s" % (part,)))
        info = part._get_save_slice_info()
        if not info:
            raise at_user_line(ValueError("Slices must all be slices: %s" % part))
        if whole is not None and whole != info.full_name:
            raise at_user_line(ValueError("Slices must all be from the same tensor: %s != %s" % (whole, info.full_name)))
        whole = info.full_name
        made.append(_of_variable(part, info.spec, name, str))
    return made


def saveable_objects_for_op(op: Any, name: str) -> Iterator[SaveableObject]:
    """The objects that a variable, a table or another such is saved as, under a name."""
    yield from saveables_of({name: op})


def saveables_of(names_to_saveables: Any) -> List[SaveableObject]:
    """The objects to save, by name. A name may have a variable, a table, a SaveableObject, a PartitionedVariable or a list of parts."""
    if not isinstance(names_to_saveables, dict):
        names_to_saveables = by_name(names_to_saveables)
    made: List[SaveableObject] = []
    for name in sorted(names_to_saveables, key=str):
        if not isinstance(name, str):
            raise at_user_line(
                TypeError("names_to_saveables must be a dict mapping string names to checkpointable operations. Name is not a string: %s" % (name,))
            )
        value = names_to_saveables[name]
        if isinstance(value, SaveableObject):
            made.append(value)
        elif isinstance(value, (list, tuple, PartitionedVariable)):
            made.extend(_of_parts(name, value))
        elif _is_table(value):
            made.append(TableSaveable(value, name))
        elif parts_saved_by(value):
            made.extend(make(name if attribute == "VARIABLE_VALUE" else "%s_%s" % (name, attribute)) for attribute, make in parts_saved_by(value).items())
        else:
            made.append(
                _of_variable(
                    value, "", name, lambda v: "names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a variable: %s" % (v,)
                )
            )
    seen = set()
    for saveable in made:
        if saveable.op in seen:
            raise at_user_line(ValueError("The same saveable will be restored with two names: %s" % saveable.name))
        seen.add(saveable.op)
    return made
