# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Sessions that initialise or restore themselves, and call hooks around each step."""

from __future__ import annotations

import inspect
from typing import Any, List, Optional

from millrace import gfile
from millrace.framework import errors
from millrace.framework.graph import GraphKeys, get_collection, get_default_graph
from millrace.ops import array_ops, control_flow_ops, resources, variables
from millrace.train import tasks
from millrace.train.coordinator import Coordinator
from millrace.train.global_step import get_global_step
from millrace.train.queue_runner import start_queue_runners
from millrace.train.saver import _get_saver_or_default
from millrace.train.session_manager import SessionManager
from millrace.train.hooks import (  # noqa: F401
    CheckpointSaverHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    SummarySaverHook,
)
from millrace.train.signals import SignalHook
from millrace.train.wrapped_sessions import StepContext as _StepContext
from millrace.train.wrapped_sessions import (  # noqa: F401
    _CoordinatedSession,
    _HookedSession,
    _RecoverableSession,
    _WrappedSession,
    PREEMPTION as _PREEMPTION_ERRORS,
)


class Scaffold:
    """The operations that make a session ready: initialisers, a saver, summaries. What is not given is made."""

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Any = None,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def given(name: str, value: Any) -> Any:
            return value if value is not None or copy_from_scaffold is None else getattr(copy_from_scaffold, name)

        self._user_init_fn = given("_user_init_fn", init_fn)
        self.init_feed_dict = given("init_feed_dict", init_feed_dict)
        self.init_op, self.ready_op = given("init_op", init_op), given("ready_op", ready_op)
        self.ready_for_local_init_op = given("ready_for_local_init_op", ready_for_local_init_op)
        self.local_init_op, self.summary_op, self.saver = given("local_init_op", local_init_op), given("summary_op", summary_op), given("saver", saver)

    @property
    def init_fn(self) -> Any:
        """A function of the session that is called after init_op, or None."""
        return (lambda session: self._user_init_fn(self, session)) if self._user_init_fn else None

    def finalize(self) -> "Scaffold":
        """Makes what was not given."""
        if self.init_op is None:
            self.init_op = self.get_or_default("init_op", GraphKeys.INIT_OP, self._default_init_op)
        if self.ready_op is None:
            self.ready_op = self.get_or_default(
                "ready_op",
                GraphKeys.READY_OP,
                lambda: array_ops.concat([variables.report_uninitialized_variables(), resources.report_uninitialized_resources()], 0),
            )
        if self.ready_for_local_init_op is None:
            self.ready_for_local_init_op = self.get_or_default(
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: array_ops.concat(
                    [
                        variables.report_uninitialized_variables(variables.global_variables()),
                        resources.report_uninitialized_resources(resources.shared_resources()),
                    ],
                    0,
                ),
            )
        if self.local_init_op is None:
            self.local_init_op = self.get_or_default("local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op)
        if self.summary_op is None:
            from millrace import summary

            self.summary_op = self.get_or_default("summary_op", GraphKeys.SUMMARY_OP, summary.merge_all)
        if self.saver is None:
            self.saver = _get_saver_or_default()
        self.saver.build()
        get_default_graph().finalize()
        return self

    @staticmethod
    def _default_init_op() -> Any:
        """What gives variables, tables and resources that all processes share their first values."""
        shared = resources.initialize_resources(resources.shared_resources())
        return control_flow_ops.group(variables.global_variables_initializer(), shared, *get_collection(GraphKeys.TABLE_INITIALIZERS), name="init")

    @staticmethod
    def default_local_init_op() -> Any:
        """What gives local variables, tables and resources their first values."""
        local = resources.initialize_resources(resources.local_resources())
        return control_flow_ops.group(variables.local_variables_initializer(), local, *get_collection(GraphKeys.TABLE_INITIALIZERS), name="local_init")

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Any) -> Any:
        """What is in a collection, or a new one."""
        found = get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                'More than one item in the collection "%s". Please indicate which one to use by passing it to the tf.Scaffold '
                "constructor as: tf.Scaffold(%s=item to use)" % (collection_key, arg_name)
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            get_default_graph().add_to_collection(collection_key, made)
        return made


