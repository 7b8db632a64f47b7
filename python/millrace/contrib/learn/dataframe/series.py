# SPDX-License-Identifier: Apache-2.0
"""Columns of data frames: what they are made of, and how that becomes tensors.

A Series is a promise of a tensor with a value for each row. A Transform makes series of others; each is built at most once for a cache, a dictionary."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line


class Series:
    """A column. A class of your own says by build(cache) what tensor it is. Functions of columns are methods, which transforms are registered as."""

    @classmethod
    def _register(cls, name: str, method: Any) -> None:
        if name in vars(cls):
            raise at_user_line(ValueError("Series has a method %s already" % name))
        setattr(cls, name, method)

    @classmethod
    def register_unary_op(cls, series_method_name: str) -> Callable[[Any], Any]:
        """A decorator of transforms of one series: Series.series_method_name(arguments) makes the transform with them and calls it."""

        def register(transform_cls: Any) -> Any:
            def method(self: Any, *args: Any, **kwargs: Any) -> Any:
                return transform_cls(*args, **kwargs)([self])[0]

            cls._register(series_method_name, method)
            return transform_cls

        return register

    @classmethod
    def register_binary_op(cls, series_method_name: str) -> Callable[[Any], Any]:
        """A decorator of transforms of two series: Series.series_method_name(other, arguments)."""

        def register(transform_cls: Any) -> Any:
            def method(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
                return transform_cls(*args, **kwargs)([self, other])[0]

            cls._register(series_method_name, method)
            return transform_cls

        return register

    def build(self, cache: Dict[str, Any], **kwargs: Any) -> Any:
        """The tensor."""
        raise NotImplementedError("%s has no build" % type(self).__name__)


class PredefinedSeries(Series):
    """A column that whoever builds it has in the cache by its name. feature_spec: how it is parsed."""

    def __init__(self, name: str, feature_spec: Any) -> None:
        self._name, self._feature_spec = name, feature_spec

    @property
    def name(self) -> str:
        """Its key in the cache."""
        return self._name

    @property
    def feature_spec(self) -> Any:
        """How it is parsed."""
        return self._feature_spec

    def required_base_features(self) -> Dict[str, Any]:
        """What must be parsed for it, by name."""
        return {self._name: self._feature_spec}

    def build(self, cache: Dict[str, Any], **kwargs: Any) -> Any:
        """What the cache has. KeyError when it has nothing."""
        del kwargs  # it is made already
        if self._name not in cache:
            raise at_user_line(KeyError("the cache has no %s" % self._name))
        return cache[self._name]

    def __repr__(self) -> str:
        return self._name

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, PredefinedSeries) and (self._name, self._feature_spec) == (other._name, other._feature_spec)

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._name)


class TransformedSeries(Series):
    """An output of a transform of other columns, by its name."""

    def __init__(self, input_series: Any, transform: Any, output_name: Optional[str]) -> None:
        self._inputs, self._transform, self._output_name = _make_list_of_series(input_series), transform, output_name
        if output_name is None or output_name not in (transform.output_names or [output_name]):
            raise at_user_line(ValueError("%s has the outputs %s, not %s" % (transform.name, transform.output_names, output_name)))
        self._repr = TransformedSeries.make_repr(self._inputs, transform, output_name)

    def required_base_features(self) -> Dict[str, Any]:
        """What must be parsed for it, by name."""
        return {name: spec for series in self._inputs for name, spec in series.required_base_features().items()}

    def build(self, cache: Optional[Dict[str, Any]] = None, **kwargs: Any) -> Any:
        """The tensor, and in the cache all outputs of the transform."""
        known: Dict[str, Any] = {} if cache is None else cache
        if self._repr not in known:
            outputs = self._transform.build_transitive(self._inputs, known, **kwargs)
            known.setdefault(self._repr, getattr(outputs, str(self._output_name)))
        return known[self._repr]

    def with_inputs(self, input_series: List[Series]) -> "TransformedSeries":
        """The same of other columns."""
        return TransformedSeries(input_series, self._transform, self._output_name)

    @property
    def inputs(self) -> List[Series]:
        """The columns that it is made of."""
        return self._inputs

    def __repr__(self) -> str:
        return self._repr

    @staticmethod
    def make_repr(input_series: Any, transform: Any, output_name: Optional[str]) -> str:
        """Its key in caches."""
        return "%r(%s)[%s]" % (transform, ", ".join(repr(series) for series in input_series or []), output_name)


def _make_list_of_series(x: Any) -> List[Any]:
    if x is None:
        return []
    given = [x] if isinstance(x, Series) else list(x)
    for each in given:
        if not isinstance(each, Series):
            raise at_user_line(TypeError("expected a Series, got %r" % (each,)))
    return given


# ---- transforms ----


class parameter(property):
    """A property that is a parameter of a transform: what tells it apart from others of its class."""


class Transform:
    """What makes series of others. A class of your own has the properties name, input_valency and _output_names, and _produce_output_series."""

    name: Any
    input_valency: Any
    _output_names: Any

    def parameters(self) -> Dict[str, Any]:
        """The values of its parameters by name, those of the classes that it stands on with them."""
        names = {name for cls in type(self).__mro__ for name, value in vars(cls).items() if isinstance(value, parameter)}
        return {name: getattr(self, name) for name in sorted(names)}

    @property
    def output_names(self) -> Tuple[str, ...]:
        """The names of the series that it makes."""
        names = self._output_names
        return (names,) if isinstance(names, str) else tuple(names)

    @property
    def return_type(self) -> Any:
        """The type of what a call returns: a tuple of series by name."""
        return collections.namedtuple("ReturnType", self.output_names)  # type: ignore[misc]

    def __repr__(self) -> str:
        return "%s(%s)" % (self.name, "{%s}" % ", ".join("%r: %s" % (name, _told(value)) for name, value in self.parameters().items()))

    def __call__(self, input_series: Any = None) -> Any:
        """The series that it makes of these, in a tuple by name."""
        given = _make_list_of_series(input_series)
        if len(given) != self.input_valency:
            raise at_user_line(ValueError("%s takes %d series, got %d" % (self.name, self.input_valency, len(given))))
        return self.return_type(*self._produce_output_series(given))

    def _produce_output_series(self, input_series: List[Series]) -> Any:
        raise NotImplementedError("%s has no _produce_output_series" % type(self).__name__)


def _told(value: Any) -> str:
    """A parameter in the key of caches. Data are told apart by what they are, not by what they hold."""
    return repr(value) if isinstance(value, (str, bytes, int, float, list, tuple, dict, type, type(None))) else "%s at 0x%x" % (type(value).__name__, id(value))


class TensorFlowTransform(Transform):
    """A transform of tensors: a class of your own has _apply_transform(tensors), which returns self.return_type(tensors that come of them)."""

    def _produce_output_series(self, input_series: Optional[List[Series]] = None) -> Any:
        return [TransformedSeries(input_series, self, name) for name in self.output_names]

    def build_transitive(self, input_series: Any, cache: Optional[Dict[str, Any]] = None, **kwargs: Any) -> Any:
        """The tensors of its outputs, after those that they are made of; the cache has them afterwards. kwargs: what sources ask for."""
        known: Dict[str, Any] = {} if cache is None else cache
        keys = [TransformedSeries.make_repr(_make_list_of_series(input_series), self, name) for name in self.output_names]
        if not all(key in known for key in keys):
            tensors = [series.build(known, **kwargs) for series in _make_list_of_series(input_series)]
            made = self._apply_transform(tensors, **kwargs)
            if len(made) != len(keys):
                raise at_user_line(ValueError("%s made %d tensors for the outputs %s" % (self.name, len(made), self.output_names)))
            known.update(zip(keys, made))
        return self.return_type(*[known[key] for key in keys])

    def _apply_transform(self, input_tensors: List[Any], **kwargs: Any) -> Any:
        raise NotImplementedError("%s has no _apply_transform" % type(self).__name__)
