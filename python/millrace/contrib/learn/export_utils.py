# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.utils.saved_model_export_utils: signatures of what models serve, folders of exports, and strategies that write them."""

from __future__ import annotations

import os
import time
import types
from typing import Any, Callable, Dict, Optional, Tuple

from millrace import gfile, tf_logging
from millrace import estimator as _estimator
from millrace.contrib.feature_columns import create_feature_spec_for_parsing
from millrace.contrib.learn import io as _io
from millrace.contrib.learn.export_strategy import ExportStrategy
from millrace.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from millrace.contrib.session_bundle import gc
from millrace.estimator.export import get_temp_export_dir, get_timestamped_export_dir  # noqa: F401
from millrace.framework import dtypes, errors
from millrace.framework.errors import at_user_line
from millrace.saved_model import signature_constants, signature_def_utils
from millrace.train.checkpoint_management import latest_checkpoint
from millrace.summary import summary_iterator

DEFAULT_INPUT_ALTERNATIVE_KEY = "default_input_alternative"
FEATURES_INPUT_ALTERNATIVE_KEY = "features_input_alternative"
_ONLY_OUTPUT = "default_output_alternative"

# ---- signatures ----


def build_standardized_signature_def(input_tensors: Dict[str, Any], output_tensors: Dict[str, Any], problem_type: int) -> Any:
    """A SignatureDef of classification or regression where the tensors are such, of a prediction otherwise."""
    if not input_tensors:
        raise at_user_line(ValueError("input_tensors must be provided."))
    if not output_tensors:
        raise at_user_line(ValueError("output_tensors must be provided."))
    first, *others = output_tensors.values()
    if len(input_tensors) == 1:
        examples = next(iter(input_tensors.values()))
        if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
            classes, scores = _classes_and_scores(output_tensors)
            if classes is None and scores is None and not others:
                classes, scores = (first, None) if first.dtype == dtypes.string else (None, first)
            if classes is not None or scores is not None:
                return signature_def_utils.classification_signature_def(examples, classes, scores)
        elif problem_type == ProblemType.LINEAR_REGRESSION and not others:
            return signature_def_utils.regression_signature_def(examples, first)
    return signature_def_utils.predict_signature_def(input_tensors, output_tensors)


def _classes_and_scores(tensors: Dict[str, Any]) -> Tuple[Any, Any]:
    classes, scores = tensors.get(PredictionKey.CLASSES), tensors.get(PredictionKey.SCORES)
    if classes is not None and classes.dtype != dtypes.string:
        classes = None  # signatures have names of classes
    return classes, tensors.get(PredictionKey.PROBABILITIES) if scores is None else scores


def get_input_alternatives(input_ops: Any) -> Tuple[Dict[str, Any], Any]:
    """({name: what is fed}, the features) of what a serving_input_fn answers."""
    named = isinstance(input_ops, _io.InputFnOps)
    features = input_ops[0]
    if not features:
        raise at_user_line(ValueError("Features must be defined."))
    return ({DEFAULT_INPUT_ALTERNATIVE_KEY: input_ops.default_inputs} if named else {}), features


def get_output_alternatives(model_fn_ops: Any, default_output_alternative_key: Optional[str] = None) -> Tuple[Dict[Any, Any], Any]:
    """({name: (ProblemType, tensors)}, the name of what is served by default); all predictions where a model names no alternatives."""
    given = model_fn_ops.output_alternatives or {}
    if default_output_alternative_key:
        if default_output_alternative_key in given:
            return given, default_output_alternative_key
        message = "Requested default_output_alternative: %s, but available output_alternatives are: %s"
        raise ValueError(message % (default_output_alternative_key, sorted(given)))
    if not given:
        outputs = model_fn_ops.predictions
        outputs = outputs if isinstance(outputs, dict) else {PredictionKey.GENERIC: outputs}
        return {_ONLY_OUTPUT: (ProblemType.UNSPECIFIED, outputs)}, _ONLY_OUTPUT
    if len(given) > 1:
        raise ValueError("Please specify a default_output_alternative.  Available output_alternatives are: %s" % sorted(given))
    return given, next(iter(given))


