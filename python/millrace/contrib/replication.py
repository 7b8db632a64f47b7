# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator.replicate_model_fn: a model function on several devices, each with its part of the batch (a tower).

The towers share their variables. Losses and gradients of the towers are added; unless the losses are sums, each is first divided by the
number of towers. A TowerOptimizer keeps the gradients of all towers but the last, which applies the sums. Names without a prefix are
those of the first tower, tower_1/ and so on those of the others. Metrics add up what their variables hold; predictions are put
together along the batch.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from millrace import device_lib, losses
from millrace.estimator.export_output import ClassificationOutput, PredictOutput, RegressionOutput
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.estimator.util import fn_args
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.device import DeviceSpec
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, device, get_collection, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, math_ops, sparse_math_ops, variable_scope, variables
from millrace.protos.definitions import NodeDef
from millrace.train.cluster import _RoundRobinStrategy
from millrace.train.optimizer import Optimizer

_CPU = "/CPU:0"


class _VariableDistributionMode:
    """Where shared variables are: all on one device, or on the devices in turn."""

    SHARED_LOCAL_PARAMETER_SERVER, SHARED_ROUND_ROBIN = 1, 2


def replicate_model_fn(
    model_fn: Callable[..., Any], loss_reduction: str = losses.Reduction.SUM_BY_NONZERO_WEIGHTS, devices: Optional[Sequence[str]] = None
) -> Callable[..., Any]:
    """The model_fn on the devices, by default all GPUs, or the processors of a machine without one. Its optimizers are wrapped in TowerOptimizer."""
    return _replicate_model_fn_with_mode(model_fn, loss_reduction, devices)


def _replicate_model_fn(model_fn: Callable[..., Any], devices: Optional[Sequence[str]] = None) -> Callable[..., Any]:
    """As replicate_model_fn, where the optimizers in the model_fn say how losses are reduced."""
    return _replicate_model_fn_with_mode(model_fn, None, devices)


def _replicate_model_fn_with_mode(
    model_fn: Callable[..., Any],
    loss_reduction: Optional[str] = None,
    devices: Optional[Sequence[str]] = None,
    mode: int = _VariableDistributionMode.SHARED_LOCAL_PARAMETER_SERVER,
) -> Callable[..., Any]:
    if loss_reduction is not None:
        _check_reduction(loss_reduction)
    places = list(devices or _get_local_devices("GPU") or _get_local_devices("CPU"))
    gathering = places[0] if len(places) == 1 and "GPU" in places[0].upper() else _CPU
    of_variables = places if mode == _VariableDistributionMode.SHARED_ROUND_ROBIN else [gathering]

    def replicated(features: Any, labels: Any, mode: str, params: Any = None, config: Any = None) -> EstimatorSpec:
        one = len(places) == 1
        shards, label_shards = ([features], [labels]) if one else _split_batch(features, labels, len(places), gathering)
        towers = _get_loss_towers(model_fn, mode, shards, label_shards, params, config, places, of_variables, loss_reduction)
        if one:
            return towers[0]
        if mode == ModeKeys.TRAIN:
            return _train_spec(towers, towers[-1].train_op, gathering)
        return (_eval_spec if mode == ModeKeys.EVAL else _predict_spec)(towers, gathering)

    return replicated


def _check_reduction(loss_reduction: str) -> None:
    losses.Reduction.validate(loss_reduction)
    if loss_reduction == losses.Reduction.NONE:
        raise at_user_line(ValueError("Tower losses need to be reduced in some way, yet %s reduction is specified." % loss_reduction))


