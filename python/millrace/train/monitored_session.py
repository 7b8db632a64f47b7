# SPDX-License-Identifier: Apache-2.0
"""Sessions that initialise or restore themselves, and call hooks around each step."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from millrace.framework import errors
from millrace.framework.graph import GraphKeys, get_collection, get_default_graph
from millrace.framework.session import Session
from millrace.ops import control_flow_ops, variables
from millrace.train.coordinator import Coordinator
from millrace.train.global_step import get_global_step
from millrace.train.saver import Saver, get_checkpoint_state
from millrace.train.hooks import (CheckpointSaverHook, SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues,  # noqa: F401
                                  StepCounterHook, SummarySaverHook)


class Scaffold:
    """The operations that make a session ready: initialisers, a saver, summaries. What is not given is made."""

    def __init__(self, init_op: Any = None, init_feed_dict: Any = None, init_fn: Any = None, ready_op: Any = None, ready_for_local_init_op: Any = None,
                 local_init_op: Any = None, summary_op: Any = None, saver: Any = None, copy_from_scaffold: Any = None) -> None:
        self._init_fn, self.init_feed_dict = init_fn, init_feed_dict
        self.init_op, self.ready_op, self.ready_for_local_init_op = init_op, ready_op, ready_for_local_init_op
        self.local_init_op, self.summary_op, self.saver = local_init_op, summary_op, saver

    @property
    def init_fn(self) -> Any:
        """A function of the session that is called after init_op, or None."""
        return (lambda session: self._init_fn(self, session)) if self._init_fn else None

    def finalize(self) -> "Scaffold":
        """Makes what was not given."""
        if self.init_op is None:
            self.init_op = self.get_or_default("init_op", GraphKeys.INIT_OP, lambda: control_flow_ops.group(
                variables.global_variables_initializer(), *get_collection(GraphKeys.TABLE_INITIALIZERS), name="init"))
        if self.ready_op is None:
            self.ready_op = self.get_or_default("ready_op", GraphKeys.READY_OP, variables.report_uninitialized_variables)
        if self.local_init_op is None:
            self.local_init_op = self.get_or_default("local_init_op", GraphKeys.LOCAL_INIT_OP, lambda: control_flow_ops.group(
                variables.local_variables_initializer(), *get_collection(GraphKeys.TABLE_INITIALIZERS), name="local_init"))
        if self.summary_op is None:
            from millrace import summary
            self.summary_op = self.get_or_default("summary_op", GraphKeys.SUMMARY_OP, summary.merge_all)
        if self.saver is None and (variables.global_variables() or get_collection(GraphKeys.SAVERS)):
            self.saver = self.get_or_default("saver", GraphKeys.SAVERS, lambda: Saver(allow_empty=True))
        get_default_graph().finalize()
        return self

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Any) -> Any:
        """What is in a collection, or a new one."""
        found = get_collection(collection_key)
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            get_default_graph().add_to_collection(collection_key, made)
        return made


class SessionManager:
    """Makes sessions whose variables are restored from a checkpoint, or initialised."""

    def __init__(self, local_init_op: Any = None, ready_op: Any = None, ready_for_local_init_op: Any = None, graph: Any = None,
                 recovery_wait_secs: float = 30, local_init_run_options: Any = None) -> None:
        self._local_init_op, self._ready_op, self._graph, self._wait = local_init_op, ready_op, graph or get_default_graph(), recovery_wait_secs

    def _restore(self, session: Any, saver: Any, checkpoint_dir: Optional[str], checkpoint_filename_with_path: Optional[str]) -> bool:
        if saver is None:
            return False
        if checkpoint_filename_with_path:
            saver.restore(session, checkpoint_filename_with_path)
            return True
        state = get_checkpoint_state(checkpoint_dir) if checkpoint_dir else None
        if state is None or not state.model_checkpoint_path:
            return False
        saver.restore(session, state.model_checkpoint_path)
        saver.recover_last_checkpoints(list(state.all_model_checkpoint_paths))
        return True

    def prepare_session(self, master: str, init_op: Any = None, saver: Any = None, checkpoint_dir: Optional[str] = None,
                        checkpoint_filename_with_path: Optional[str] = None, wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
                        config: Any = None, init_feed_dict: Any = None, init_fn: Any = None) -> Any:
        """A session that is ready."""
        session = Session(master, graph=self._graph, config=config)
        if not self._restore(session, saver, checkpoint_dir, checkpoint_filename_with_path):
            if init_op is None and init_fn is None and self._local_init_op is None:
                raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
            if init_op is not None:
                session.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(session)
        if self._local_init_op is not None:
            session.run(self._local_init_op)
        if self._ready_op is not None:
            missing = session.run(self._ready_op)
            if len(missing):
                raise RuntimeError("Init operations did not make model ready. Variables not initialized: %s" % ", ".join(m.decode() for m in missing))
        return session

    def recover_session(self, master: str, saver: Any = None, checkpoint_dir: Optional[str] = None, checkpoint_filename_with_path: Optional[str] = None,
                        wait_for_checkpoint: bool = False, max_wait_secs: float = 7200, config: Any = None) -> Any:
        """(session, whether it was restored)."""
        session = Session(master, graph=self._graph, config=config)
        restored = self._restore(session, saver, checkpoint_dir, checkpoint_filename_with_path)
        if restored and self._local_init_op is not None:
            session.run(self._local_init_op)
        return session, restored

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: float = float("Inf")) -> Any:
        """A session whose variables another process has initialised."""
        return self.prepare_session(master, init_op=control_flow_ops.no_op(), config=config)


class ChiefSessionCreator:
    """Makes the session of a process that initialises the variables."""

    def __init__(self, scaffold: Optional[Scaffold] = None, master: str = "", config: Any = None, checkpoint_dir: Optional[str] = None,
                 checkpoint_filename_with_path: Optional[str] = None) -> None:
        self._scaffold, self._master, self._config = scaffold or Scaffold(), master, config
        self._dir, self._file = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Any:
        """The session."""
        self._scaffold.finalize()
        manager = SessionManager(self._scaffold.local_init_op, self._scaffold.ready_op)
        return manager.prepare_session(self._master, self._scaffold.init_op, self._scaffold.saver, self._dir, self._file, config=self._config,
                                       init_feed_dict=self._scaffold.init_feed_dict, init_fn=self._scaffold.init_fn)


class WorkerSessionCreator(ChiefSessionCreator):
    """Makes the session of a process that waits for the chief."""

    def __init__(self, scaffold: Optional[Scaffold] = None, master: str = "", config: Any = None, max_wait_secs: float = 1800) -> None:
        super().__init__(scaffold, master, config)


class MonitoredSession:
    """A session with hooks. As a context it closes itself; OutOfRangeError ends it quietly."""

    def __init__(self, session_creator: Any = None, hooks: Any = None, stop_grace_period_secs: float = 120) -> None:
        creator = session_creator or ChiefSessionCreator()
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks: List[SessionRunHook] = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._coord = Coordinator()
        self._stop = False
        self._grace = stop_grace_period_secs
        self._session = creator.create_session()
        self._graph_scope = self._session.graph.as_default()
        runners = get_collection(GraphKeys.QUEUE_RUNNERS)
        for runner in runners:
            runner.create_threads(self._session, coord=self._coord, daemon=True, start=True)
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coord)

    @property
    def graph(self) -> Any:
        """The graph."""
        return self._session.graph

    def _tf_sess(self) -> Any:
        return self._session

    raw_session = _tf_sess

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs a step with what the hooks add."""
        if self._session is None:
            raise RuntimeError("Attempted to use a closed Session.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._session)
        wanted: Dict[str, Any] = {"caller": fetches}
        feeds = dict(feed_dict or {})
        for i, hook in enumerate(self._hooks):
            request = hook.before_run(context)
            if request is None:
                continue
            if not isinstance(request, SessionRunArgs):
                request = SessionRunArgs(request)
            if request.fetches is not None:
                wanted["hook%d" % i] = request.fetches
            if request.feed_dict:
                feeds.update(request.feed_dict)
        try:
            values = self._session.run(wanted, feeds or None, options, run_metadata)
        except (errors.OutOfRangeError, errors.CancelledError):
            self._coord.raise_requested_exception()
            raise
        for i, hook in enumerate(self._hooks):
            hook.after_run(context, SessionRunValues(values.get("hook%d" % i), options, run_metadata))
        self._stop = self._stop or context.stop_requested
        return values["caller"]

    def run_step_fn(self, step_fn: Any) -> Any:
        """Calls a function of a context whose run_with_hooks runs a step."""
        outer = self

        class StepContext:
            session = self._session

            @staticmethod
            def run_with_hooks(*args: Any, **kwargs: Any) -> Any:
                return outer.run(*args, **kwargs)

            @staticmethod
            def request_stop() -> None:
                outer._stop = True
        return step_fn(StepContext())

    def should_stop(self) -> bool:
        """Whether a hook asked to stop, or a thread did."""
        return self._session is None or self._stop or self._coord.should_stop()

    def close(self) -> None:
        """Ends the session."""
        self._close(None)

    def _close(self, error: Any) -> None:
        if self._session is None:
            return
        try:
            if error is None:
                for hook in self._hooks:
                    hook.end(self._session)
        finally:
            self._coord.request_stop()
            self._session.close()
            if not self._graph_was_finalized:
                self._session.graph._unsafe_unfinalize()
            try:
                self._coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
            finally:
                self._session = None

    def __enter__(self) -> "MonitoredSession":
        self._graph_scope.__enter__()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        quiet = kind is not None and issubclass(kind, (errors.OutOfRangeError, StopIteration))
        self._graph_scope.__exit__(kind, value, trace)
        self._close(None if quiet else value)
        return quiet


class SingularMonitoredSession(MonitoredSession):
    def __init__(self, hooks: Any = None, scaffold: Any = None, master: str = "", config: Any = None, checkpoint_dir: Optional[str] = None,
                 stop_grace_period_secs: float = 120, checkpoint_filename_with_path: Optional[str] = None) -> None:
        super().__init__(ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path), hooks, stop_grace_period_secs)


