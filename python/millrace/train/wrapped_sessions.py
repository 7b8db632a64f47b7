# SPDX-License-Identifier: Apache-2.0
"""Sessions around sessions: made anew after a preemption, stopped with a coordinator's threads, with hooks around each step."""

from __future__ import annotations

import random
import time
from typing import Any, Dict, List

from millrace import tf_logging
from millrace.framework import errors
from millrace.launch import contract
from millrace.protos import definitions
from millrace.train.hooks import SessionRunArgs, SessionRunContext, SessionRunValues

PREEMPTION = (errors.AbortedError, errors.UnavailableError)


class _WrappedSession:
    """Another session, until it is closed."""

    def __init__(self, sess: Any) -> None:
        self._sess = sess
        self._inner_wraps = isinstance(sess, _WrappedSession)

    graph = property(lambda self: self._sess.graph, doc="The graph.")
    sess_str = property(lambda self: self._sess.sess_str, doc="The target.")

    def _tf_sess(self) -> Any:
        return self._sess._tf_sess() if self._inner_wraps else self._sess

    def should_stop(self) -> bool:
        """Whether it is closed, or something asked to stop."""
        return self._sess is None or bool(self._check_stop()) or (self._inner_wraps and self._sess.should_stop())

    def _check_stop(self) -> bool:
        return False

    def close(self) -> None:
        """Closes the session inside; a preemption then is no error."""
        if self._sess is None:
            return
        try:
            self._sess.close()
        except PREEMPTION:
            pass
        finally:
            self._sess = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """A step of the session inside."""
        return self._sess.run(*args, **kwargs)

    def run_step_fn(self, step_fn: Any, raw_session: Any, run_with_hooks: Any) -> Any:
        """Calls a function of a context whose run_with_hooks is a step."""
        return step_fn(StepContext(raw_session, run_with_hooks or self.run))


class StepContext:
    """What a step function is given."""

    def __init__(self, session: Any, run_with_hooks_fn: Any) -> None:
        self._session, self._run = session, run_with_hooks_fn

    session = property(lambda self: self._session, doc="The session without hooks.")

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """A step with the hooks."""
        return self._run(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the loop: run_step_fn raises StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class _Failures:
    """Preemptions in a row. Each is followed by a pause that grows, and after too many of them the last one is raised."""

    MOST = 20
    MOST_SECONDS = 1800.0  # in which no step has gone well: each attempt may have waited for a task for ten minutes
    FIRST_PAUSE, LONGEST_PAUSE, LONGEST_NAP = 0.1, 30.0, 0.5
    _MOST_TOLD = 5

    def __init__(self) -> None:
        self._told: List[str] = []
        self._began = 0.0
        self._random = random.Random()  # not the program's

    def forget(self) -> None:
        """A step has gone well."""
        self._told.clear()

    def pause(self, error: Any) -> None:
        """Waits, longer each time and not as long as others do; raises the error, with what happened before, when no attempt is left."""
        if not self._told:
            self._began = time.monotonic()
        lasted = time.monotonic() - self._began
        self._told.append("after %.1f s, %s: %s" % (lasted, type(error).__name__, str(error.message).split("\n", 1)[0]))
        if len(self._told) >= self.MOST or lasted >= self.MOST_SECONDS:
            left_out = len(self._told) - self._MOST_TOLD
            lines = ["%d more" % left_out] * (left_out > 0) + self._told[-self._MOST_TOLD :]
            message = "%s\nNo step has gone well since %d attempts, in %.0f s:\n\t%s" % (error.message, len(self._told), lasted, "\n\t".join(lines))
            raise type(error)(error.node_def, error.op, message) from error
        longest = min(self.LONGEST_PAUSE, self.FIRST_PAUSE * 2 ** (len(self._told) - 1))
        until = time.monotonic() + longest * self._random.uniform(0.5, 1.0)
        while True:
            contract.leave_if_told()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, self.LONGEST_NAP))


