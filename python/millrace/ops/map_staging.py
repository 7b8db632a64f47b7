# SPDX-License-Identifier: Apache-2.0
"""MapStagingArea: values by key that one step leaves for another, whose components may come one by one."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes as dtypes_module
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.ops import gen_ops
from millrace.ops.staging import StagingArea


class MapStagingArea(StagingArea):
    """An area whose elements have keys, which are int64. `ordered`: get and peek without a key take the smallest."""

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: Optional[str] = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._prefix = "ordered_map_" if ordered else "map_"

    def _op(self, what: str) -> Any:
        return getattr(gen_ops, self._prefix + what)

    def _chosen(self, values: Any, indices: Any) -> Tuple[List[Any], List[int]]:
        """Values, and which components they are."""
        if isinstance(values, dict):
            if not self._names:
                raise at_user_line(ValueError("Staging areas must have names to enqueue a dictionary"))
            unknown = [n for n in values if n not in self._names]
            if unknown:
                raise at_user_line(ValueError("Dictionary keys %s are not names of the staging area %s" % (sorted(unknown), self._names)))
            names = [n for n in self._names if n in values]
            return [values[n] for n in names], [self._names.index(n) for n in names]
        if self._names:
            raise at_user_line(ValueError("You must enqueue a dictionary in a staging area with names"))
        listed = list(values) if isinstance(values, (list, tuple)) else [values]
        if indices is None:
            raise at_user_line(ValueError("Indices must be supplied when inserting a list of tensors"))
        if len(indices) != len(listed):
            raise at_user_line(ValueError("Number of indices '%d' doesn't match number of values '%d'" % (len(indices), len(listed))))
        return listed, [int(i) for i in indices]

    def put(self, key: Any, vals: Any, indices: Any = None, name: Optional[str] = None) -> Operation:  # type: ignore[override]
        """An operation that puts components of the element of a key in; it waits while the area is full."""
        values, places = self._chosen(vals, indices)
        if len(values) > len(self._dtypes):
            raise at_user_line(ValueError("Unexpected number of inputs '%d' vs '%d'" % (len(values), len(self._dtypes))))
        tensors = [convert_to_tensor(v, self._dtypes[i]) for v, i in zip(values, places)]
        for tensor, i in zip(tensors, places):
            if not tensor.get_shape().is_compatible_with(self._shapes[i]):
                raise at_user_line(ValueError("Component %d has shape %s, which is not compatible with %s" % (i, tensor.get_shape(), self._shapes[i])))
        return self._op("stage")(
            convert_to_tensor(key, dtypes_module.int64), _index_vector(places), tensors, self._dtypes, **self._attributes(name or "%s_put" % self._name)
        )

    def _places(self, indices: Any) -> List[int]:
        if indices is None:
            return list(range(len(self._dtypes)))
        places = []
        for index in indices if isinstance(indices, (list, tuple)) else [indices]:
            if isinstance(index, str):
                if not self._names or index not in self._names:
                    raise at_user_line(ValueError("String index '%s' is not one of the names %s" % (index, self._names)))
                places.append(self._names.index(index))
            elif isinstance(index, int) and 0 <= index < len(self._dtypes):
                places.append(index)
            else:
                raise at_user_line(TypeError("Invalid index %r: it must be a name, or a number below %d" % (index, len(self._dtypes))))
        return places

    def _structured(self, tensors: Any, places: List[int]) -> Any:
        listed = list(tensors)
        for tensor, i in zip(listed, places):
            tensor.set_shape(self._shapes[i])
        if self._names:
            return {self._names[i]: t for i, t in zip(places, listed)}
        return listed

    def _types_at(self, places: List[int]) -> List[Any]:
        return [self._dtypes[i] for i in places]

    def get(self, key: Any = None, indices: Any = None, name: Optional[str] = None) -> Tuple[Any, Any]:  # type: ignore[override]
        """(key, list or dict of components) of an element, which leaves the area when all its components have; waits until it is there."""
        places, scope = self._places(indices), name or "%s_get" % self._name
        if key is None:
            found, values = self._op("unstage_no_key")(_index_vector(places), self._types_at(places), **self._attributes(scope))
            return found, self._structured(values, places)
        key = convert_to_tensor(key, dtypes_module.int64)
        return key, self._structured(_listed(self._op("unstage")(key, _index_vector(places), self._types_at(places), **self._attributes(scope))), places)

    def peek(self, key: Any, indices: Any = None, name: Optional[str] = None) -> Any:  # type: ignore[override]
        """The components of an element, which stays; waits until it is there."""
        places = self._places(indices)
        return self._structured(
            _listed(
                self._op("peek")(
                    convert_to_tensor(key, dtypes_module.int64),
                    _index_vector(places),
                    self._types_at(places),
                    **self._attributes(name or "%s_pop" % self._name),
                )
            ),
            places,
        )

    def size(self, name: Optional[str] = None) -> Tensor:
        """How many elements are whole."""
        return self._op("size")(dtypes=self._dtypes, **self._attributes(name or "%s_size" % self._name))

    def incomplete_size(self, name: Optional[str] = None) -> Tensor:
        """How many elements are not whole yet."""
        return self._op("incomplete_size")(dtypes=self._dtypes, **self._attributes(name or "%s_incomplete_size" % self._name))

    def clear(self, name: Optional[str] = None) -> Operation:
        """An operation that drops all elements."""
        return self._op("clear")(dtypes=self._dtypes, **self._attributes(name or "%s_clear" % self._name))


def _index_vector(places: List[int]) -> Tensor:
    return convert_to_tensor(places, dtypes_module.int32)


def _listed(values: Any) -> List[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]
