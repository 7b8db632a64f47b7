# SPDX-License-Identifier: Apache-2.0
"""A head of heads: several questions about the same examples, whose losses are added up."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

from millrace import metrics, summary
from millrace.estimator.export_output import ExportOutput, PredictOutput
from millrace.estimator.heads import _PREDICT, LossSpec, _Head
from millrace.estimator.keys import MetricKeys
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, gen_ops
from millrace.ops.control_flow_ops import no_op
from millrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY


class _MultiHead(_Head):
    """Logits are a dict by the names of the heads, or one tensor that is split among them; labels are a dict."""

    def __init__(self, heads: Sequence[_Head], head_weights: Optional[Sequence[float]] = None) -> None:
        if not heads:
            raise at_user_line(ValueError("Must specify heads. Given: %s" % (heads,)))
        if head_weights and len(head_weights) != len(heads):
            raise at_user_line(
                ValueError(
                    "heads and head_weights must have the same size. Given len(heads): %d. Given len(head_weights): %d." % (len(heads), len(head_weights))
                )
            )
        if not all(head.name for head in heads):
            raise at_user_line(ValueError("All given heads must have name specified. Given: %s" % (list(heads),)))
        super().__init__(sum(head.logits_dimension for head in heads), name="_".join(head.name for head in heads))
        self._heads, self._head_weights = tuple(heads), tuple(head_weights or ())

    def create_loss(self, features: Any, mode: Any, logits: Any, labels: Any) -> LossSpec:
        """The sum of the heads' losses; what else there is comes as dicts by their names."""
        by_head = self._by_head(logits)
        made = {head.name: head.create_loss(features, mode, by_head[head.name], labels[head.name]) for head in self._heads}
        weight = dict(zip(made, self._head_weights or [1.0] * len(made)))
        return LossSpec(
            self._merged([spec.training_loss for spec in made.values()]),
            {name: spec.unreduced_loss * weight[name] for name, spec in made.items()},
            {name: spec.weights * weight[name] for name, spec in made.items()},
            {name: spec.processed_labels for name, spec in made.items()},
        )

    def _spec(self, features: Any, mode: str, logits: Any, labels: Any, regularization_losses: Any, train: Callable[[Any], Any]) -> EstimatorSpec:
        if labels is not None and not isinstance(labels, dict):
            raise at_user_line(ValueError("labels must be a dict. Given: %s" % (labels,)))
        by_head = self._by_head(logits)
        specs = {
            head.name: head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=by_head[head.name],
                labels=labels[head.name] if labels else None,
                train_op_fn=lambda loss: no_op(),  # the sum of all losses is trained
            )
            for head in self._heads
        }
        predictions = {(name, key): value for name, spec in specs.items() for key, value in spec.predictions.items()}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs=self._merged_exports(specs))
        loss = self._merged([spec.loss for spec in specs.values()])
        if regularization_losses:
            loss = loss + gen_ops.add_n(list(regularization_losses))
        if mode == ModeKeys.EVAL:
            measures: Dict[str, Any] = {}
            with name_scope("merge_eval"):
                for head, spec in zip(self._heads, specs.values()):
                    key = head._key(MetricKeys.LOSS)
                    measures[key] = metrics.mean(spec.loss, name=key)
                    measures.update(spec.eval_metric_ops)
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=measures)
        train_op = train(loss)
        with name_scope(""):
            summary.scalar(MetricKeys.LOSS, loss)
        return EstimatorSpec(ModeKeys.TRAIN, predictions, loss, train_op)

    def _merged(self, each: List[Any]) -> Any:
        with name_scope(None, "merge_losses", each):
            return gen_ops.add_n([loss * weight for loss, weight in zip(each, self._head_weights)] if self._head_weights else each)

    def _by_head(self, logits: Any) -> Dict[str, Any]:
        if isinstance(logits, dict):
            return logits
        sizes = [head.logits_dimension for head in self._heads]
        with name_scope(None, "split_logits", [logits]):
            logits = convert_to_tensor(logits)
            shape = logits.get_shape()
            if shape.ndims is not None and shape[-1].value not in (None, sum(sizes)):
                raise at_user_line(
                    ValueError(
                        "Could not split logits of shape %r among the heads with individual logits dimensions: %r. The last dimension of the "
                        "logits tensor should equal %d but is %d." % (shape.as_list(), sizes, sum(sizes), shape[-1].value)
                    )
                )
            return dict(zip([head.name for head in self._heads], array_ops.split(logits, sizes, axis=-1)))

    def _merged_exports(self, specs: Dict[str, EstimatorSpec]) -> Dict[str, ExportOutput]:
        """The first head's own are served by default; those of all have its name before theirs."""
        merged: Dict[str, ExportOutput] = {}
        predicted: Dict[str, Any] = {}
        for name, spec in specs.items():
            made = spec.export_outputs
            first = next(iter(made.values())) if len(made) == 1 else made.get(DEFAULT_SERVING_SIGNATURE_DEF_KEY)
            if first is None:
                raise at_user_line(ValueError("%s did not specify default export_outputs. Given: %s" % (name, made)))
            merged.setdefault(DEFAULT_SERVING_SIGNATURE_DEF_KEY, first)
            for key, output in made.items():
                merged[name if key == DEFAULT_SERVING_SIGNATURE_DEF_KEY else "%s/%s" % (name, key)] = output
                if key == _PREDICT and isinstance(output, PredictOutput):
                    predicted.update(("%s/%s" % (name, inner), value) for inner, value in output.outputs.items())
        return {**merged, _PREDICT: PredictOutput(predicted)}
