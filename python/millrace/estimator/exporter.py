# SPDX-License-Identifier: Apache-2.0
"""What is exported after evaluations."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional

from millrace import gfile, tf_logging
from millrace.compat import as_str_any
from millrace.estimator import gc
from millrace.estimator.spec import LOSS_METRIC_KEY
from millrace.framework import errors
from millrace.framework.errors import at_user_line


class Exporter:
    """Exports a model after an evaluation, or does not."""

    @property
    def name(self) -> str:
        """The folder below export/ that it writes to."""
        raise NotImplementedError("%s.name" % type(self).__name__)

    def export(self, estimator: Any, export_path: Any, checkpoint_path: str, eval_result: Dict[str, Any], is_the_final_export: bool) -> Any:
        """Exports the checkpoint to a folder below export_path, whose name it answers, or None."""
        raise NotImplementedError("%s.export" % type(self).__name__)


class _SavedModelExporter(Exporter):
    def __init__(self, name: str, serving_input_receiver_fn: Any, assets_extra: Any, as_text: bool) -> None:
        self._name, self._receive, self._assets_extra, self._as_text = name, serving_input_receiver_fn, assets_extra, as_text

    name = property(lambda self: self._name, doc="Its folder.")

    def _write(self, estimator: Any, export_path: Any, checkpoint_path: str) -> Any:
        return estimator.export_savedmodel(
            export_path, self._receive, assets_extra=self._assets_extra, as_text=self._as_text, checkpoint_path=checkpoint_path, strip_default_attrs=True
        )


def _export_version(path: gc.Path) -> Optional[gc.Path]:
    name = os.path.basename(path.path)
    return path._replace(export_version=int(name)) if len(name) == 10 and name.isdigit() else None


def _receiver(given: Any, older: Any) -> Any:
    """The function that makes the inputs, also under the name that TensorFlow 1.4 gave it."""
    return older if given is None else given


def _check_count(exports_to_keep: Optional[int]) -> None:
    if exports_to_keep is not None and exports_to_keep <= 0:
        raise at_user_line(ValueError("`exports_to_keep`, if provided, must be positive number"))


def _keep_newest(export_path: Any, count: Optional[int]) -> None:
    if count is None:
        return
    for path in gc._negation(gc._largest_export_versions(count))(gc._get_paths(export_path, _export_version)):
        try:
            gfile.DeleteRecursively(path.path)
        except errors.NotFoundError as error:
            tf_logging.warning("Can not delete %s recursively: %s", path.path, error)


class FinalExporter(_SavedModelExporter):
    """Exports once, at the end of training."""

    def __init__(self, name: str, serving_input_receiver_fn: Any = None, assets_extra: Any = None, as_text: bool = False, serving_input_fn: Any = None) -> None:
        super().__init__(name, _receiver(serving_input_receiver_fn, serving_input_fn), assets_extra, as_text)

    def export(self, estimator: Any, export_path: Any, checkpoint_path: str, eval_result: Dict[str, Any], is_the_final_export: bool) -> Any:
        """Exports where this is the final one."""
        del eval_result  # a final export does not depend on how good the model is
        if not is_the_final_export:
            return None
        tf_logging.info("Performing the final export in the end of training.")
        return self._write(estimator, export_path, checkpoint_path)


class LatestExporter(_SavedModelExporter):
    """Exports after each evaluation, and keeps the newest exports."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Any = None,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: Optional[int] = 5,
        serving_input_fn: Any = None,
    ) -> None:
        _check_count(exports_to_keep)
        super().__init__(name, _receiver(serving_input_receiver_fn, serving_input_fn), assets_extra, as_text)
        self._exports_to_keep = exports_to_keep

    def export(self, estimator: Any, export_path: Any, checkpoint_path: str, eval_result: Dict[str, Any], is_the_final_export: bool) -> Any:
        """Exports, and removes exports that are too many."""
        del eval_result, is_the_final_export  # each evaluation is exported
        made = self._write(estimator, export_path, checkpoint_path)
        _keep_newest(export_path, self._exports_to_keep)
        return made


def _loss_smaller(best_eval_result: Dict[str, Any], current_eval_result: Dict[str, Any]) -> bool:
    """Whether the loss of the second evaluation is below the first's."""
    for what, result in (("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)):
        if not result or LOSS_METRIC_KEY not in result:
            raise at_user_line(ValueError("%s cannot be empty or no loss is found in it." % what))
    return bool(best_eval_result[LOSS_METRIC_KEY] > current_eval_result[LOSS_METRIC_KEY])


class BestExporter(_SavedModelExporter):
    """Exports where an evaluation is better than all before it; those are read from the evaluation's event files too."""

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: Optional[str] = None,
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: Optional[int] = 5,
    ) -> None:
        if compare_fn is None:
            raise at_user_line(ValueError("`compare_fn` must not be None."))
        _check_count(exports_to_keep)
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._compare, self._exports_to_keep, self._pattern = compare_fn, exports_to_keep, event_file_pattern
        self._best: Optional[Dict[str, Any]] = None
        self._model_dir: Optional[str] = None

    def export(self, estimator: Any, export_path: Any, checkpoint_path: str, eval_result: Dict[str, Any], is_the_final_export: bool) -> Any:
        """Exports where the result is the best so far."""
        del is_the_final_export  # only what is better is exported
        if self._model_dir != estimator.model_dir and self._pattern:
            self._model_dir, self._best = estimator.model_dir, self._best_of_events(os.path.join(estimator.model_dir, self._pattern))
        if self._best is not None and not self._compare(best_eval_result=self._best, current_eval_result=eval_result):
            return None
        tf_logging.info("Performing best model export.")
        self._best = eval_result
        made = self._write(estimator, export_path, checkpoint_path)
        _keep_newest(export_path, self._exports_to_keep)
        return made

    def _best_of_events(self, pattern: str) -> Optional[Dict[str, Any]]:
        from millrace import train

        best = None
        for path in gfile.Glob(pattern):
            for event in train.summary_iterator(as_str_any(path)):
                result = {v.tag: v.simple_value for v in event.summary.value if v.WhichOneof("value") == "simple_value"}
                if result and (best is None or self._compare(best_eval_result=best, current_eval_result=result)):
                    best = result
        return best
