# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan.losses: losses of a GANModel; `wargs` has them with tensors as arguments."""

from __future__ import annotations

import inspect
import types
from typing import Any, Callable, Dict, Optional

from millrace import losses, summary
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, random_ops
from millrace.ops.gradients import gradients
from millrace.ops.variable_scope import AUTO_REUSE, variable_scope
from millrace.ops.variables import trainable_variables

_BY_WEIGHTS, _LOSSES = losses.Reduction.SUM_BY_NONZERO_WEIGHTS, GraphKeys.LOSSES


def _float(x: Any) -> Tensor:
    return math_ops.to_float(x)


def _sum(parts: Dict[str, Tensor], total: Tensor, collection: Any, add_summaries: bool) -> Tensor:
    if collection:
        losses.add_loss(total, collection)
    if add_summaries:
        for name, part in parts.items():
            summary.scalar(name, part)
    return total


def wasserstein_generator_loss(
    discriminator_gen_outputs: Any,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """Less what the discriminator gives for generated data (Arjovsky 2017)."""
    with name_scope(scope, "generator_wasserstein_loss") as inner:
        loss = losses.compute_weighted_loss(-_float(discriminator_gen_outputs), weights, inner, loss_collection, reduction)
        return _sum({"generator_wass_loss": loss}, loss, None, add_summaries)


def wasserstein_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """What the discriminator gives for generated data, less what it gives for real data."""
    with name_scope(scope, "discriminator_wasserstein_loss") as inner:
        made, real = _float(discriminator_gen_outputs), _float(discriminator_real_outputs)
        real.get_shape().assert_is_compatible_with(made.get_shape())
        on_made = losses.compute_weighted_loss(made, generated_weights, inner, None, reduction)
        on_real = losses.compute_weighted_loss(real, real_weights, inner, None, reduction)
        total = on_made - on_real
        return _sum(
            {"discriminator_gen_wass_loss": on_made, "discriminator_real_wass_loss": on_real, "discriminator_wass_loss": total},
            total,
            loss_collection,
            add_summaries,
        )


def acgan_discriminator_loss(
    discriminator_real_classification_logits: Any,
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    label_smoothing: float = 0.0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """How well the discriminator tells the classes of real and of generated data (Odena 2016)."""
    with name_scope(scope, "acgan_discriminator_loss") as inner:
        on_made = losses.softmax_cross_entropy(
            one_hot_labels, discriminator_gen_classification_logits, generated_weights, scope=inner, loss_collection=None, reduction=reduction
        )
        on_real = losses.softmax_cross_entropy(one_hot_labels, discriminator_real_classification_logits, real_weights, label_smoothing, inner, None, reduction)
        total = on_made + on_real
        return _sum(
            {"discriminator_gen_ac_loss": on_made, "discriminator_real_ac_loss": on_real, "discriminator_ac_loss": total}, total, loss_collection, add_summaries
        )


def acgan_generator_loss(
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """How well the discriminator tells the classes of generated data."""
    with name_scope(scope, "acgan_generator_loss") as inner:
        loss = losses.softmax_cross_entropy(
            one_hot_labels, discriminator_gen_classification_logits, weights, scope=inner, loss_collection=loss_collection, reduction=reduction
        )
        return _sum({"generator_ac_loss": loss}, loss, None, add_summaries)


def wasserstein_gradient_penalty(
    real_data: Any,
    generated_data: Any,
    generator_inputs: Any,
    discriminator_fn: Any,
    discriminator_scope: Any,
    epsilon: float = 1e-10,
    target: float = 1.0,
    one_sided: bool = False,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """How far the discriminator's slope between real and generated data is from `target` (Gulrajani 2017)."""
    with name_scope(scope, "wasserstein_gradient_penalty") as inner:
        real, made = convert_to_tensor(real_data), convert_to_tensor(generated_data)
        for name, data in (("real_data", real), ("generated_data", made)):
            if data.get_shape().ndims is None:
                raise at_user_line(ValueError("`%s` can't have unknown rank." % name))
        rank = real.get_shape().ndims or 0
        share = random_ops.random_uniform(array_ops.stack([array_ops.shape(real)[0], *[1] * (rank - 1)]))
        between = real + share * (made - real)
        with name_scope(None), variable_scope(discriminator_scope, "gpenalty_dscope", reuse=AUTO_REUSE):
            judged = discriminator_fn(between, generator_inputs)
        judged = judged[0] if isinstance(judged, tuple) else judged
        slope = gen_ops.sqrt(math_ops.reduce_sum(gen_ops.square(gradients(judged, between)[0]), list(range(1, rank))) + epsilon)
        off = slope / target - 1.0
        off = gen_ops.maximum(0.0, off) if one_sided else off
        loss = losses.compute_weighted_loss(gen_ops.square(off), weights, inner, loss_collection, reduction)
        return _sum({"gradient_penalty_loss": loss}, loss, None, add_summaries)


def minimax_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.25,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """The cross entropy of telling real from generated data (Goodfellow 2014)."""
    with name_scope(scope, "discriminator_minimax_loss") as inner:
        real, made = convert_to_tensor(discriminator_real_outputs), convert_to_tensor(discriminator_gen_outputs)
        on_real = losses.sigmoid_cross_entropy(array_ops.ones_like(real), real, real_weights, label_smoothing, inner, None, reduction)
        on_made = losses.sigmoid_cross_entropy(array_ops.zeros_like(made), made, generated_weights, scope=inner, loss_collection=None, reduction=reduction)
        total = on_real + on_made
        return _sum(
            {"discriminator_gen_minimax_loss": on_made, "discriminator_real_minimax_loss": on_real, "discriminator_minimax_loss": total},
            total,
            loss_collection,
            add_summaries,
        )


def minimax_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """Less the discriminator's."""
    with name_scope(scope, "generator_minimax_loss"):
        made = convert_to_tensor(discriminator_gen_outputs)
        loss = -wargs.minimax_discriminator_loss(array_ops.ones_like(made), made, label_smoothing, weights, weights, None, None, reduction)
        return _sum({"generator_minimax_loss": loss}, loss, loss_collection, add_summaries)


modified_discriminator_loss = minimax_discriminator_loss


def modified_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """The cross entropy of being taken for real."""
    with name_scope(scope, "generator_modified_loss") as inner:
        made = convert_to_tensor(discriminator_gen_outputs)
        loss = losses.sigmoid_cross_entropy(array_ops.ones_like(made), made, weights, label_smoothing, inner, loss_collection, reduction)
        return _sum({"generator_modified_loss": loss}, loss, None, add_summaries)


def least_squares_generator_loss(
    discriminator_gen_outputs: Any,
    real_label: float = 1,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """Half of the squared differences from real_label (Mao 2016)."""
    with name_scope(scope, "lsq_generator_loss") as inner:
        each = gen_ops.squared_difference(_float(discriminator_gen_outputs), float(real_label)) / 2.0
        loss = losses.compute_weighted_loss(each, weights, inner, loss_collection, reduction)
        return _sum({"generator_lsq_loss": loss}, loss, None, add_summaries)


def least_squares_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_label: float = 1,
    fake_label: float = 0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """Half of the squared differences from both labels."""
    with name_scope(scope, "lsq_discriminator_loss") as inner:
        parts = [
            losses.compute_weighted_loss(gen_ops.squared_difference(_float(x), float(label)) / 2.0, w, inner, None, reduction)
            for x, label, w in ((discriminator_real_outputs, real_label, real_weights), (discriminator_gen_outputs, fake_label, generated_weights))
        ]
        total = parts[0] + parts[1]
        return _sum(
            {"discriminator_gen_lsq_loss": parts[1], "discriminator_real_lsq_loss": parts[0], "discriminator_lsq_loss": total},
            total,
            loss_collection,
            add_summaries,
        )


def mutual_information_penalty(
    structured_generator_inputs: Any,
    predicted_distributions: Any,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _BY_WEIGHTS,
    add_summaries: bool = False,
) -> Tensor:
    """Less the log probability that the discriminator gives to the structured noise (Chen 2016)."""
    with name_scope(scope, "mutual_information_loss") as inner:
        each = [math_ops.reduce_mean(d.log_prob(noise)) for d, noise in zip(predicted_distributions, structured_generator_inputs)]
        loss = -losses.compute_weighted_loss(array_ops.stack(each), weights, inner, None, reduction)
        return _sum({"mutual_information_penalty": loss}, loss, loss_collection, add_summaries)


def _cycle_consistency(
    data_x: Any, reconstructed_data_x: Any, data_y: Any, reconstructed_data_y: Any, scope: Optional[str] = None, add_summaries: bool = False
) -> Tensor:
    """Half of the absolute differences from both ways around (Zhu 2017)."""
    with name_scope(scope, "cycle_consistency_loss"):
        x, y = (
            losses.absolute_difference(data_x, reconstructed_data_x, loss_collection=None),
            losses.absolute_difference(data_y, reconstructed_data_y, loss_collection=None),
        )
        total = (x + y) / 2.0
        return _sum({"cycle_consistency_loss_x": x, "cycle_consistency_loss_y": y, "cycle_consistency_loss": total}, total, None, add_summaries)


def _combined(
    main_loss: Any,
    adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    variables: Any = None,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
    scope: Optional[str] = None,
) -> Tensor:
    """main_loss and a share of adversarial_loss: weight_factor, or so much that the gradients' norms are in gradient_ratio (main to adversarial)."""
    if (weight_factor is None) == (gradient_ratio is None):
        raise at_user_line(ValueError("Must set exactly one of `weight_factor` and `gradient_ratio`; got %s and %s" % (weight_factor, gradient_ratio)))
    with name_scope(scope, "adversarial_loss"):
        share = weight_factor
        if gradient_ratio is not None or gradient_summaries:
            of = list(variables) if variables else trainable_variables()
            norms: Any = [math_ops.global_norm([g for g in gradients(loss, of) if g is not None]) for loss in (main_loss, adversarial_loss)]
            if gradient_summaries:
                for name, norm in zip(("main_loss_gradient_magnitude", "adversarial_loss_gradient_magnitude"), norms):
                    summary.scalar(name, norm)
            if gradient_ratio is not None:
                share = gen_ops.stop_gradient(norms[0] / (norms[1] + gradient_ratio_epsilon) / gradient_ratio)
        total = main_loss + share * adversarial_loss
        if scalar_summaries:
            for name, value in (
                ("main_loss", main_loss),
                ("adversarial_loss", adversarial_loss),
                ("adversarial_coefficient", share),
                ("final_generator_loss", total),
            ):
                summary.scalar(name, value)
        return total


def combine_adversarial_loss(
    gan_loss: Any,
    gan_model: Any,
    non_adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
) -> Any:
    """A GANLoss whose generator loss has another loss beside it."""
    total = _combined(
        non_adversarial_loss,
        gan_loss.generator_loss,
        weight_factor,
        gradient_ratio,
        gradient_ratio_epsilon,
        gan_model.generator_variables,
        scalar_summaries,
        gradient_summaries,
    )
    return gan_loss._replace(generator_loss=total)


def _of_model(function: Callable[..., Any]) -> Callable[..., Any]:
    """The loss of a model: fields of its name are the arguments."""
    names = list(inspect.signature(function).parameters)

    def of_model(gan_model: Any, **kwargs: Any) -> Any:
        return function(**{**{n: getattr(gan_model, n) for n in names if n in gan_model._fields}, **kwargs})

    of_model.__name__, of_model.__doc__ = function.__name__, function.__doc__
    return of_model


_FUNCTIONS = (
    acgan_discriminator_loss,
    acgan_generator_loss,
    least_squares_discriminator_loss,
    least_squares_generator_loss,
    minimax_discriminator_loss,
    minimax_generator_loss,
    modified_generator_loss,
    mutual_information_penalty,
    wasserstein_discriminator_loss,
    wasserstein_generator_loss,
    wasserstein_gradient_penalty,
)
wargs = types.SimpleNamespace(
    **{f.__name__: f for f in _FUNCTIONS},
    modified_discriminator_loss=minimax_discriminator_loss,
    cycle_consistency_loss=_cycle_consistency,
    combine_adversarial_loss=_combined,
)
globals().update({f.__name__: _of_model(f) for f in _FUNCTIONS})
modified_discriminator_loss = _of_model(wargs.modified_discriminator_loss)


def cycle_consistency_loss(cyclegan_model: Any, scope: Optional[str] = None, add_summaries: bool = False) -> Tensor:
    """Half of the absolute differences from both ways around (Zhu 2017)."""
    x, y = cyclegan_model.model_x2y.generator_inputs, cyclegan_model.model_y2x.generator_inputs
    return _cycle_consistency(x, cyclegan_model.reconstructed_x, y, cyclegan_model.reconstructed_y, scope, add_summaries)