class _RecoverableSession(_WrappedSession):
    """A session that is made anew when it was preempted."""

    def __init__(self, session_creator: Any) -> None:
        self._session_creator, self._failures = session_creator, _Failures()
        super().__init__(self._create())

    def _create(self) -> Any:
        while True:
            try:
                return self._session_creator.create_session()
            except PREEMPTION as error:
                tf_logging.info("An error was raised while a session was being created (%s); a new session will be created.", error)
                self._failures.pause(error)

    def _check_stop(self) -> bool:
        try:
            return bool(self._sess._check_stop()) if self._inner_wraps else False
        except PREEMPTION as error:
            self._drop()
            self._failures.pause(error)
            self._sess = self._create()
            return False
        except Exception:
            return True

    def _drop(self) -> None:
        try:
            self._sess.close()
        except Exception as error:
            tf_logging.info("Closing a preempted session: %s", error)
        self._sess = None

    def _again(self, step: Any) -> Any:
        while True:
            if self._sess is None:
                self._sess = self._create()
                self._inner_wraps = isinstance(self._sess, _WrappedSession)
            try:
                result = step(self._sess)
            except PREEMPTION as error:
                tf_logging.info("An error was raised (%s); the session is closed, and a new one will be created.", error)
                self._drop()
                self._failures.pause(error)
            else:
                self._failures.forget()
                return result

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """A step, again in a new session after a preemption."""
        return self._again(lambda session: session.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata))

    def run_step_fn(self, step_fn: Any, raw_session: Any, run_with_hooks: Any) -> Any:
        """Calls a step function, again in a new session after a preemption."""
        given_for = self._sess
        return self._again(lambda session: session.run_step_fn(step_fn, raw_session if session is given_for else session._tf_sess(), run_with_hooks))


class _CoordinatedSession(_WrappedSession):
    """A session whose end stops the threads of a coordinator; what they reported is raised in its stead."""

    def __init__(self, sess: Any, coord: Any, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord, self._grace = coord, stop_grace_period_secs

    def _check_stop(self) -> bool:
        if self._coord.should_stop():
            self._coord.raise_requested_exception()
        return bool(self._coord.should_stop())

    def close(self) -> None:
        """Stops and joins the threads."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        finally:
            try:
                super().close()
            except Exception as error:
                tf_logging.info("Closing a session: %s", error)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """A step. A preemption that a thread reported comes before the step's own error."""
        try:
            return self._sess.run(*args, **kwargs)
        except PREEMPTION:
            raise
        except Exception as error:
            try:
                self._coord.raise_requested_exception()
            except PREEMPTION:
                raise
            except Exception:
                raise error from None
            raise


class _HookedSession(_WrappedSession):
    """A session with hooks before and after each step."""

    def __init__(self, sess: Any, hooks: Any) -> None:
        super().__init__(sess)
        self._hooks, self._should_stop = hooks, False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """A step with what the hooks add."""
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        wanted: Dict[Any, Any] = {"caller": fetches}
        every = options or definitions.RunOptions()
        feeds, every = self._ask(context, wanted, feed_dict, every)
        metadata = run_metadata or definitions.RunMetadata()
        values = self._sess.run(wanted, feed_dict=feeds, options=every, run_metadata=metadata)
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(results=values.get(hook), options=every, run_metadata=metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return values["caller"]

    def _ask(self, context: SessionRunContext, wanted: Dict[Any, Any], given: Any, options: Any) -> Any:
        hooked: Dict[Any, Any] = {}
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if not isinstance(request, SessionRunArgs):
                request = SessionRunArgs(request)
            if request.fetches is not None:
                wanted[hook] = request.fetches
            if request.feed_dict:
                if set(request.feed_dict) & set(hooked):
                    raise RuntimeError("Same tensor is fed by two hooks.")
                hooked.update(request.feed_dict)
            if request.options:
                options = _merged_options(options, request.options)
        if not hooked:
            return given, options
        if given and set(hooked) & set(given):
            raise RuntimeError("Same tensor is fed by a SessionRunHook and user.")
        return {**(given or {}), **hooked}, options


def _merged_options(given: Any, incoming: Any) -> Any:
    """Options with what a hook asks for beside them."""
    options = definitions.RunOptions()
    options.CopyFrom(given)
    options.trace_level = max(options.trace_level, incoming.trace_level)
    options.timeout_in_ms = max(options.timeout_in_ms, incoming.timeout_in_ms)
    options.inter_op_thread_pool = max(options.inter_op_thread_pool, incoming.inter_op_thread_pool)
    options.output_partition_graphs = max(options.output_partition_graphs, incoming.output_partition_graphs)
    if incoming.HasField("debug_options"):
        options.debug_options.MergeFrom(incoming.debug_options)
    return options
