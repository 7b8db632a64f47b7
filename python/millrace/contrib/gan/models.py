# SPDX-License-Identifier: Apache-2.0
"""Models of GANs: generators and discriminators put together."""

from __future__ import annotations

from typing import Any, Callable

from millrace.contrib.framework import get_trainable_variables
from millrace.contrib.gan.namedtuples import ACGANModel, CycleGANModel, GANModel, InfoGANModel, StarGANModel
from millrace.distributions.distribution import Distribution
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, random_ops
from millrace.ops.variable_scope import variable_scope


def _tensors(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return [convert_to_tensor(x) for x in given]
    return {k: convert_to_tensor(v) for k, v in given.items()} if isinstance(given, dict) else convert_to_tensor(given)


def _check_shapes(made: Any, real: Any) -> None:
    if not made.get_shape().is_compatible_with(real.get_shape()):
        raise at_user_line(ValueError("Generator output shape (%s) must be the same shape as real data (%s)." % (made.get_shape(), real.get_shape())))


def _built(generator_fn: Any, discriminator_fn: Any, real_data: Any, inputs: Any, generator_scope: Any, discriminator_scope: Any, check_shapes: bool) -> Any:
    """(generated, what the discriminator gives for it, real data, what it gives for that, both scopes)."""
    with variable_scope(generator_scope) as generator:
        made = generator_fn(inputs)
    with variable_scope(discriminator_scope) as discriminator:
        on_made = discriminator_fn(made, inputs)
    with variable_scope(discriminator, reuse=True):
        real = convert_to_tensor(real_data)
        on_real = discriminator_fn(real, inputs)
    if check_shapes:
        _check_shapes(made, real)
    return made, on_made, real, on_real, generator, discriminator


def gan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    real_data: Any,
    generator_inputs: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    check_shapes: bool = True,
) -> Any:
    """generator_fn(inputs) makes data, discriminator_fn(data, inputs) judges them: a GANModel."""
    inputs = _tensors(generator_inputs)
    made, on_made, real, on_real, generator, discriminator = _built(
        generator_fn, discriminator_fn, real_data, inputs, generator_scope, discriminator_scope, check_shapes
    )
    return GANModel(
        inputs,
        made,
        get_trainable_variables(generator),
        generator,
        generator_fn,
        real,
        on_real,
        on_made,
        get_trainable_variables(discriminator),
        discriminator,
        discriminator_fn,
    )


def _checked_distributions(distributions: Any, structured: Any) -> Any:
    if not isinstance(distributions, (tuple, list)):
        raise at_user_line(ValueError("`predicted_distributions` must be a list. Instead, found %s." % type(distributions)))
    for each in distributions:
        if not isinstance(each, Distribution):
            raise at_user_line(ValueError("Every element in `predicted_distributions` must be a `tf.Distribution`. Instead, found %s." % type(each)))
    if len(distributions) != len(structured):
        message = "Length of `predicted_distributions` %i must be the same as the length of structured noise %i."
        raise at_user_line(ValueError(message % (len(distributions), len(structured))))
    return distributions


def infogan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    real_data: Any,
    unstructured_generator_inputs: Any,
    structured_generator_inputs: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
) -> Any:
    """A GAN whose discriminator gives (logits, distributions of the structured inputs) (Chen 2016)."""
    loose, structured = _tensors(unstructured_generator_inputs), _tensors(structured_generator_inputs)
    inputs = loose + structured
    made, on_made, real, on_real, generator, discriminator = _built(
        generator_fn, discriminator_fn, real_data, inputs, generator_scope, discriminator_scope, True
    )
    distributions = _checked_distributions(on_made[1], structured)
    return InfoGANModel(
        inputs,
        made,
        get_trainable_variables(generator),
        generator,
        generator_fn,
        real,
        on_real[0],
        on_made[0],
        get_trainable_variables(discriminator),
        discriminator,
        lambda x, y: discriminator_fn(x, y)[0],
        structured,
        distributions,
        discriminator_fn,
    )


