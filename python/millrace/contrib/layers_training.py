# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.optimizers: a tensor of the loss that trains when it is run."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_collection
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops, random_ops
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.train import rules

OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]
OPTIMIZER_CLS_NAMES: Dict[str, Any] = {
    "Adagrad": rules.AdagradOptimizer,
    "Adam": rules.AdamOptimizer,
    "Ftrl": rules.FtrlOptimizer,
    "RMSProp": rules.RMSPropOptimizer,
    "Momentum": lambda learning_rate: rules.MomentumOptimizer(learning_rate, 0.9),
    "SGD": rules.GradientDescentOptimizer,
}
_Pairs = List[Tuple[Any, Any]]  # of gradients and variables


def _times(gradient: Any, factor: Any) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * factor


def _rate(learning_rate: Any) -> Any:
    """A variable of the rate, unless it is a tensor."""
    if isinstance(learning_rate, Tensor) and learning_rate.get_shape().ndims == 0:
        return learning_rate
    if not isinstance(learning_rate, float):
        raise at_user_line(ValueError("Learning rate should be 0d Tensor or float. Got %s of type %s" % (learning_rate, type(learning_rate))))
    if learning_rate < 0.0:
        raise at_user_line(ValueError("Invalid learning_rate %s." % learning_rate))
    return get_variable("learning_rate", [], trainable=False, initializer=init_ops.constant_initializer(learning_rate))


def _optimizer(optimizer: Any, rate: Any) -> Any:
    from millrace import train

    kind = isinstance(optimizer, type) and issubclass(optimizer, train.Optimizer)
    if (kind or isinstance(optimizer, str)) and rate is None:
        raise at_user_line(ValueError("Learning rate is None, but should be specified if optimizer is a name or class (%s)." % (optimizer,)))
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZER_CLS_NAMES:
            raise at_user_line(ValueError("Optimizer name should be one of [%s], you provided %s." % (", ".join(OPTIMIZER_CLS_NAMES), optimizer)))
        return OPTIMIZER_CLS_NAMES[optimizer](learning_rate=rate)
    if kind:
        return optimizer(learning_rate=rate)
    if isinstance(optimizer, train.Optimizer):
        return optimizer
    if callable(optimizer) and not isinstance(optimizer, type):
        made = optimizer(rate) if rate is not None else optimizer()
        if isinstance(made, train.Optimizer):
            return made
        raise at_user_line(ValueError("Unrecognized optimizer: function should return subclass of Optimizer. Got %s." % (made,)))
    raise at_user_line(
        ValueError(
            "Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass of Optimizer or function with one "
            "argument. Got %s." % (optimizer,)
        )
    )


def _shape_of(gradient: Any) -> Any:
    """Of a gradient, as far as possible without a node: those that are made before numbers are drawn decide on their seed."""
    if isinstance(gradient, IndexedSlices):
        return gradient.dense_shape
    shape = gradient.get_shape()
    return shape if shape.is_fully_defined() else array_ops.shape(gradient)


def _changed(pairs: _Pairs, noise: Any, multipliers: Any) -> _Pairs:
    if noise is not None:
        pairs = [(g if g is None else g + random_ops.truncated_normal(_shape_of(g)) * noise, v) for g, v in pairs]
    if multipliers is not None:
        factors = [multipliers.get(v, multipliers.get(v.name)) for _, v in pairs]
        pairs = [
            (_times(g, math_ops.cast(f, g.dtype.base_dtype) if isinstance(f, Tensor) else float(f)) if f is not None else g, v)
            for (g, v), f in zip(pairs, factors)
        ]
        if not pairs:
            raise at_user_line(
                ValueError("Empty list of (gradient, var) pairs encountered. This is most likely to be caused by an improper value of gradient_multipliers.")
            )
    return pairs


def _clipped(pairs: _Pairs, clip: Any) -> _Pairs:
    if isinstance(clip, float):
        gradients, _ = math_ops.clip_by_global_norm([g for g, _ in pairs], clip)
        return list(zip(gradients, [v for _, v in pairs]))
    if callable(clip):
        return clip(pairs)
    if clip is not None:
        raise at_user_line(ValueError("Unknown type %s for clip_gradients" % type(clip)))
    return pairs