class _Gathering:
    """What the optimizers of a graph know while a model function is called for each device."""

    def __init__(self, loss_reduction: Optional[str] = None, towers: int = 1) -> None:
        self.loss_reduction, self.towers, self.tower, self.used = loss_reduction, towers, 0, False
        self.used_reduction: Optional[str] = None  # what optimizers have said
        self.calls: List[List[Any]] = [[] for _ in range(towers)]  # by tower, the gradients of each call of an optimizer
        self.scopes: Tuple[Any, Any] = (None, None)  # those of the first tower

    def reduce_by(self, loss_reduction: str) -> None:
        """Takes how an optimizer reduces losses. ValueError where another has said otherwise."""
        if self.used_reduction not in (None, loss_reduction):
            raise at_user_line(ValueError("All optimizers of a model_fn have to share one loss_reduction: %s and %s" % (self.used_reduction, loss_reduction)))
        self.loss_reduction = self.used_reduction = loss_reduction

    def of_last_call(self) -> Dict[Any, List[Any]]:
        """The gradients of all towers for each variable, those of the call that the last tower has made just now."""
        found: Dict[Any, List[Any]] = {}
        for calls in self.calls:
            for gradient, variable in calls[len(self.calls[-1]) - 1] if len(calls) >= len(self.calls[-1]) else ():
                if gradient is not None:
                    found.setdefault(variable, []).append(gradient)
        return found


