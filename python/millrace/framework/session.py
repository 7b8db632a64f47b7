# SPDX-License-Identifier: Apache-2.0
"""Sessions: run a graph, with nested fetches and all kinds of feeds.

The fast path is in the extension module: it keeps what a pair of (fetches, feed keys) means. This file finds that out
the first time.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import millrace._core as _core
from millrace.framework import dtypes, numpy_cast
from millrace.framework.default_session import get_default_session, sessions  # noqa: F401
from millrace.framework.device import canonical_name
from millrace.framework.errors import InvalidArgumentError, at_user_line, made_at
from millrace.framework.graph import Graph, Operation, Tensor, get_default_graph, leave_graph
from millrace.framework.session_config import check_experimental
from millrace.ops import gen_ops

_VALUE, _LIST, _TUPLE, _BUILD = range(4)


class _NeedsExpansion(Exception):
    """The keys of a feed are not all tensors."""


class _Fetches:
    """The leaves of a structure of fetches, each wanted once, and how the structure is made of their values."""

    def __init__(self, graph: Graph, fed: List[Tensor], session: "Callable[[], Any]") -> None:
        self._graph, self._fed = graph, {t: i for i, t in enumerate(fed)}
        self._session, self.has_handles = session, False
        self.tensors: List[Tensor] = []
        self.targets: List[Operation] = []
        self.slots: List[Tuple[int, int]] = []
        self._known: Dict[Tensor, int] = {}

    def leaf(self, element: Any) -> int:
        """Adds a tensor or an operation; the number of its value."""
        if not self._graph.is_fetchable(element):
            raise at_user_line(ValueError("Operation %r has been marked as not fetchable." % element.name))
        if isinstance(element, Operation):
            if element not in self.targets:
                self.targets.append(element)
            self.slots.append((-1, -1))
        elif element in self._fed:
            self.slots.append((-1, self._fed[element]))
        else:
            if element not in self._known:
                self._known[element] = len(self.tensors)
                self.tensors.append(element)
            self.slots.append((self._known[element], -1))
        return len(self.slots) - 1

    def element(self, fetch: Any) -> Any:
        """The tensor or operation that a leaf means."""
        try:
            return self._graph._element(fetch, allow_tensor=True, allow_operation=True)
        except TypeError as error:
            raise at_user_line(
                TypeError("Fetch argument %r has invalid type %r, must be a string or Tensor. (%s)" % (fetch, type(fetch).__name__, error))
            ) from None
        except (ValueError, KeyError) as error:
            raise at_user_line(ValueError("Fetch argument %r cannot be interpreted as a Tensor. (%s)" % (fetch, error.args[0]))) from None

    def _builder_of_mapping(self, fetch: Any) -> Callable[[List[Any]], Any]:
        kind, keyed = type(fetch), [(k, self.builder(f)) for k, f in fetch.items()]

        def build(values: List[Any]) -> Any:
            made = kind()  # some take other arguments than a dictionary does
            for key, part in keyed:
                made[key] = part(values)
            return made

        return build

    def builder(self, fetch: Any) -> Callable[[List[Any]], Any]:
        """A function of the leaf values that makes what `fetch` has the structure of."""
        if fetch is None:
            raise at_user_line(TypeError("Fetch argument None has invalid type 'NoneType', must be a string or Tensor."))
        if isinstance(fetch, (list, tuple)) and not hasattr(fetch, "_as_graph_element"):
            parts = [self.builder(f) for f in fetch]
            if isinstance(fetch, list):
                return lambda v: [p(v) for p in parts]
            if hasattr(fetch, "_fields"):
                made = type(fetch)
                return lambda v: made(*[p(v) for p in parts])
            return lambda v: tuple(p(v) for p in parts)
        if isinstance(fetch, dict):
            return self._builder_of_mapping(fetch)
        special = _special_fetch(fetch)
        if special is not None:
            tensors, contract = special
            numbers = [self.leaf(self.element(t)) for t in tensors]
            return lambda v: contract([v[n] for n in numbers])
        element = self.element(fetch)
        number = self.leaf(element)
        if isinstance(element, Tensor) and element.op.type == "GetSessionHandle" and element not in self._fed:
            self.has_handles, dtype, session = True, element.op.inputs[0].dtype, self._session
            return lambda v: handles["kind"](v[number], dtype, session())
        return lambda v: v[number]


handles: Dict[str, Any] = {}  # "kind": the class of fetched handles, which session_ops.py, which needs sessions itself, says
_conversions: List[Tuple[Any, Callable[[Any], Any], Optional[Callable[..., Any]], Optional[Callable[..., Any]]]] = []


def register_session_run_conversion_functions(
    tensor_type: Any, fetch_function: Any, feed_function: Any = None, feed_function_for_partial_run: Any = None
) -> None:
    """Makes objects of a type fetchable and feedable.

    fetch_function(x) -> (tensors, function of their values); feed_function(x, value) -> [(tensor, value)];
    feed_function_for_partial_run(x) -> [tensor].
    """
    if any(issubclass(known, tensor_type) for known, *_ in _conversions):
        raise at_user_line(ValueError("%s has already been registered so ignore it." % (tensor_type,)))
    _conversions.insert(0, (tensor_type, fetch_function, feed_function, feed_function_for_partial_run))


def _special_fetch(fetch: Any) -> Optional[Tuple[List[Any], Callable[[List[Any]], Any]]]:
    for tensor_type, fetch_function, *_ in _conversions:
        if isinstance(fetch, tensor_type) and fetch_function is not None:
            tensors, contract = fetch_function(fetch)
            return tensors, contract
    return None


def _fed_tensors(feed: Any) -> List[Any]:
    """The tensors that are fed for something that a partial run will be fed."""
    for tensor_type, _, _, feed_function in _conversions:
        if isinstance(feed, tensor_type) and feed_function is not None:
            return list(feed_function(feed))
    return [feed]


def _resolve(
    graph: Graph, fetches: Any, feed_keys: List[Any], session: Callable[[], Any] = lambda: None
) -> Tuple[List[Tensor], List[Operation], List[Tuple[int, int]], int, Any]:
    """What the extension module asks for, once for each pair of fetches and feed keys."""
    for key in feed_keys:
        if not isinstance(key, Tensor):
            raise _NeedsExpansion
        if key.graph is not graph:
            raise at_user_line(TypeError("Cannot interpret feed_dict key as Tensor: Tensor %s is not an element of this graph." % (key,)))
        if not graph.is_feedable(key):
            raise at_user_line(ValueError("Tensor %s may not be fed." % (key,)))
    wanted = _Fetches(graph, feed_keys, session)
    build = wanted.builder(fetches)
    if not wanted.tensors and not wanted.targets and not graph.get_operations():
        raise at_user_line(RuntimeError("The Session graph is empty.  Add operations to the graph before calling run()."))
    shape = _BUILD
    if wanted.has_handles:
        pass
    elif isinstance(fetches, (list, tuple)) and not hasattr(fetches, "_fields"):
        if len(wanted.slots) == len(fetches) and not any(isinstance(f, (list, tuple, dict)) or _special_fetch(f) for f in fetches):
            shape = _LIST if isinstance(fetches, list) else _TUPLE
    elif not isinstance(fetches, (tuple, dict)) and _special_fetch(fetches) is None:
        shape = _VALUE
    return wanted.tensors, wanted.targets, wanted.slots, shape, build


def _expand_feeds(graph: Graph, feed_dict: Any) -> Dict[Tensor, Any]:
    """A feed whose keys are tensors alone, of one with names, variables, nested tuples, sparse tensors as keys."""
    if not isinstance(feed_dict, dict):
        raise at_user_line(TypeError("The feed_dict must be a dictionary, got %s" % type(feed_dict).__name__))
    feeds: Dict[Tensor, Any] = {}

    def add(key: Any, value: Any) -> None:
        for tensor_type, _, feed_function, _ in _conversions:
            if isinstance(key, tensor_type) and feed_function is not None:
                for part, part_value in feed_function(key, value):
                    add(part, part_value)
                return
        if isinstance(key, dict):
            for name in key:
                add(key[name], value[name])
            return
        if isinstance(key, (list, tuple)):
            if len(key) == 1 and not isinstance(value, (list, tuple, dict)):  # a value by itself, not one of parts
                value = [value]
            if len(key) != len(value):
                raise at_user_line(ValueError("A feed key with %d tensors has a value with %d parts." % (len(key), len(value))))
            for part, part_value in zip(key, value):
                add(part, part_value)
            return
        try:
            tensor = graph._element(key, allow_tensor=True, allow_operation=False)
        except (TypeError, ValueError, KeyError) as error:
            raise at_user_line(TypeError("Cannot interpret feed_dict key as Tensor: %s" % error.args[0])) from None
        feeds[tensor] = value

    for key, value in feed_dict.items():
        add(key, value)
    return feeds


def _feed_error(feed_dict: Any, error: Exception) -> Optional[Exception]:
    """An error about a value that was fed, with the tensor and the line that made it; None when it is about something else."""
    for tensor, value in (feed_dict or {}).items():
        if not isinstance(tensor, Tensor) or isinstance(value, Tensor):
            continue
        if isinstance(error, TypeError) and tensor.dtype == dtypes.string and isinstance(value, int):
            return TypeError(
                "Type of feed value %s with type %s is not compatible with Tensor type %s%s" % (value, type(value), tensor.dtype.name, made_at(tensor))
            )
        if "Tensor '%s'" % tensor.name in str(error):
            return type(error)("%s%s" % (error, made_at(tensor)))
        try:
            numpy_cast.cast(value, tensor.dtype)
        except OverflowError:
            return TypeError(
                "Type of feed value %s with type %s is not compatible with Tensor type %s. Try explicitly setting the type of the feed tensor "
                "to a larger type (e.g. int64)." % (value, type(value), tensor.dtype.as_numpy_dtype)
            )
        except (TypeError, ValueError) as reason:
            return type(error)(
                "Cannot feed a value of type %s for Tensor '%s' of dtype %s and shape '%s'%s: %s"
                % (type(value).__name__, tensor.name, tensor.dtype.name, tensor.get_shape(), made_at(tensor), reason)
            )
    return None


recorders: List[Any] = []  # of steps, see profiler.record


def _encoded(options: Any, run_metadata: Any) -> Tuple[Optional[bytes], Optional[Callable[[bytes], Any]]]:
    """As native code takes a step's options, and what it calls with the encoded metadata."""
    take = None if run_metadata is None else getattr(run_metadata, "_parse_later", run_metadata.ParseFromString)
    return None if options is None else options.SerializeToString(), take


