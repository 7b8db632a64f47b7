# SPDX-License-Identifier: Apache-2.0
"""Monitors of tf.contrib.learn that evaluate a model, save it, and write summaries."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace import tf_logging, train
from millrace.contrib.learn.monitor_kinds import BaseMonitor, EveryN, value_of
from millrace.estimator.estimator import Estimator
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.train import checkpoint_management


def _summary() -> Any:
    from millrace import summary

    return summary


class ValidationMonitor(EveryN):
    """Evaluates new checkpoints while the estimator trains, and may stop it when a metric no longer gets better."""

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: Optional[int] = None,
        eval_steps: Optional[int] = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Any = None,
        early_stopping_rounds: Optional[int] = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: Optional[str] = None,
        check_interval_secs: Optional[float] = 60,
    ) -> None:
        super().__init__(every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise at_user_line(ValueError("Either x or input_fn should be provided."))
        self._given: Dict[str, Any] = {
            "x": x,
            "y": y,
            "input_fn": input_fn,
            "batch_size": batch_size,
            "steps": eval_steps,
            "metrics": metrics,
            "hooks": hooks,
            "name": name,
        }
        self._rounds, self._metric, self._less, self._interval = (
            early_stopping_rounds,
            early_stopping_metric,
            early_stopping_metric_minimize,
            check_interval_secs,
        )
        self._seen: Optional[str] = None
        self._looked: Optional[float] = None
        self._best: Tuple[Any, Any, Any] = (None, None, None)
        self._early_stopped = False

    early_stopped = property(lambda self: self._early_stopped, doc="Whether it has stopped the training.")
    best_step = property(lambda self: self._best[0], doc="The step of the best value, or None.")
    best_value = property(lambda self: self._best[1], doc="The best value of the metric, or None.")
    best_metrics = property(lambda self: self._best[2], doc="All metrics of that step, or None.")

    def _evaluated(self, step: int) -> Any:
        """The metrics of a checkpoint that is new, or None."""
        now = time.time()
        if self._interval is not None and self._looked is not None and now - self._looked <= self._interval:
            return None
        self._looked = now
        latest = checkpoint_management.latest_checkpoint(self._estimator.model_dir)
        if latest is None or latest == self._seen:
            tf_logging.debug("Skipping evaluation at step %d since there is no new checkpoint.", step)
            return None
        self._seen = latest
        results = self._estimator.evaluate(**self._arguments())
        tf_logging.info("Validation (step %d): %s", step, ", ".join("%s = %s" % item for item in sorted(results.items())))
        return results

    def _arguments(self) -> Dict[str, Any]:
        """What evaluate takes: tf.estimator's takes less."""
        if not isinstance(self._estimator, Estimator):
            return self._given
        refused = [name for name in ("x", "y", "batch_size", "metrics") if self._given[name] is not None]
        if refused:
            raise at_user_line(ValueError("tf.estimator.Estimator does not support these arguments of ValidationMonitor: %s" % ", ".join(refused)))
        return {name: self._given[name] for name in ("input_fn", "steps", "hooks", "name")}

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Whether the metric has not got better for early_stopping_rounds steps."""
        super().every_n_step_end(step, outputs)
        if self._estimator is None:
            raise at_user_line(ValueError("Missing call to set_estimator."))
        results = self._evaluated(step)
        if results is None or self._rounds is None:
            return False
        if self._metric not in results:
            raise at_user_line(ValueError("Metric %s missing from outputs %s." % (self._metric, sorted(results))))
        value = results[self._metric]
        if self._best[1] is None or (value < self._best[1] if self._less else value > self._best[1]):
            self._best = (step, value, results)
        if step - self._best[0] < self._rounds:
            return False
        tf_logging.info("Stopping. Best step: %d with %s = %s.", self._best[0], self._metric, self._best[1])
        self._early_stopped = True
        return True


class SummarySaver(EveryN):
    """Writes a summary every so many steps."""

    def __init__(self, summary_op: Any, save_steps: int = 100, output_dir: Any = None, summary_writer: Any = None, scaffold: Any = None) -> None:
        super().__init__(every_n_steps=save_steps)
        self._summary_op, self._scaffold, self._writer = summary_op, scaffold, summary_writer
        if summary_writer is None and output_dir:
            self._writer = _summary().FileWriterCache.get(output_dir)

    def set_estimator(self, estimator: Any) -> None:
        """Writes into the folder of the estimator unless there is another."""
        super().set_estimator(estimator)
        if self._writer is None:
            self._writer = _summary().FileWriterCache.get(estimator.model_dir)

    def every_n_step_begin(self, step: int) -> List[Any]:
        """The summary."""
        super().every_n_step_begin(step)
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Writes it."""
        super().every_n_step_end(step, outputs)
        if self._summary_op is not None and self._writer is not None:
            self._writer.add_summary(value_of(outputs, self._summary_op), step)
        return False

    def end(self, session: Any = None) -> None:
        """Flushes the file."""
        super().end(session)
        if self._writer is not None:
            self._writer.flush()