class TowerOptimizer(Optimizer):
    """An optimizer, or what a function makes when it is first needed, in a replicated model_fn: it applies the sums of the towers' gradients.

    Every tower calls the same optimizers in the same order. Outside of replicate_model_fn, and on one device, it is the optimizer.
    A loss_reduction, which all optimizers of a model_fn have to share, comes before that of replicate_model_fn."""

    COLLECTION_FOR_GRAPH_STATES = "replicate_model_fn_graph_states"

    def __init__(self, optimizer_or_optimizer_fn: Any, loss_reduction: Optional[str] = None) -> None:
        super().__init__(False, "TowerOptimizer")
        self._given, self._loss_reduction = optimizer_or_optimizer_fn, loss_reduction
        if loss_reduction is not None:
            _check_reduction(loss_reduction)

    @property
    def _inner(self) -> Any:
        if callable(self._given) and not isinstance(self._given, Optimizer):
            self._given = self._given()
        _gathering().used = True
        return self._given

    @staticmethod
    def has_been_used() -> bool:
        """Whether the model_fn that is replicated has used one."""
        return _gathering().used

    def get_name(self) -> str:
        """That of the optimizer."""
        return str(self._inner.get_name())

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """Those of the loss, or of its part where the losses of towers are averaged."""
        state = _gathering()
        if self._loss_reduction is not None:
            state.reduce_by(self._loss_reduction)
        return self._inner.compute_gradients(_scale_loss(loss, state.loss_reduction, state.towers, "part_of_loss"), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None, **kwargs: Any) -> Any:
        """Changes the variables in the last tower, by the gradients of all."""
        state, grads_and_vars = _gathering(), list(grads_and_vars)
        if state.towers == 1:
            return self._inner.apply_gradients(grads_and_vars, global_step=global_step, name=name, **kwargs)
        state.calls[state.tower].append(grads_and_vars)
        if state.tower < state.towers - 1:
            gradients = [g.values if isinstance(g, IndexedSlices) else g for g, _ in grads_and_vars if g is not None]
            with control_dependencies(gradients):
                return control_flow_ops.no_op(name="train_op_placeholder")
        variables_at, names_at = state.scopes
        with variable_scope.variable_scope(variables_at), name_scope(names_at):
            with name_scope("gradient_aggregating"):
                sums = [(_compute_sum_on_device(gradients, variable.device), variable) for variable, gradients in state.of_last_call().items()]
            return self._inner.apply_gradients(sums, global_step=global_step, name=name, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer keeps for a variable."""
        return self._inner.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The names of what the optimizer keeps."""
        return self._inner.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """The variables of the optimizer."""
        return self._inner.variables()


def _gathering() -> _Gathering:
    states = get_collection(TowerOptimizer.COLLECTION_FOR_GRAPH_STATES)
    return states[-1] if states else _Gathering()


@contextlib.contextmanager
def _gathered(loss_reduction: Optional[str], towers: int) -> Iterator[_Gathering]:
    """Optimizers of the default graph gather; nothing of it stays in the graph, whose collections are saved."""
    graph, state = get_default_graph(), _Gathering(loss_reduction, towers)
    graph.add_to_collection(TowerOptimizer.COLLECTION_FOR_GRAPH_STATES, state)
    try:
        yield state
    finally:
        graph.clear_collection(TowerOptimizer.COLLECTION_FOR_GRAPH_STATES)


def _get_loss_towers(
    model_fn: Callable[..., Any],
    mode: str,
    features: Any,
    labels: Any,
    params: Any,
    config: Any,
    devices: Sequence[str],
    local_ps_devices: Sequence[str],
    loss_reduction: Optional[str] = None,
    name_scope_pattern: str = "tower_{}",
) -> List[EstimatorSpec]:
    """What the model_fn answers on each device."""
    wanted = {key: value for key, value in (("params", params), ("config", config)) if key in fn_args(model_fn)}
    in_turn, towers = _RoundRobinStrategy(len(local_ps_devices)), []
    with _gathered(loss_reduction, len(devices)) as state:
        for i, place in enumerate(devices):
            state.tower = i
            with variable_scope.variable_scope("", reuse=i > 0) as variables_at, name_scope(name_scope_pattern.format(i) if i else "") as names_at:
                if i == 0:
                    state.scopes = (variables_at, names_at)
                with device(_local_device_setter(place, local_ps_devices, in_turn)):
                    label = labels[i] if labels else None
                    spec = model_fn(mode=mode, features=features[i], labels=label, **copy.deepcopy(wanted))
                    if spec.train_op is not None and len(devices) > 1 and not state.used:
                        raise at_user_line(ValueError("Please wrap optimizers with TowerOptimizer in order to use replicate_model_fn with multiple `devices`."))
                    if spec.loss is not None:
                        spec = spec._replace(loss=_scale_loss(spec.loss, state.loss_reduction, len(devices)))
                    towers.append(spec)
        if len({len(calls) for calls in state.calls}) != 1:
            raise at_user_line(ValueError("Each invocation of model_fn was supposed to make the same optimizer calls."))
    return towers


def _get_local_devices(device_type: str) -> List[str]:
    return [found.name for found in device_lib.list_local_devices() if found.device_type == device_type]


def _local_device_setter(worker_device: str, ps_devices: Sequence[str], ps_strategy: Callable[[Any], int]) -> Callable[[Any], str]:
    """A device function: variables go where ps_strategy says, all else to worker_device; what an op asks for itself goes first."""

    def place(op: Any) -> str:
        is_variable = (op.op if isinstance(op, NodeDef) else op.type) in ("Variable", "VariableV2", "VarHandleOp")
        wanted = DeviceSpec.from_string(ps_devices[ps_strategy(op)] if is_variable else worker_device or "")
        wanted.merge_from(DeviceSpec.from_string(op.device or ""))
        return str(wanted.to_string())

    return place


def _split_batch(features: Any, labels: Any, number_of_shards: int, device: str) -> Tuple[Any, Any]:
    """Features and labels in equal parts along the batch; rows of sparse ones may be divided unevenly."""

    def split(value: Any) -> Any:
        if isinstance(value, dict):
            parts = {key: split(part) for key, part in value.items()}
            return [{key: part[i] for key, part in parts.items()} for i in range(number_of_shards)]
        if isinstance(value, SparseTensor):
            return sparse_math_ops.sparse_split(sp_input=value, num_split=number_of_shards, axis=0)
        size = convert_to_tensor(value).shape[0].value
        if size is not None and size % number_of_shards:
            raise at_user_line(ValueError("Batch size %s needs to be divisible by the number of GPUs, which is %d." % (size, number_of_shards)))
        return array_ops.split(value, number_of_shards)

    with name_scope("split_inputs"), get_default_graph().device(device):
        return split(features), None if labels is None else split(labels)


def _scale_loss(loss: Any, loss_reduction: Optional[str], number_of_towers: int, name: str = "averaged_loss") -> Any:
    if loss is None or number_of_towers == 1 or loss_reduction == losses.Reduction.SUM:
        return loss
    return math_ops.div(loss, 1.0 * number_of_towers, name=name)


def _compute_sum_on_device(values: Sequence[Any], device: str, name: Optional[str] = None) -> Any:
    with get_default_graph().device(device):
        if not isinstance(values[0], IndexedSlices):
            return math_ops.add_n(values, name=name)
        if name:
            raise at_user_line(ValueError("The name %s is not expected to be given to IndexedSlices %s" % (name, values)))
        rows = array_ops.concat([value.values for value in values], 0)
        return IndexedSlices(rows, array_ops.concat([value.indices for value in values], 0), values[0].dense_shape)


def _train_spec(tower_specs: Sequence[EstimatorSpec], train_op: Any, aggregation_device: str, aggregated_loss_name: str = "loss") -> EstimatorSpec:
    """That of the last tower, whose hooks know that gradients were applied, with the sum of the losses."""
    loss = _compute_sum_on_device([spec.loss for spec in tower_specs], aggregation_device, aggregated_loss_name)
    return tower_specs[-1]._replace(mode=ModeKeys.TRAIN, train_op=train_op, loss=loss)


def _eval_spec(tower_specs: Sequence[EstimatorSpec], aggregation_device: str, aggregated_loss_name: str = "loss") -> EstimatorSpec:
    """That of the first tower, with the sum of the losses and the metrics of all towers."""
    loss = _compute_sum_on_device([spec.loss for spec in tower_specs], aggregation_device, aggregated_loss_name)
    with control_dependencies([update for spec in tower_specs for _, update in spec.eval_metric_ops.values()]):
        update_all = _reduce_metric_variables(len(tower_specs))
    metrics = {key: (value, update_all) for key, (value, _) in tower_specs[0].eval_metric_ops.items()}
    return tower_specs[0]._replace(mode=ModeKeys.EVAL, loss=loss, eval_metric_ops=metrics)


def _reduce_metric_variables(number_of_towers: int) -> Any:
    """Moves what the metrics of the other towers have counted to those of the first, and starts the others anew."""
    if number_of_towers == 1:
        return control_flow_ops.no_op(name="no_eval_metric_reduction")
    counted = get_collection(GraphKeys.METRIC_VARIABLES)
    each = len(counted) // number_of_towers
    if len(counted) % number_of_towers:
        raise at_user_line(
            ValueError(
                "Different `EstimatorSpec.eval_metric_ops` across `model_fn()` calls. Expected %d local variables, but got %d instead."
                % (each * number_of_towers, len(counted))
            )
        )
    done = []
    for i, of_first in enumerate(counted[:each]):
        others = counted[i + each :: each]
        with control_dependencies([variables.assign_add(of_first, math_ops.add_n(others))]):
            done += [variables.assign(other, array_ops.zeros(array_ops.shape(other), other.dtype.base_dtype)) for other in others]
    return control_flow_ops.group(*done)


def _predict_spec(tower_specs: Sequence[EstimatorSpec], aggregation_device: str) -> EstimatorSpec:
    """That of the first tower, with the predictions and outputs of all towers along the batch."""
    with get_default_graph().device(aggregation_device):
        predictions = _concat_tensor_dicts(*(spec.predictions for spec in tower_specs))
        exports = _by_key([spec.export_outputs for spec in tower_specs])
        return tower_specs[0]._replace(
            mode=ModeKeys.PREDICT, predictions=predictions, export_outputs={key: _merged(outputs) for key, outputs in exports.items()}
        )


def _merged(outputs: Sequence[Any]) -> Any:
    """One output of those of the towers."""

    def along_batch(parts: Sequence[Any]) -> Optional[Tensor]:
        return None if parts[0] is None else array_ops.concat(list(parts), 0)

    first = outputs[0]
    if isinstance(first, PredictOutput):
        return PredictOutput(_concat_tensor_dicts(*(output.outputs for output in outputs)))
    if isinstance(first, RegressionOutput):
        return RegressionOutput(along_batch([output.value for output in outputs]))
    if isinstance(first, ClassificationOutput):
        classes = None if first.classes is None else array_ops.stack([output.classes for output in outputs])  # as TensorFlow does
        return ClassificationOutput(along_batch([output.scores for output in outputs]), classes)
    raise at_user_line(NotImplementedError("outputs of the kind %s of several devices are not put together: give a PredictOutput" % type(first).__name__))


def _by_key(dicts: Sequence[Optional[Dict[str, Any]]]) -> Dict[str, List[Any]]:
    found: Dict[str, List[Any]] = {}
    for given in dicts:
        for key, value in (given or {}).items():
            found.setdefault(key, []).append(value)
    return found


def _concat_tensor_dicts(*tensor_dicts: Any) -> Dict[str, Tensor]:
    return {key: array_ops.concat(parts, 0, name=key) for key, parts in _by_key(tensor_dicts).items()}