class _EncodedMetadata:
    """Takes a step's RunMetadata as it comes."""

    def __init__(self) -> None:
        self.data = b""

    def ParseFromString(self, data: bytes) -> None:
        """Keeps it."""
        self.data = data


class BaseSession(_core.Session):
    """What Session and InteractiveSession have in common."""

    def __init__(self, target: str = "", graph: Optional[Graph] = None, config: Any = None) -> None:
        if graph is None:
            graph = get_default_graph()
        elif not isinstance(graph, Graph):
            raise at_user_line(TypeError("graph must be a tf.Graph, but got %s" % type(graph).__name__))
        if isinstance(target, str):
            target_name = target
        elif isinstance(target, bytes):
            target_name = target.decode()
        else:
            raise at_user_line(TypeError("target must be a string, but got %s" % type(target).__name__))
        if config is None and "millrace.config" in sys.modules:  # tf.config may have set something
            config = sys.modules["millrace.config"].default_config()
        if config is not None and not hasattr(config, "SerializeToString"):
            raise at_user_line(TypeError("config must be a tf.ConfigProto, but got %s" % type(config).__name__))
        if config is not None:
            check_experimental(config)
        super().__init__(graph, target_name, b"" if config is None else config.SerializeToString())
        self._graph_object, self._target, self._config = graph, target_name, config
        this = weakref.ref(self)
        self._resolver = lambda fetches, keys: _resolve(graph, fetches, keys, this)
        self._dead_handles: List[str] = []  # of tensors that nobody can ask for any more
        self._partial: Dict[str, Any] = {}
        self._is_closed = False
        self._writers: List[Any] = []  # of checkpoints, in the background: they run steps of this session

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return "<tf.%s of %r%s%s>" % (type(self).__name__, self._graph_object, " on '%s'" % self._target if self._target else "", state)

    def _repr_html_(self) -> str:
        import html

        devices = "" if self._is_closed else " on %s" % ", ".join(html.escape(d.name) for d in self.list_devices())
        return "<b>%s</b>%s%s<br>%s" % (type(self).__name__, devices, " (closed)" if self._is_closed else "", self._graph_object._repr_html_())

    @property
    def sess_str(self) -> str:
        """The target."""
        return self._target

    @property
    def graph_def(self) -> Any:
        """The graph as a GraphDef message, with the shapes that are known where the session's options ask for them."""
        return self.graph.as_graph_def(add_shapes=self._config is not None and self._config.graph_options.infer_shapes)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs one step and returns the values of `fetches`, in the same structure.

        fetches: a tensor, an operation, a name, or lists, tuples, dicts and named tuples of these. feed_dict: values by
        tensor; any tensor can be fed.
        """
        if self._dead_handles:
            self._drop_dead_handles()
        if recorders:
            return self._run_recorded(fetches, feed_dict, options, run_metadata)
        try:
            if options is None and run_metadata is None:
                return self._run(fetches, feed_dict, self._resolver, None, None)
            return self._run_with(fetches, feed_dict, options, run_metadata)
        except (_NeedsExpansion, TypeError, ValueError, OverflowError) as error:
            feeds = self._feeds_after(error, feed_dict)
        return self._run_with(fetches, feeds, options, run_metadata)

    def _run_with(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        return self._run(fetches, feed_dict, self._resolver, *_encoded(options, run_metadata))

    def _feeds_after(self, error: Exception, feed_dict: Any) -> Any:
        """What to feed after `error`: tensors alone, where the keys are not. Raises the error, or one that says more, when that is not it."""
        if not isinstance(error, _NeedsExpansion):
            if feed_dict is None or isinstance(feed_dict, dict):
                better = _feed_error(feed_dict, error)
                if better is None:
                    raise error
                raise better from None
            if isinstance(error, ValueError):
                raise error
        return _expand_feeds(self.graph, feed_dict)

    def _run_recorded(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        def run(options: Any, run_metadata: Any) -> Any:
            try:
                return self._run_with(fetches, feed_dict, options, run_metadata)
            except (_NeedsExpansion, TypeError, ValueError, OverflowError) as error:
                return self._run_with(fetches, self._feeds_after(error, feed_dict), options, run_metadata)

        return self._record(run, options, run_metadata)

    def _run_recorded_callable(self, function: _core.Callable, values: Tuple[Any, ...]) -> Any:
        return self._record(lambda options, run_metadata: function._run(values, *_encoded(options, run_metadata)), None, None)

    def _record(self, run: Callable[[Any, Any], Any], options: Any, run_metadata: Any) -> Any:
        """run(options, run_metadata), traced for those who record this step."""
        wanted = [(recorder, number) for recorder in recorders for number in (recorder.begin(self),) if number >= 0]
        if wanted:
            from millrace.protos import definitions

            options = definitions.RunOptions() if options is None else options.__class__.FromString(options.SerializeToString())
            options.trace_level = options.FULL_TRACE
            given, run_metadata = run_metadata, _EncodedMetadata()
        values = run(options, run_metadata)
        if wanted:
            if given is not None:
                getattr(given, "_parse_later", given.ParseFromString)(run_metadata.data)
            for recorder, number in wanted:
                recorder.end(number, run_metadata.data)
        return values

    def _drop_dead_handles(self) -> None:
        made = self.graph.__dict__.setdefault("_session_tensor_ops", {})
        if "delete" not in made:
            with self.graph.as_default(), self.graph.device(None):
                holder = gen_ops.placeholder(dtype=dtypes.string)
                made["delete"] = holder, gen_ops.delete_session_tensor(holder)
        holder, op = made["delete"]
        while self._dead_handles:
            handle = self._dead_handles.pop()
            self._run(op, {holder: handle}, self._resolver, None, None)

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Starts a step in several calls; names all its fetches and feeds. The handle is for partial_run."""
        wanted = _Fetches(self.graph, [], lambda: self)
        wanted.builder(fetches)
        if not wanted.tensors and not wanted.targets:
            raise at_user_line(InvalidArgumentError(None, None, "Must specify at least one target to fetch or execute."))
        keys = [self.graph.as_graph_element(t, allow_tensor=True, allow_operation=False) for f in feeds or [] for t in _fed_tensors(f)]
        return self._start_partial(wanted.tensors, wanted.targets, keys)

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Goes on with a step: gives some of its feeds and takes some of its fetches."""
        feeds = None if feed_dict is None else _expand_feeds(self.graph, feed_dict)
        return self._run_partial(handle, fetches, feeds, self._resolver)

    def explain(self, fetches: Any, feeds: Any = None, as_text: bool = True) -> Any:
        """What the compiler makes of a step with these fetches and fed tensors: its stages and their times, the partitions, memory with who
        holds its peak, where each operation lies and why. The step does not run. Not `as_text`: a dict, as `millrace explain --json` prints."""
        wanted = _Fetches(self.graph, [], lambda: self)
        wanted.builder(fetches)
        keys = [self.graph.as_graph_element(f, allow_tensor=True, allow_operation=False) for f in feeds or []]
        text, facts = self._explain(wanted.tensors, wanted.targets, keys)
        if as_text:
            return text
        import json

        return json.loads(facts)

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        """A function of the values of feed_list that runs a step; faster than run."""
        graph = self.graph
        keys = [graph.as_graph_element(f, allow_tensor=True, allow_operation=False) for f in feed_list or []]
        function = self._callable(fetches, {k: None for k in keys}, self._resolver, recorders)
        if not accept_options:
            return function

        def with_options(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if options is None and run_metadata is None:
                return function(*values)
            return self._record(lambda options, run_metadata: function._run(values, *_encoded(options, run_metadata)), options, run_metadata)

        return with_options

    def _make_callable_from_options(self, callable_options: Any) -> Callable[..., List[Any]]:
        """A function of the values of `feed` that runs `target` and gives the values of `fetch`, by names. It may be given a RunMetadata."""
        if callable_options.tensor_connection:
            raise at_user_line(NotImplementedError("CallableOptions.tensor_connection is not provided: feed the tensors"))
        fetched = list(callable_options.fetch)
        function = self.make_callable(fetched + list(callable_options.target), list(callable_options.feed), accept_options=True)
        options = callable_options.run_options if callable_options.HasField("run_options") else None

        def call(*values: Any, run_metadata: Any = None) -> List[Any]:
            return function(*values, options=options, run_metadata=run_metadata)[: len(fetched)]

        return call

    def list_devices(self) -> List[Any]:
        """The devices that the session can use."""
        return [_DeviceAttributes(d[0], d[1], d[2], incarnation) for d, incarnation in zip(self._devices(), self._device_incarnations())]

    @property
    def random_state(self) -> bytes:
        """Where random ops are in their streams. A checkpoint does not hold it: keep it beside one, and set it in the session that goes on from there."""
        return self._random_state()

    @random_state.setter
    def random_state(self, state: bytes) -> None:
        self._set_random_state(state)

    def close(self) -> None:
        """Ends the session: steps that run are cancelled, later ones fail. Checkpoints that are being written are whole then."""
        self._is_closed = True
        writers, self._writers = self._writers, []
        try:
            for writer in writers:
                writer.wait()
        finally:
            self._close()

    def as_default(self) -> Any:
        """A context in which eval() and run() use this session."""
        return _DefaultSession(self)


class _DeviceAttributes:
    def __init__(self, name: str, device_type: str, memory_limit_bytes: int, incarnation: Optional[int] = None) -> None:
        self.name, self.device_type, self.memory_limit_bytes, self.incarnation = canonical_name(name), device_type, memory_limit_bytes, incarnation

    def __repr__(self) -> str:
        started = "" if self.incarnation is None else ", %d" % self.incarnation
        return "_DeviceAttributes(%s, %s, %d%s)" % (self.name, self.device_type, self.memory_limit_bytes, started)


class _DefaultSession:
    def __init__(self, session: BaseSession) -> None:
        self._session = session

    def __enter__(self) -> BaseSession:
        sessions.stack.append(self._session)
        return self._session

    def __exit__(self, *unused: Any) -> None:
        _leave(self._session)


def _leave(session: BaseSession) -> None:
    """Ends a session's turn as the default one: the innermost one's, but for sessions for shells."""
    stack = sessions.stack
    inner = [s for s in stack[len(stack) - stack[::-1].index(session) :] if not isinstance(s, InteractiveSession)] if session in stack else []
    if inner:
        raise at_user_line(AssertionError("Nesting violated for default stack of %s objects" % type(inner[-1]).__name__))
    if session in stack:
        del stack[len(stack) - 1 - stack[::-1].index(session)]


class Session(BaseSession):
    """Runs the operations of a graph. As a context it is the default session, its graph the default graph, and it is
    closed at the end."""

    def __init__(self, target: str = "", graph: Optional[Graph] = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._entered = False  # as a context

    def __enter__(self) -> "Session":
        if self._entered:
            raise at_user_line(
                RuntimeError("Session context managers are not re-entrant. Use `Session.as_default()` if you want to enter a session multiple times.")
            )
        self._entered = True
        _core.push_graph(self.graph)
        sessions.stack.append(self)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self._entered = False
        _leave(self)
        leave_graph()
        self.close()

    @staticmethod
    def reset(target: str, containers: Any = None, config: Any = None) -> None:
        """Closes the sessions of a target, and drops what lives in their containers: variables, queues. All containers when none is named."""
        if isinstance(containers, (str, bytes)):
            raise TypeError("containers must be a list of names, not %r" % (containers,))
        names = [c.decode() if isinstance(c, bytes) else str(c) for c in containers or []]
        BaseSession._reset(target or "", names, config.SerializeToString() if config is not None else b"")


class InteractiveSession(BaseSession):
    """A session that is the default one from its making on, for notebooks and shells."""

    _open: Any = weakref.WeakSet()

    def __init__(self, target: str = "", graph: Optional[Graph] = None, config: Any = None) -> None:
        if InteractiveSession._open:
            warnings.warn(
                "An interactive session is already active. This can cause out-of-memory errors in some cases. You must explicitly call "
                "`InteractiveSession.close()` to release resources held by the other session(s).",
                stacklevel=2,
            )
        super().__init__(target, graph, config)
        InteractiveSession._open.add(self)
        self._pushed = graph is not None
        if self._pushed:
            _core.push_graph(self.graph)
        sessions.stack.append(self)

    def close(self) -> None:
        """Ends the session; it is no longer the default one."""
        super().close()
        InteractiveSession._open.discard(self)
        if self in sessions.stack:
            sessions.stack.remove(self)
            if self._pushed:
                leave_graph()
