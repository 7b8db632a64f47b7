# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.training.tracking: classes of one's own whose values checkpoints of objects keep (train/checkpoint.py)."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import device as graph_device
from millrace.ops import array_ops
from millrace.ops.variables import Variable
from millrace.structures import NoDependency, NotTrackable, TrackableReference, TrackedByName, wrapped  # noqa: F401
from millrace.train import checkpoint
from millrace.train.object_names import OBJECT_GRAPH
from millrace.train.saveable import PythonStringStateSaveable

VARIABLE_VALUE_KEY, OBJECT_GRAPH_PROTO_KEY = "VARIABLE_VALUE", OBJECT_GRAPH


class Trackable(TrackedByName):
    """The base of objects that have values in checkpoints: those that _track_trackable names."""

    def _dependencies(self) -> Dict[str, Any]:
        return self.__dict__.setdefault("_self_dependencies", {})

    def _children(self) -> Dict[str, Any]:
        return dict(self._dependencies())

    @property
    def _unconditional_checkpoint_dependencies(self) -> List[TrackableReference]:
        return self._checkpoint_dependencies

    def _no_dependency(self, value: Any) -> Any:
        """What an attribute is set to whose value checkpoints are not to keep: here they keep none."""
        return value

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        if not checkpoint.is_trackable(trackable):
            raise at_user_line(TypeError("Trackable._track_trackable() passed type %s, not a Trackable." % type(trackable)))
        found = self._lookup_dependency(name)
        if found is not None and found is not trackable and not overwrite:
            raise at_user_line(
                ValueError("Called Trackable._track_trackable() with name='%s', but a Trackable with this name is already declared as a dependency." % name)
            )
        self._dependencies()[name] = trackable
        return trackable

    _track_checkpointable = _track_trackable  # the name of 1.8 to 1.12

    def _add_variable_with_custom_getter(
        self, name: str, shape: Any = None, dtype: Any = dtypes.float32, initializer: Any = None, getter: Any = None, overwrite: bool = False, **kwargs: Any
    ) -> Any:
        if not overwrite and self._lookup_dependency(name) is not None:
            raise at_user_line(
                ValueError("A variable named '%s' already exists in this Trackable: already declared as a dependency. Name each differently." % name)
            )
        made = getter(name=name, shape=shape, dtype=dtype, initializer=initializer, **kwargs)
        return self._track_trackable(made, name, overwrite) if checkpoint.is_trackable(made) else made


class AutoTrackable(Trackable):
    """A Trackable that keeps whatever it can of its attributes, lists and dicts too."""

    def __setattr__(self, name: str, value: Any) -> None:
        untracked = self.__dict__.setdefault("_self_untracked", set())
        if isinstance(value, NoDependency):
            untracked.add(name)
            value = value.value
        else:
            untracked.discard(name)
            value = wrapped(value) if self.__dict__.get("_self_setattr_tracking", True) else value
        self._dependencies().pop(name, None)
        super().__setattr__(name, value)

    def _no_dependency(self, value: Any) -> Any:
        return NoDependency(value)

    def __delattr__(self, name: str) -> None:
        self._dependencies().pop(name, None)
        super().__delattr__(name)

    def _children(self) -> Dict[str, Any]:
        untracked = self.__dict__.get("_self_untracked", ())
        found = {
            name: value for name, value in vars(self).items() if not name.startswith("_self_") and name not in untracked and checkpoint.is_trackable(value)
        }
        return {**found, **self._dependencies()}


class PythonState(Trackable):
    """The base of objects whose checkpoints keep a string: `serialize` gives it when one is written, `deserialize` takes it when one is read."""

    def serialize(self) -> Any:
        """The string."""
        raise NotImplementedError("%s.serialize" % type(self).__name__)

    def deserialize(self, string_value: Any) -> None:
        """Takes the string of a checkpoint, as bytes."""
        raise NotImplementedError("%s.deserialize" % type(self).__name__)

    def _gather_saveables_for_checkpoint(self) -> Dict[str, Any]:
        return {"py_state": functools.partial(PythonStringStateSaveable, state_callback=self.serialize, restore_callback=self.deserialize)}