def acgan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    real_data: Any,
    generator_inputs: Any,
    one_hot_labels: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    check_shapes: bool = True,
) -> Any:
    """A GAN whose discriminator gives (logits, logits of classes) (Odena 2016)."""
    inputs = _tensors(generator_inputs)

    def judged(data: Any, condition: Any) -> Any:
        made = discriminator_fn(data, condition)
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise at_user_line(
                TypeError("A discriminator function for ACGAN must output a tuple consisting of (discrimination logits, classification logits).")
            )
        return made

    made, on_made, real, on_real, generator, discriminator = _built(generator_fn, judged, real_data, inputs, generator_scope, discriminator_scope, check_shapes)
    return ACGANModel(
        inputs,
        made,
        get_trainable_variables(generator),
        generator,
        generator_fn,
        real,
        on_real[0],
        on_made[0],
        get_trainable_variables(discriminator),
        discriminator,
        discriminator_fn,
        one_hot_labels,
        on_real[1],
        on_made[1],
    )


def cyclegan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    data_x: Any,
    data_y: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    model_x2y_scope: Any = "ModelX2Y",
    model_y2x_scope: Any = "ModelY2X",
    check_shapes: bool = True,
) -> Any:
    """Two GANs, one from data x to data y and one back, and what comes of each kind of data by both (Zhu 2017): a CycleGANModel."""

    def one_way(scope: Any, given: Any, wanted: Any) -> Any:
        with variable_scope(scope):
            return gan_model(generator_fn, discriminator_fn, wanted, given, generator_scope, discriminator_scope, check_shapes)

    x2y, y2x = one_way(model_x2y_scope, data_x, data_y), one_way(model_y2x_scope, data_y, data_x)
    with variable_scope(y2x.generator_scope, reuse=True):
        back_x = y2x.generator_fn(x2y.generated_data)
    with variable_scope(x2y.generator_scope, reuse=True):
        back_y = x2y.generator_fn(y2x.generated_data)
    return CycleGANModel(x2y, y2x, back_x, back_y)


def _one(given: Any) -> Tensor:
    """A tensor, of several along the batch."""
    given = _tensors(given)
    return array_ops.concat(given, 0) if isinstance(given, list) else given


def _generate_stargan_random_domain_target(batch_size: int, num_domains: int) -> Tensor:
    """A domain for each example, one-hot."""
    return array_ops.one_hot(random_ops.random_uniform([batch_size], 0, num_domains, dtypes.int32), num_domains)


def stargan_model(
    generator_fn: Callable[..., Any],
    discriminator_fn: Callable[..., Any],
    input_data: Any,
    input_data_domain_label: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
) -> Any:
    """generator_fn(data, one-hot domains) brings data to other domains, discriminator_fn(data, number of domains) gives (what is real, logits of the
    domain) (Choi 2017): a StarGANModel. The domains that are gone to are drawn in each step."""
    data, labels = _one(input_data), _one(input_data_domain_label)
    labels.get_shape().assert_has_rank(2)
    labels.get_shape().assert_is_fully_defined()
    batch, domains = labels.get_shape().as_list()
    with variable_scope(generator_scope) as generator:
        target = _generate_stargan_random_domain_target(int(batch), int(domains))  # type: ignore[arg-type]
        made = generator_fn(data, target)
    with variable_scope(generator, reuse=True):
        back = generator_fn(made, labels)
    with variable_scope(discriminator_scope) as discriminator:
        made_source, made_domain = discriminator_fn(made, domains)
    with variable_scope(discriminator, reuse=True):
        real_source, real_domain = discriminator_fn(data, domains)
    return StarGANModel(
        data,
        labels,
        made,
        target,
        back,
        real_source,
        made_source,
        real_domain,
        made_domain,
        get_trainable_variables(generator),
        generator,
        generator_fn,
        get_trainable_variables(discriminator),
        discriminator,
        discriminator_fn,
    )