def build_all_signature_defs(
    input_alternatives: Dict[str, Any], output_alternatives: Dict[Any, Any], actual_default_output_alternative_key: Any
) -> Dict[str, Any]:
    """The signatures of each pair of an input and an output, "input:output", and that of the defaults, "serving_default"."""
    made = {
        "%s:%s" % (name, key or "None"): build_standardized_signature_def(inputs, outputs, kind)
        for name, inputs in input_alternatives.items()
        for key, (kind, outputs) in output_alternatives.items()
    }
    inputs = input_alternatives.get(DEFAULT_INPUT_ALTERNATIVE_KEY)
    if not inputs:
        raise at_user_line(ValueError("A default input_alternative must be provided."))
    kind, outputs = output_alternatives[actual_default_output_alternative_key]
    made[signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY] = build_standardized_signature_def(inputs, outputs, kind)
    return made


# ---- folders ----


def _version(path: gc.Path) -> Optional[gc.Path]:
    name = os.path.basename(path.path)
    return path._replace(export_version=int(name)) if len(name) == 10 and name.isdigit() else None


def get_most_recent_export(export_dir_base: Any) -> Optional[gc.Path]:
    """The newest export, or None."""
    found = gc.largest_export_versions(1)(gc.get_paths(export_dir_base, _version))
    return found[0] if found else None


def garbage_collect_exports(export_dir_base: Any, exports_to_keep: Optional[int]) -> None:
    """Removes all but so many of the newest exports; None keeps all."""
    if exports_to_keep is None:
        return
    for path in gc.negation(gc.largest_export_versions(exports_to_keep))(gc.get_paths(export_dir_base, _version)):
        try:
            gfile.DeleteRecursively(path.path)
        except errors.NotFoundError as error:  # another task was first
            tf_logging.warn("Can not delete %s recursively: %s", path.path, error)


# ---- strategies ----


def make_export_strategy(
    serving_input_fn: Optional[Callable[[], Any]],
    default_output_alternative_key: Optional[str] = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: Optional[int] = 5,
    strip_default_attrs: Optional[bool] = None,
) -> ExportStrategy:
    """How an Experiment exports SavedModels; it keeps the newest exports_to_keep."""
    if exports_to_keep is not None and exports_to_keep <= 0:
        raise at_user_line(ValueError("`exports_to_keep`, if provided, must be positive number"))

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Optional[str] = None, strip_default_attrs: Any = False) -> Any:
        options = {"assets_extra": assets_extra, "as_text": as_text, "checkpoint_path": checkpoint_path, "strip_default_attrs": bool(strip_default_attrs)}
        if not isinstance(estimator, _estimator.Estimator):
            options["default_output_alternative_key"] = default_output_alternative_key
        elif default_output_alternative_key is not None:
            raise at_user_line(ValueError("default_output_alternative_key is not supported in core Estimator. Given: %s" % default_output_alternative_key))
        path = estimator.export_savedmodel(export_dir_base, serving_input_fn, **options)
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return path

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


def make_parsing_export_strategy(
    feature_columns: Any,
    default_output_alternative_key: Optional[str] = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: Optional[int] = 5,
    target_core: bool = False,
    strip_default_attrs: Optional[bool] = None,
) -> ExportStrategy:
    """make_export_strategy of models that are fed serialized Example messages with the columns' features. target_core: for tf.estimator's."""
    spec = create_feature_spec_for_parsing(feature_columns)
    make = _estimator.export.build_parsing_serving_input_receiver_fn if target_core else _io.build_parsing_serving_input_fn
    return make_export_strategy(make(spec), default_output_alternative_key, assets_extra, as_text, exports_to_keep, strip_default_attrs)


def _less_loss(best: Any, other: Any) -> bool:
    for result in (best, other):
        if not result or MetricKey.LOSS not in result:
            raise at_user_line(ValueError("an evaluation without a loss cannot be compared, got %s" % (result,)))
    return bool(best[MetricKey.LOSS] > other[MetricKey.LOSS])