def _summarize(pairs: _Pairs, summaries: Any) -> None:
    from millrace import summary

    for gradient, variable in pairs:
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        if values is None:
            continue
        name = variable.name.replace(":", "_")
        if "gradients" in summaries:
            summary.histogram("gradients/%s" % name, values)
        if "gradient_norm" in summaries:
            summary.scalar("gradient_norm/%s" % name, math_ops.global_norm([values]))


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: Any = None,
    gradient_multipliers: Any = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Any = None,
    update_ops: Any = None,
    variables: Any = None,
    name: Optional[str] = None,
    summaries: Any = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:
    """A tensor of the loss that, when run, does one training step."""
    from millrace import summary, train
    from millrace.ops.variables import trainable_variables

    loss = convert_to_tensor(loss)
    if loss.get_shape().ndims not in (None, 0):
        raise at_user_line(ValueError("Expected scalar shape for the loss %s, saw shape: %s." % (loss.name, loss.get_shape())))
    if global_step is None:
        global_step = train.get_global_step()
    else:
        train.assert_global_step(global_step)
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        updates = list(get_collection(GraphKeys.UPDATE_OPS)) if update_ops is None else list(update_ops)
        if updates:
            loss = control_flow_ops.with_dependencies(updates, loss)
        rate = None if learning_rate is None else _rate(learning_rate)
        wanted = ["loss", "learning_rate", "global_gradient_norm"] if summaries is None else summaries
        for kind in wanted:
            if kind not in OPTIMIZER_SUMMARIES:
                raise at_user_line(ValueError("Summaries should be one of [%s], you provided %s." % (", ".join(OPTIMIZER_SUMMARIES), kind)))
        if rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise at_user_line(ValueError("global_step is required for learning_rate_decay_fn."))
            rate = learning_rate_decay_fn(rate, global_step)
            if "learning_rate" in wanted:
                summary.scalar("learning_rate", rate)
        made = _optimizer(optimizer, rate)
        chosen = variables if variables is not None else trainable_variables()
        pairs = _changed(
            made.compute_gradients(loss, chosen, colocate_gradients_with_ops=colocate_gradients_with_ops), gradient_noise_scale, gradient_multipliers
        )
        norms = "global_gradient_norm" in wanted or "gradient_norm" in wanted
        if norms:
            summary.scalar("global_norm/gradient_norm", math_ops.global_norm([g for g, _ in pairs]))
        pairs = _clipped(pairs, clip_gradients)
        if "loss" in wanted:
            summary.scalar("loss", loss)
        _summarize(pairs, wanted)
        if clip_gradients is not None and norms:
            summary.scalar("global_norm/clipped_gradient_norm", math_ops.global_norm([g for g, _ in pairs]))
        update = made.apply_gradients(pairs, global_step if increment_global_step else None, name="train")
        return control_flow_ops.with_dependencies([update], loss)


def _usual_norm(norm: Any, std_factor: Any, decay: Any, global_step: Any, epsilon: float, name: Optional[str]) -> Tuple[Any, Any]:
    """(the largest norm that is not unusual, the mean of the logarithms) by moving averages of logarithms of norms."""
    from millrace.train.moving_averages import assign_moving_average

    with variable_scope(name, "AdaptiveMaxNorm", [norm]):
        logarithm = gen_ops.log(norm + epsilon)
        if global_step is not None:
            step = math_ops.cast(global_step, dtypes.float32)
            decay = gen_ops.minimum(decay, step / (step + 1.0))

        def average(of: str, value: Any) -> Any:
            kept = get_variable(of, value.get_shape(), value.dtype, init_ops.zeros_initializer(), trainable=False)
            return assign_moving_average(kept, value, decay, zero_debias=False)

        mean, squares = average("mean", logarithm), average("sq_mean", gen_ops.square(logarithm))
        deviation = gen_ops.sqrt(gen_ops.maximum(epsilon, squares - gen_ops.square(mean)))
        return gen_ops.exp(mean + std_factor * deviation), mean


def adaptive_clipping_fn(
    std_factor: float = 2.0,
    decay: float = 0.95,
    static_max_norm: Any = None,
    global_step: Any = None,
    report_summary: bool = False,
    epsilon: float = 1e-8,
    name: Optional[str] = None,
) -> Callable[[_Pairs], _Pairs]:
    """A function that scales gradients of an unusually large norm to the usual one."""

    def clip(pairs: _Pairs) -> _Pairs:
        norm = math_ops.global_norm([g for g, _ in pairs])
        largest, mean = _usual_norm(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            from millrace import summary

            summary.scalar("global_norm/adaptive_max_gradient_norm", largest)
        factor = gen_ops.select(gen_ops.less(norm, largest), array_ops.ones_like(norm), gen_ops.exp(mean) / norm)
        if static_max_norm is not None:
            factor = gen_ops.minimum(static_max_norm / norm, factor)
        return [(_times(g, factor), v) for g, v in pairs]

    return clip
