# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan.losses.wargs: losses of GANs, with tensors as arguments."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from millrace import losses, summary
from millrace.distributions.distribution import Distribution
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, name_scope
from millrace.framework.tensor_util import constant_value
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
        loss = -minimax_discriminator_loss(array_ops.ones_like(made), made, label_smoothing, weights, weights, None, None, reduction)
        return _sum({"generator_minimax_loss": loss}, loss, loss_collection, add_summaries)


def modified_discriminator_loss(
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
    """`minimax_discriminator_loss`, which the modified generator's loss leaves as it is."""
    with name_scope(scope, "discriminator_modified_loss") as inner:
        return minimax_discriminator_loss(
            discriminator_real_outputs,
            discriminator_gen_outputs,
            label_smoothing,
            real_weights,
            generated_weights,
            inner,
            loss_collection,
            reduction,
            add_summaries,
        )


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
    if not isinstance(predicted_distributions, (list, tuple)) or not all(isinstance(d, Distribution) for d in predicted_distributions):
        raise at_user_line(ValueError("`predicted_distributions` must be a list of Distributions. Instead, found %s." % (predicted_distributions,)))
    if len(structured_generator_inputs) != len(predicted_distributions):
        counts = len(structured_generator_inputs), len(predicted_distributions)
        raise at_user_line(ValueError("`structured_generator_inputs` length %i must be the same as `predicted_distributions` length %i." % counts))
    with name_scope(scope, "mutual_information_loss") as inner:
        each = [math_ops.reduce_mean(d.log_prob(noise)) for d, noise in zip(predicted_distributions, structured_generator_inputs)]
        loss = -1 * losses.compute_weighted_loss(array_ops.stack(each), weights, inner, None, reduction)
        return _sum({"mutual_information_penalty": loss}, loss, loss_collection, add_summaries)


def cycle_consistency_loss(
    data_x: Any, reconstructed_data_x: Any, data_y: Any, reconstructed_data_y: Any, scope: Optional[str] = None, add_summaries: bool = False
) -> Tensor:
    """Half of the absolute differences from both ways around (Zhu 2017)."""
    with name_scope(scope, "cycle_consistency_loss"):
        x, y = losses.absolute_difference(data_x, reconstructed_data_x), losses.absolute_difference(data_y, reconstructed_data_y)
        total = (x + y) / 2.0
        return _sum({"cycle_consistency_loss_x2x": x, "cycle_consistency_loss_y2y": y, "cycle_consistency_loss": total}, total, None, add_summaries)


def _numerically_stable_global_norm(tensors: Sequence[Any]) -> Any:
    """The norm of all tensors together, by way of their greatest magnitude: squares may be no finite numbers."""
    given = [t for t in tensors if t is not None]
    if not given:
        return 0.0
    greatest = math_ops.reduce_max(array_ops.stack([math_ops.reduce_max(math_ops.abs(t)) for t in given]))
    return greatest * math_ops.global_norm([t / greatest for t in given])


def combine_adversarial_loss(
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
    main_loss, adversarial_loss = convert_to_tensor(main_loss), convert_to_tensor(adversarial_loss)
    for loss in (main_loss, adversarial_loss):
        loss.get_shape().assert_is_compatible_with([])
    if weight_factor is None and gradient_ratio is None:
        raise at_user_line(ValueError("`weight_factor` and `gradient_ratio` cannot both be `None.`"))
    if weight_factor is not None and gradient_ratio is not None:
        raise at_user_line(ValueError("`weight_factor` and `gradient_ratio` cannot both be specified."))
    with name_scope(scope, "adversarial_loss", values=[main_loss, adversarial_loss]):
        of = trainable_variables() if variables is None else variables
        norms: Any = ()
        if gradient_summaries or gradient_ratio is not None:
            norms = [_numerically_stable_global_norm(gradients(loss, of)) for loss in (main_loss, adversarial_loss)]
        if scalar_summaries:
            summary.scalar("main_loss", main_loss)
            summary.scalar("adversarial_loss", adversarial_loss)
        if gradient_summaries:
            summary.scalar("main_loss_gradients", norms[0])
            summary.scalar("adversarial_loss_gradients", norms[1])
        share = weight_factor
        if constant_value(convert_to_tensor(gradient_ratio if weight_factor is None else weight_factor)) == 0:
            return main_loss  # type: ignore[no-any-return]
        if gradient_ratio is not None:
            share = norms[0] / (norms[1] + gradient_ratio_epsilon) / gradient_ratio
            summary.scalar("adversarial_coefficient", share)
        return main_loss + gen_ops.stop_gradient(share) * adversarial_loss  # type: ignore[no-any-return]