def MonitoredTrainingSession(master: str = "", is_chief: bool = True, checkpoint_dir: Optional[str] = None, scaffold: Optional[Scaffold] = None,  # noqa: N802
                             hooks: Any = None, chief_only_hooks: Any = None, save_checkpoint_secs: Any = 600, save_summaries_steps: Any = None,
                             save_summaries_secs: Any = None, config: Any = None, stop_grace_period_secs: float = 120, log_step_count_steps: Optional[int] = 100,
                             max_wait_secs: float = 7200, save_checkpoint_steps: Any = None, summary_dir: Optional[str] = None) -> MonitoredSession:
    """A MonitoredSession with the usual hooks: checkpoints, summaries, steps a second."""
    scaffold = scaffold or Scaffold()
    every: List[Any] = list(hooks or [])
    if not is_chief:
        return MonitoredSession(WorkerSessionCreator(scaffold, master, config, max_wait_secs), every, stop_grace_period_secs)
    every += list(chief_only_hooks or [])
    if checkpoint_dir:
        os.makedirs(checkpoint_dir, exist_ok=True)
        folder = summary_dir or checkpoint_dir
        if get_global_step() is not None:
            if log_step_count_steps:
                every.append(StepCounterHook(every_n_steps=log_step_count_steps, output_dir=folder))
            if save_summaries_steps is None and save_summaries_secs is None:
                save_summaries_steps = 100
            if save_summaries_steps or save_summaries_secs:
                every.append(SummarySaverHook(save_steps=save_summaries_steps or None, save_secs=None if save_summaries_steps else save_summaries_secs,
                                              output_dir=folder, scaffold=scaffold))
            if save_checkpoint_secs and save_checkpoint_secs > 0 or save_checkpoint_steps:
                every.append(CheckpointSaverHook(checkpoint_dir, None if save_checkpoint_steps else save_checkpoint_secs, save_checkpoint_steps or None,
                                                 scaffold=scaffold))
    return MonitoredSession(ChiefSessionCreator(scaffold, master, config, checkpoint_dir), every, stop_grace_period_secs)