class StepCounter(EveryN):
    """Writes how many steps a second takes."""

    def __init__(self, every_n_steps: int = 100, output_dir: Any = None, summary_writer: Any = None) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._summary_tag, self._writer = "global_step/sec", summary_writer
        self._before: Optional[Tuple[float, int]] = None
        if summary_writer is None and output_dir:
            self._writer = _summary().FileWriterCache.get(output_dir)

    def set_estimator(self, estimator: Any) -> None:
        """Writes into the folder of the estimator unless there is another."""
        super().set_estimator(estimator)
        if self._writer is None:
            self._writer = _summary().FileWriterCache.get(estimator.model_dir)

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Writes it."""
        super().every_n_step_end(step, outputs)
        now = time.time()
        if self._before is not None and self._writer is not None and now > self._before[0]:
            from millrace.protos.definitions import Summary  # type: ignore[attr-defined]

            rate = (step - self._before[1]) / (now - self._before[0])
            self._writer.add_summary(Summary(value=[Summary.Value(tag=self._summary_tag, simple_value=rate)]), step)
        self._before = (now, step)
        return False


class CheckpointSaver(BaseMonitor):
    """Saves every so many steps or seconds, at the first step and at the end."""

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: Optional[float] = None,
        save_steps: Optional[int] = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
    ) -> None:
        super().__init__()
        if (save_secs is None) == (save_steps is None):
            raise at_user_line(ValueError("Exactly one of save_steps and save_secs should be provided."))
        self._path, self._secs, self._steps, self._saver, self._scaffold = (
            os.path.join(checkpoint_dir, checkpoint_basename),
            save_secs,
            save_steps,
            saver,
            scaffold,
        )
        self._last: Optional[Tuple[float, int]] = None

    def begin(self, max_steps: Optional[int] = None) -> None:
        """Has saved nothing yet."""
        super().begin(max_steps)
        self._last = None

    def post_step(self, step: int, session: Any) -> None:
        """Saves where it is time."""
        super().post_step(step, session)
        due = self._last is None or (step >= self._last[1] + self._steps if self._steps is not None else time.time() >= self._last[0] + (self._secs or 0))
        if due:
            self._save(step, session)

    def end(self, session: Any = None) -> None:
        """Saves the last step."""
        super().end(session)
        step = int(session.run(train.get_global_step()))
        if self._last is None or step != self._last[1]:
            self._save(step, session)

    def _save(self, step: int, session: Any) -> None:
        self._last = (time.time(), step)
        saver = self._saver or (self._scaffold.saver if self._scaffold is not None else None)
        if saver is None:
            raise at_user_line(ValueError("CheckpointSaver needs a saver, or a scaffold with one."))
        saver.save(session, self._path, global_step=step)


class GraphDump(BaseMonitor):
    """Keeps what each operation of the graph gives, step by step, to compare two runs."""

    _NOT_ASKED = frozenset(
        "Enter RefEnter Exit RefExit Switch RefSwitch Merge RefMerge NextIteration RefNextIteration LoopCond ControlTrigger Placeholder PlaceholderWithDefault".split()
    )

    def __init__(self, ignore_ops: Any = None) -> None:
        super().__init__()
        self._ignored = self._NOT_ASKED if ignore_ops is None else frozenset(ignore_ops)
        self._data: Dict[int, Any] = {}

    data = property(lambda self: self._data, doc="{step: {name of a tensor: value}}.")

    def step_begin(self, step: int) -> List[Any]:
        """All that can be fetched."""
        super().step_begin(step)
        return [t.name for op in get_default_graph().get_operations() if op.type not in self._ignored for t in op.outputs]

    def step_end(self, step: int, output: Any) -> bool:
        """Keeps it."""
        super().step_end(step, output)
        self._data[step] = output
        return False

    def compare(self, other_dump: Any, step: int, atol: float = 1e-06) -> Tuple[List[str], Dict[str, Any]]:
        """(names of tensors that are alike, the pairs of values of those that are not)."""
        own, others = self._data[step], other_dump.data[step]
        alike, different = [], {}
        for name in sorted(set(own) & set(others)):
            a, b = np.asarray(own[name]), np.asarray(others[name])
            same = a.shape == b.shape and (np.allclose(a, b, atol=atol) if a.dtype.kind in "fiu" else bool((a == b).all()))
            if same:
                alike.append(name)
            else:
                different[name] = (own[name], others[name])
        return alike, different


class ExportMonitor(EveryN):
    """Exports the newest checkpoint, in steps that count and at the end, by the estimator's export; one that was exported already is left."""

    def __init__(
        self,
        every_n_steps: int,
        export_dir: Any,
        input_fn: Any = None,
        input_feature_key: Any = None,
        exports_to_keep: Optional[int] = 5,
        signature_fn: Any = None,
        default_batch_size: Optional[int] = 1,
    ) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._export_dir, self._exports_to_keep, self._signature_fn = export_dir, exports_to_keep, signature_fn
        self._input_fn, self._input_feature_key, self._default_batch_size = input_fn, input_feature_key, default_batch_size
        self._last_export_dir: Any = None

    export_dir = property(lambda self: self._export_dir, doc="Where exports are written.")
    exports_to_keep = property(lambda self: self._exports_to_keep, doc="How many stay.")
    signature_fn = property(lambda self: self._signature_fn, doc="What makes signatures.")
    last_export_dir = property(lambda self: self._last_export_dir, doc="The newest export.")

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Exports."""
        super().every_n_step_end(step, outputs)
        self._export()
        return False

    def end(self, session: Any = None) -> None:
        """Exports."""
        super().end(session)
        if checkpoint_management.latest_checkpoint(self._estimator.model_dir) is None:
            tf_logging.info("Skipping export at the end since model has not been saved yet.")
            return
        self._export()

    def _export(self) -> None:
        if isinstance(self._estimator, Estimator):
            message = "ExportMonitor does not support `tf.estimator.Estimator`. Please pass an ExportStrategy to Experiment instead."
            raise at_user_line(ValueError(message))
        try:
            self._last_export_dir = self._estimator.export(
                self.export_dir,
                exports_to_keep=self.exports_to_keep,
                signature_fn=self.signature_fn,
                input_fn=self._input_fn,
                default_batch_size=self._default_batch_size,
                input_feature_key=self._input_feature_key,
                use_deprecated_input_fn=self._input_fn is None,
            )
        except RuntimeError as error:  # the exporter writes over nothing
            tf_logging.info("Skipping exporting: %s", error)
