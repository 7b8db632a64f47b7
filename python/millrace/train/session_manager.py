# SPDX-License-Identifier: Apache-2.0
"""Sessions that are ready: restored from a checkpoint, initialised, or waited for until another process has made them ready."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace import tf_logging
from millrace.framework import errors
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.framework.session import Session
from millrace.train.saver import get_checkpoint_state

_State = Tuple[bool, Optional[str]]  # whether something is ready, else what is missing


class SessionManager:
    """Makes sessions whose variables are restored from a checkpoint, or initialised.

    `ready_op` and `ready_for_local_init_op` give the names of what is not initialised yet; `local_init_op` runs when the latter are none.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Any = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise at_user_line(
                ValueError(
                    "If you pass a ready_for_local_init_op you must also pass a local_init_op , ready_for_local_init_op [%s]" % (ready_for_local_init_op,)
                )
            )
        self._local_init_op, self._ready_op, self._ready_for_local_init_op = local_init_op, ready_op, ready_for_local_init_op
        self._graph, self._recovery_wait_secs = get_default_graph() if graph is None else graph, recovery_wait_secs
        self._local_init_run_options, self._local_init_feed_dict = local_init_run_options, local_init_feed_dict
        self._target: Optional[str] = None

    def _restore_checkpoint(
        self,
        master: str,
        saver: Any,
        checkpoint_dir: Optional[str],
        checkpoint_filename_with_path: Optional[str],
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: Any,
    ) -> Tuple[Session, bool]:
        """(a session, whether it was restored)."""
        self._target = master
        if checkpoint_dir and checkpoint_filename_with_path:
            raise at_user_line(ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path."))
        session = Session(master, graph=self._graph, config=config)
        if not saver or not (checkpoint_dir or checkpoint_filename_with_path):
            return session, False
        if checkpoint_filename_with_path:
            saver.restore(session, checkpoint_filename_with_path)
            return session, True
        waited, state = 0.0, get_checkpoint_state(checkpoint_dir)  # type: ignore[arg-type]
        while state is None or not state.model_checkpoint_path:
            if not wait_for_checkpoint or waited >= max_wait_secs:
                return session, False
            tf_logging.info("Waiting for checkpoint to be available.")
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
            state = get_checkpoint_state(checkpoint_dir)  # type: ignore[arg-type]
        saver.recover_last_checkpoints(_restore_newest_good(saver, session, state))
        return session, True

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_filename_with_path: Optional[str] = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Any = None,
    ) -> Any:
        """A session that is ready: restored, or else initialised by `init_op` and `init_fn`. RuntimeError where it is not ready then."""
        session, restored = self._restore_checkpoint(master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config)
        if not restored:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise at_user_line(RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given"))
            if init_op is not None:
                session.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(session)
        initialised, missing = self._try_run_local_init_op(session)
        if not initialised:
            raise at_user_line(
                RuntimeError(
                    "Init operations did not make model ready for local_init.  Init op: %s, init fn: %s, error: %s" % (_name(init_op), init_fn, missing)
                )
            )
        ready, missing = self._model_ready(session)
        if not ready:
            raise at_user_line(
                RuntimeError(
                    "Init operations did not make model ready.  Init op: %s, init fn: %s, local_init_op: %s, error: %s"
                    % (_name(init_op), init_fn, self._local_init_op, missing)
                )
            )
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_filename_with_path: Optional[str] = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> Tuple[Any, bool]:
        """(a session, whether it was restored and is ready)."""
        session, restored = self._restore_checkpoint(master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config)
        initialised, missing = self._try_run_local_init_op(session)
        if not restored:
            return session, False
        ready = initialised
        if initialised:
            ready, missing = self._model_ready(session)
        if not ready:
            tf_logging.info("Restoring model from %s did not make model ready: %s", checkpoint_dir or checkpoint_filename_with_path, missing)
        return session, ready

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: Optional[float] = float("Inf")) -> Any:
        """A session that is ready once another process has initialised its variables. DeadlineExceededError after the time.

        It looks often at first, so that workers that start together also train together, and every recovery_wait_secs in the end.
        """
        self._target = master
        pause = min(0.05, self._recovery_wait_secs)
        limit = float("Inf") if max_wait_secs is None else max_wait_secs
        until = time.time() + limit
        while True:
            session = Session(master, graph=self._graph, config=config)
            ready, missing = self._try_run_local_init_op(session)
            if ready:
                ready, missing = self._model_ready(session)
                if ready:
                    return session
            session.close()
            if until - time.time() < self._recovery_wait_secs:
                late: Any = errors.DeadlineExceededError(None, None, "Session was not ready after waiting %s secs." % limit)
                late.peer_did_not_come = True  # the chief: the program may be started again (launch/contract.py)
                raise at_user_line(late)
            tf_logging.info("Waiting for model to be ready: %s", missing)
            time.sleep(pause)
            pause = min(2 * pause, self._recovery_wait_secs)

    # ---- whether it is ready ----

    def _model_ready(self, sess: Any) -> _State:
        return _ready(self._ready_op, sess, "Model not ready")

    def _model_ready_for_local_init(self, sess: Any) -> _State:
        return _ready(self._ready_for_local_init_op, sess, "Model not ready for local init")

    def _try_run_local_init_op(self, sess: Any) -> _State:
        if self._local_init_op is None:
            return True, None
        ready, missing = self._model_ready_for_local_init(sess)
        if ready:
            sess.run(self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options)
        return ready, missing


def _restore_newest_good(saver: Any, session: Any, state: Any) -> List[str]:
    """Restores the newest checkpoint that is whole; the checkpoints of the folder but those that are not. The newest's error, when none is."""
    newest = state.model_checkpoint_path
    paths = [newest, *(p for p in reversed(state.all_model_checkpoint_paths) if p != newest)]
    bad: Dict[str, errors.OpError] = {}
    for path in paths:
        try:
            saver.restore(session, path)
        except (errors.DataLossError, errors.NotFoundError) as error:
            differs = getattr(saver, "_mismatch", lambda *_: True)  # of another class: who knows
            if isinstance(error, errors.NotFoundError) and differs(session.graph, path):
                raise  # it has other variables, which is the program's to know
            bad[path] = error
            tf_logging.warning("Checkpoint %s is damaged, an older one is looked for: %s", path, error.message)
        else:
            if bad:
                tf_logging.warning("Restored %s, the newest checkpoint that is whole.", path)
            return [p for p in state.all_model_checkpoint_paths if p not in bad]
    raise bad[newest]


def _ready(op: Any, sess: Any, what: str) -> _State:
    if op is None:
        return True, None
    try:
        names = sess.run(op)
    except errors.FailedPreconditionError as error:
        if "uninitialized" not in str(error):
            tf_logging.warning("%s : error [%s]", what, error)
            raise
        return False, str(error)
    if names is None or names.size == 0 or names.dtype == np.int32:  # ranks are what tf.assert_variables_initialized gives where all is well
        return True, None
    return False, "Variables not initialized: " + ", ".join(name.decode() if isinstance(name, bytes) else str(name) for name in names)


def _name(init_op: Any) -> Any:
    return getattr(init_op, "name", None)