class SessionCreator:
    """Base of what makes sessions: create_session() gives one that is ready."""

    def create_session(self) -> Any:
        """The session."""
        raise NotImplementedError("create_session is not implemented for %s." % self)


class ChiefSessionCreator(SessionCreator):
    """Makes the session of a process that initialises the variables."""

    def __init__(
        self,
        scaffold: Optional[Scaffold] = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_filename_with_path: Optional[str] = None,
    ) -> None:
        self._scaffold, self._master, self._config = scaffold or Scaffold(), master, config
        self._dir, self._file = checkpoint_dir, checkpoint_filename_with_path
        self._session_manager: Optional[SessionManager] = None

    def _get_session_manager(self) -> SessionManager:
        if self._session_manager is None:
            self._session_manager = SessionManager(
                self._scaffold.local_init_op, self._scaffold.ready_op, self._scaffold.ready_for_local_init_op, get_default_graph()
            )
        return self._session_manager

    def create_session(self) -> Any:
        """The session."""
        self._scaffold.finalize()
        return self._get_session_manager().prepare_session(
            self._master,
            self._scaffold.init_op,
            self._scaffold.saver,
            self._dir,
            self._file,
            config=self._config,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(ChiefSessionCreator):
    """Makes the session of a process that waits until the chief has initialised the variables."""

    def __init__(self, scaffold: Optional[Scaffold] = None, master: str = "", config: Any = None, max_wait_secs: Optional[float] = 1800) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Any:
        """The session."""
        self._scaffold.finalize()
        return self._get_session_manager().wait_for_session(self._master, config=self._config, max_wait_secs=self._max_wait_secs)


class _CoordinatedSessionCreator:
    """Makes a session, starts the graph's queue runners, and tells the hooks."""

    def __init__(self, session_creator: Any, hooks: List[SessionRunHook], stop_grace_period_secs: float) -> None:
        self._creator, self._hooks, self._grace = session_creator, hooks, stop_grace_period_secs
        self.coord: Any = None
        self.tf_sess: Any = None

    def create_session(self) -> Any:
        """The session, with its hooks and its coordinator."""
        self.tf_sess, self.coord = self._creator.create_session(), Coordinator()
        start_queue_runners(sess=self.tf_sess, coord=self.coord)
        for hook in self._hooks:
            hook.after_create_session(self.tf_sess, self.coord)
        return _CoordinatedSession(_HookedSession(self.tf_sess, self._hooks), self.coord, self._grace)


class _MonitoredSession:
    """A session with hooks. As a context it closes itself; OutOfRangeError ends it quietly."""

    StepContext = _StepContext

    def __init__(self, session_creator: Any, hooks: Any, should_recover: bool, stop_grace_period_secs: float = 120) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks: List[SessionRunHook] = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._coordinated_creator = _CoordinatedSessionCreator(session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs)
        self._sess: Any = _RecoverableSession(self._coordinated_creator) if should_recover else self._coordinated_creator.create_session()
        self._graph_scope = self.graph.as_default()

    @property
    def graph(self) -> Any:
        """The graph."""
        return None if self._sess is None else self._coordinated_creator.tf_sess.graph

    def _tf_sess(self) -> Any:
        return self._coordinated_creator.tf_sess

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs a step with what the hooks add."""
        if self._sess is None:
            raise RuntimeError("Attempted to use a closed Session.")
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Any) -> Any:
        """Calls a function of a context whose run_with_hooks runs a step."""
        names = list(inspect.signature(step_fn).parameters)
        if names not in (["step_context"], ["self", "step_context"]):
            raise ValueError("`step_fn` may either have one `step_context` argument, or `self` and `step_context` when it is a method; got %s" % names)
        if self._sess is None:
            raise RuntimeError("Attempted to use a closed Session.")
        return self._sess.run_step_fn(step_fn, self._tf_sess(), None)

    def should_stop(self) -> bool:
        """Whether a hook asked to stop, or a thread did."""
        return self._sess is None or bool(self._sess.should_stop())

    def close(self) -> None:
        """Ends the session."""
        self._close_internal()

    def _is_closed(self) -> bool:
        return self._coordinated_creator.tf_sess is None

    def _close_internal(self, exception_type: Any = None) -> None:
        try:
            if exception_type is None and self._sess is not None:
                for hook in self._hooks:
                    hook.end(self._coordinated_creator.tf_sess)
        finally:
            if self._sess is None:
                raise RuntimeError("Session is already closed.")
            graph = self.graph
            try:
                self._sess.close()
            finally:
                for hook in self._hooks:
                    if isinstance(hook, SignalHook):
                        hook.release()
                self._sess = self._coordinated_creator.tf_sess = self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    graph._unsafe_unfinalize()

    def __enter__(self) -> "_MonitoredSession":
        self._graph_scope.__enter__()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        if kind is not None and issubclass(kind, (errors.OutOfRangeError, StopIteration)):
            kind = None
        self._graph_scope.__exit__(None, None, None)
        self._close_internal(kind)
        return kind is None


class MonitoredSession(_MonitoredSession):
    """A session with hooks, made anew after a preemption. As a context it closes itself; OutOfRangeError ends it quietly."""

    def __init__(self, session_creator: Any = None, hooks: Any = None, stop_grace_period_secs: float = 120) -> None:
        if session_creator is None and tasks.has_worker_context():
            session_creator = tasks.get_current_worker_context().session_creator()
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks whose preemptions are the program's."""

    def __init__(
        self,
        hooks: Any = None,
        scaffold: Any = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Optional[str] = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: Optional[str] = None,
    ) -> None:
        super().__init__(ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path), hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session without hooks."""
        return self._tf_sess()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Optional[str] = None,
    scaffold: Optional[Scaffold] = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: Any = 600,
    save_summaries_steps: Any = None,
    save_summaries_secs: Any = None,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: Optional[int] = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = None,
    summary_dir: Optional[str] = None,
) -> MonitoredSession:
    """A MonitoredSession with the usual hooks: checkpoints, summaries, steps a second. Theirs and the chief's turn is before that of `hooks`, which
    so find the last checkpoint at the end."""
    scaffold, of_all = scaffold or Scaffold(), list(hooks or [])
    if not is_chief:
        return MonitoredSession(WorkerSessionCreator(scaffold, master, config, max_wait_secs), [*of_all, SignalHook(of_all)], stop_grace_period_secs)
    every: List[Any] = list(chief_only_hooks or [])
    if checkpoint_dir:
        checkpoint_dir = gfile.as_path(checkpoint_dir)
        gfile.MakeDirs(checkpoint_dir)
    folder, counts = summary_dir or checkpoint_dir, get_global_step() is not None
    if folder and counts:
        if log_step_count_steps:
            every.append(StepCounterHook(every_n_steps=log_step_count_steps, output_dir=folder))
        if save_summaries_steps is None and save_summaries_secs is None:
            save_summaries_steps = 100
        if save_summaries_steps or save_summaries_secs:
            seconds = None if save_summaries_steps else save_summaries_secs
            every.append(SummarySaverHook(save_steps=save_summaries_steps or None, save_secs=seconds, output_dir=folder, scaffold=scaffold))
    if checkpoint_dir and counts and (save_checkpoint_secs and save_checkpoint_secs > 0 or save_checkpoint_steps):
        seconds = None if save_checkpoint_steps else save_checkpoint_secs
        every.append(CheckpointSaverHook(checkpoint_dir, seconds, save_checkpoint_steps or None, scaffold=scaffold))
    every += of_all
    return MonitoredSession(ChiefSessionCreator(scaffold, master, config, checkpoint_dir), [*every, SignalHook(every)], stop_grace_period_secs)