def no_automatic_dependency_tracking(method: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of methods: attributes that they set are not kept by checkpoints."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        before, tracked = dict(vars(self)), self.__dict__.get("_self_setattr_tracking", True)
        self.__dict__["_self_setattr_tracking"] = False
        try:
            return method(self, *args, **kwargs)
        finally:
            self.__dict__["_self_setattr_tracking"] = tracked
            untracked = self.__dict__.setdefault("_self_untracked", set())
            untracked.update(name for name, value in vars(self).items() if name not in before or before[name] is not value)

    return call


def cached_per_instance(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator of functions of an object: what they give is kept for as long as the object lives, and computed once."""
    cache: Any = weakref.WeakKeyDictionary()

    @functools.wraps(f)
    def kept(item: Any) -> Any:
        if item not in cache:
            cache[item] = f(item)
        return cache[item]

    kept.cache = cache  # type: ignore[attr-defined]
    return kept


# ---- resources ----

_trackers: List["ResourceTracker"] = []


class ResourceTracker:
    """Gathers the resources that are made in its scope."""

    def __init__(self) -> None:
        self._resources: List[Any] = []

    resources = property(lambda self: self._resources, doc="The resources.")

    def add_resource(self, resource: Any) -> None:
        """Adds one."""
        self._resources.append(resource)


@contextlib.contextmanager
def resource_tracker_scope(resource_tracker: ResourceTracker) -> Iterator[None]:
    """A context whose resources a tracker gathers, and those around it."""
    _trackers.append(resource_tracker)
    try:
        yield
    finally:
        _trackers.remove(resource_tracker)


class CapturableResource(Trackable):
    """The base of objects that have a resource: `_create_resource` makes its handle when that is first asked for."""

    def __init__(self, device: str = "") -> None:
        self._resource_handle: Any = None
        self._resource_device = device

    def _create_resource(self) -> Any:
        raise NotImplementedError("%s._create_resource" % type(self).__name__)

    def _initialize(self) -> None:
        """What initializes the resource: nothing."""

    @property
    def resource_handle(self) -> Any:
        """Its handle."""
        if self._resource_handle is None:
            with graph_device(self._resource_device):
                self._resource_handle = self._create_resource()
        return self._resource_handle


class TrackableResource(CapturableResource):
    """A resource that the trackers around it gather."""

    def __init__(self, device: str = "") -> None:
        for tracker in _trackers:
            tracker.add_resource(self)
        super().__init__(device)


def list_objects(root_trackable: Any) -> List[Any]:
    """The root and all objects that it leads to, nearest first."""
    return [found.value for found in checkpoint._Tree(root_trackable).objects]


def _variables_of(root_trackable: Any) -> Iterator[Variable]:
    return (value for value in list_objects(root_trackable) if isinstance(value, Variable))


def gather_initializers(root_trackable: Any) -> List[Any]:
    """The initializers of all variables that a root leads to."""
    return [v.initializer for v in _variables_of(root_trackable)]


def add_variable(
    trackable: Any = None,
    name: Optional[str] = None,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    trainable: bool = True,
    checkpointable: Any = None,
) -> Any:
    """A variable that an object has under a name; `checkpointable` is the object's name in 1.8 to 1.12."""
    trackable = checkpointable if trackable is None else trackable
    if trackable is None or name is None:
        raise at_user_line(TypeError("add_variable() needs the object and the name, got %s and %s" % (trackable, name)))
    if shape is not None and initializer is not None and not callable(initializer):
        raise at_user_line(ValueError("If an initializer is a value, do not specify shape: it has one."))

    def getter(name: str, shape: Any, dtype: Any, initializer: Any, **kwargs: Any) -> Variable:
        if isinstance(initializer, type):
            initializer = initializer()
        if callable(initializer):
            given: Any = lambda: initializer(shape, dtype=dtype) if shape is not None else initializer()
        else:
            given = initializer
        return Variable((lambda: array_ops.zeros(shape, dtype)) if given is None else given, name=name, dtype=dtype, **kwargs)

    if isinstance(trackable, Trackable):
        return trackable._add_variable_with_custom_getter(name, shape, dtype, initializer, getter, trainable=trainable, use_resource=True)
    made = getter(name, shape, dtype, initializer, trainable=trainable, use_resource=True)
    setattr(trackable, name, made)
    return made


def capture_dependencies(template: Any) -> Any:
    """Not provided: variables of a template belong to its scope."""
    raise at_user_line(NotImplementedError("capture_dependencies is not provided: keep the variables in a Checkpoint by name"))