class BestModelSelector:
    """Tells checkpoints that are better than all before; those of event files count as before."""

    def __init__(self, event_file_pattern: Optional[str] = None, compare_fn: Optional[Callable[[Any, Any], bool]] = None) -> None:
        self._better = compare_fn or _less_loss
        self._best: Any = None
        for path in gfile.Glob(event_file_pattern) if event_file_pattern else ():
            for event in summary_iterator(path):
                if event.HasField("summary"):
                    result = {value.tag: value.simple_value for value in event.summary.value if value.HasField("simple_value")}
                    if self._best is None or self._better(self._best, result):
                        self._best = result

    def update(self, checkpoint_path: Optional[str], eval_result: Any) -> Tuple[str, Any]:
        """Both, where they are the best so far; ("", None) otherwise."""
        if not checkpoint_path:
            raise at_user_line(ValueError("Checkpoint path is empty."))
        if eval_result is None:
            raise at_user_line(ValueError("%s has empty evaluation results." % checkpoint_path))
        if self._best is not None and not self._better(self._best, eval_result):
            return "", None
        self._best = eval_result
        return checkpoint_path, eval_result


def make_best_model_export_strategy(
    serving_input_fn: Optional[Callable[[], Any]],
    exports_to_keep: Optional[int] = 1,
    model_dir: Optional[str] = None,
    event_file_pattern: Optional[str] = None,
    compare_fn: Optional[Callable[[Any, Any], bool]] = None,
    default_output_alternative_key: Optional[str] = None,
    strip_default_attrs: Optional[bool] = None,
) -> ExportStrategy:
    """Exports checkpoints that are better than all before, those of the event files in model_dir too: compare_fn(best, other) says whether the
    other is; by default one of less loss is."""
    base = make_export_strategy(serving_input_fn, default_output_alternative_key, None, False, exports_to_keep, strip_default_attrs)
    pattern = os.path.join(model_dir, event_file_pattern) if model_dir and event_file_pattern else None
    selector = BestModelSelector(pattern, compare_fn)

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Optional[str], eval_result: Any = None) -> Any:
        path, result = selector.update(checkpoint_path or latest_checkpoint(estimator.model_dir), eval_result)
        return base.export(estimator, os.path.join(export_dir_base, os.path.basename(path)), path, result) if path else ""

    return ExportStrategy("best_model", export_fn)


def extend_export_strategy(
    base_export_strategy: ExportStrategy, post_export_fn: Callable[[Any, Any], Any], post_export_name: Optional[str] = None
) -> ExportStrategy:
    """Exports what post_export_fn(path of an export, folder to write into) makes of exports; it answers its path below the folder."""

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Optional[str] = None) -> Any:
        now = int(time.time())
        before, after = (os.path.join(export_dir_base, "temp-%s-export-%d" % (what, now)) for what in ("base", "post"))
        for folder in (before, after):
            if gfile.Exists(folder):
                raise at_user_line(RuntimeError("Failed to obtain temp export directory %s" % folder))
            gfile.MakeDirs(folder)
        written = post_export_fn(base_export_strategy.export(estimator, before, checkpoint_path), after)
        if not written.startswith(after):
            raise at_user_line(ValueError("post_export_fn must return a sub-directory of %s" % after))
        final = os.path.join(export_dir_base, os.path.relpath(written, after))
        if gfile.Exists(final):
            raise at_user_line(RuntimeError("Failed to obtain final export directory %s" % final))
        gfile.Rename(written, final)
        gfile.DeleteRecursively(before)
        gfile.DeleteRecursively(after)
        return final

    return ExportStrategy(post_export_name or base_export_strategy.name, export_fn)


utils = types.SimpleNamespace(
    InputFnOps=_io.InputFnOps,
    build_parsing_serving_input_fn=_io.build_parsing_serving_input_fn,
    build_default_serving_input_fn=_io.build_default_serving_input_fn,
    make_export_strategy=make_export_strategy,
    make_parsing_export_strategy=make_parsing_export_strategy,
    make_best_model_export_strategy=make_best_model_export_strategy,
    extend_export_strategy=extend_export_strategy,
)
