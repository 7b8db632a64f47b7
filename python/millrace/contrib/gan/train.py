# SPDX-License-Identifier: Apache-2.0
"""Models, losses and training of GANs, step by step."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from millrace import losses, train
from millrace.contrib.framework import get_trainable_variables
from millrace.contrib.gan import losses as gan_losses
from millrace.contrib.gan.namedtuples import ACGANModel, GANLoss, GANModel, GANTrainOps, GANTrainSteps, InfoGANModel
from millrace.contrib.training_loops import create_train_op
from millrace.contrib.training_loops import train as run_training
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_collection, name_scope
from millrace.ops.variable_scope import variable_scope
from millrace.train.hooks import SessionRunHook


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
    distributions = on_made[1]
    if len(distributions) != len(structured):
        raise at_user_line(ValueError("Length of inferred distributions must match structured inputs: got %d and %d" % (len(distributions), len(structured))))
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


# ---- losses ----


def _weight(value: Any, name: str) -> Any:
    """A weight; None where there is none."""
    if value is None or isinstance(value, Tensor):
        return value
    if value < 0:
        raise at_user_line(ValueError("`%s` must be greater than 0. Instead, was %s" % (name, value)))
    return value or None


def _with_pool(model: Any, tensor_pool_fn: Any) -> Any:
    if tensor_pool_fn is None:
        return model
    data, inputs = tensor_pool_fn((model.generated_data, model.generator_inputs))
    with variable_scope(model.discriminator_scope, reuse=True):
        if isinstance(model, InfoGANModel):
            judged, distributions = model.discriminator_and_aux_fn(data, inputs)
            return model._replace(discriminator_gen_outputs=judged, predicted_distributions=distributions)
        judged = model.discriminator_fn(data, inputs)
    if isinstance(model, ACGANModel):
        return model._replace(discriminator_gen_outputs=judged[0], discriminator_gen_classification_logits=judged[1])
    return model._replace(discriminator_gen_outputs=judged)


def gan_loss(
    model: Any,
    generator_loss_fn: Any = gan_losses.wasserstein_generator_loss,
    discriminator_loss_fn: Any = gan_losses.wasserstein_discriminator_loss,
    gradient_penalty_weight: Any = None,
    gradient_penalty_epsilon: float = 1e-10,
    mutual_information_penalty_weight: Any = None,
    aux_cond_generator_weight: Any = None,
    aux_cond_discriminator_weight: Any = None,
    tensor_pool_fn: Any = None,
    add_summaries: bool = True,
) -> Any:
    """The GANLoss of a model: its losses, the penalties that have weights, and what regularizers add."""
    penalty, information = _weight(gradient_penalty_weight, "gradient_penalty_weight"), _weight(mutual_information_penalty_weight, "infogan_weight")
    of_generator = _weight(aux_cond_generator_weight, "aux_cond_generator_weight")
    of_discriminator = _weight(aux_cond_discriminator_weight, "aux_cond_discriminator_weight")
    if information is not None and not isinstance(model, InfoGANModel):
        raise at_user_line(
            ValueError("When `mutual_information_penalty_weight` is provided, `model` must be an `InfoGANModel`. Instead, was %s." % type(model))
        )
    if (of_generator is not None or of_discriminator is not None) and not isinstance(model, ACGANModel):
        raise at_user_line(
            ValueError(
                "When `aux_cond_generator_weight` or `aux_cond_discriminator_weight` is provided, `model` must be an `ACGANModel`. "
                "Instead, was %s." % type(model)
            )
        )
    generator = generator_loss_fn(model, add_summaries=add_summaries)
    discriminator = discriminator_loss_fn(_with_pool(model, tensor_pool_fn), add_summaries=add_summaries)
    if penalty is not None:
        discriminator += penalty * gan_losses.wasserstein_gradient_penalty(model, epsilon=gradient_penalty_epsilon, add_summaries=add_summaries)  # type: ignore[call-arg]
    if information is not None:
        shared = information * gan_losses.mutual_information_penalty(model, add_summaries=add_summaries)  # type: ignore[call-arg]
        generator, discriminator = generator + shared, discriminator + shared
    if of_generator is not None:
        generator += of_generator * gan_losses.acgan_generator_loss(model, add_summaries=add_summaries)  # type: ignore[call-arg]
    if of_discriminator is not None:
        discriminator += of_discriminator * gan_losses.acgan_discriminator_loss(model, add_summaries=add_summaries)  # type: ignore[call-arg]
    return GANLoss(
        generator + losses.get_regularization_loss(model.generator_scope.name), discriminator + losses.get_regularization_loss(model.discriminator_scope.name)
    )


# ---- training ----


def gan_train_ops(
    model: Any, loss: Any, generator_optimizer: Any, discriminator_optimizer: Any, check_for_unused_update_ops: bool = True, **kwargs: Any
) -> Any:
    """The GANTrainOps; other arguments are those of tf.contrib.training.create_train_op."""
    step = train.get_or_create_global_step().assign_add(1)
    given = kwargs.pop("update_ops", None)
    updates = list(given) if given is not None else get_collection(GraphKeys.UPDATE_OPS)
    parts = [[u for u in get_collection(GraphKeys.UPDATE_OPS, scope.name) if u in updates] for scope in (model.generator_scope, model.discriminator_scope)]
    unused = [u for u in updates if u not in parts[0] and u not in parts[1]]
    if check_for_unused_update_ops and unused:
        raise at_user_line(ValueError("There are unused update ops: %s" % unused))
    made = []
    for name, total, optimizer, variables, own in (
        ("generator_train", loss.generator_loss, generator_optimizer, model.generator_variables, parts[0]),
        ("discriminator_train", loss.discriminator_loss, discriminator_optimizer, model.discriminator_variables, parts[1]),
    ):
        with name_scope(name):
            made.append(create_train_op(total_loss=total, optimizer=optimizer, variables_to_train=variables, global_step=None, update_ops=own, **kwargs))
    hooks = [o.make_session_run_hook(True) for o in (generator_optimizer, discriminator_optimizer) if isinstance(o, train.SyncReplicasOptimizer)]
    return GANTrainOps(made[0], made[1], step, hooks)


class RunTrainOpsHook(SessionRunHook):
    """Runs operations so many times before each step."""

    def __init__(self, train_ops: Any, train_steps: int) -> None:
        self._ops, self._steps = list(train_ops) if isinstance(train_ops, (list, tuple)) else [train_ops], train_steps

    def before_run(self, run_context: Any) -> None:
        """Runs them."""
        for _ in range(self._steps):
            run_context.session.run(self._ops)


_ONE_EACH = GANTrainSteps(1, 1)


def get_sequential_train_hooks(train_steps: Any = _ONE_EACH) -> Callable[[Any], List[Any]]:
    """A function of GANTrainOps that gives hooks: steps of the generator, then of the discriminator."""
    return lambda ops: [
        RunTrainOpsHook(ops.generator_train_op, train_steps.generator_train_steps),
        RunTrainOpsHook(ops.discriminator_train_op, train_steps.discriminator_train_steps),
        *ops.train_hooks,
    ]


def get_joint_train_hooks(train_steps: Any = _ONE_EACH) -> Callable[[Any], List[Any]]:
    """A function of GANTrainOps that gives hooks: steps of both at once, then those that one of them has more."""
    both = min(train_steps)
    return lambda ops: [
        RunTrainOpsHook([ops.generator_train_op, ops.discriminator_train_op], both),
        RunTrainOpsHook(ops.generator_train_op, train_steps.generator_train_steps - both),
        RunTrainOpsHook(ops.discriminator_train_op, train_steps.discriminator_train_steps - both),
        *ops.train_hooks,
    ]


def gan_train(
    train_ops: Any,
    logdir: str,
    get_hooks_fn: Any = get_sequential_train_hooks(),
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: Optional[float] = 600,
    save_summaries_steps: Optional[int] = 100,
    config: Any = None,
) -> Any:
    """tf.contrib.training.train with the hooks of a GAN; the last global step."""
    return run_training(
        train_ops.global_step_inc_op,
        logdir,
        master=master,
        is_chief=is_chief,
        scaffold=scaffold,
        hooks=[*(hooks or []), *get_hooks_fn(train_ops)],
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
    )


def get_sequential_train_steps(train_steps: Any = _ONE_EACH) -> Callable[..., Any]:
    """A train_step_fn for tf.contrib.slim.learning.train: steps of the generator, then of the discriminator."""
    from millrace.contrib.slim_learning import train_step

    def steps(session: Any, train_ops: Any, global_step: Any, train_step_kwargs: Any) -> Any:
        stops, found = [], {}
        own = {k: v for k, v in train_step_kwargs.items() if k not in ("should_trace",)}
        for name, op, count in (
            ("generator", train_ops.generator_train_op, train_steps.generator_train_steps),
            ("discriminator", train_ops.discriminator_train_op, train_steps.discriminator_train_steps),
        ):
            for _ in range(count):
                found[name], stop = train_step(session, op, global_step, own)
                stops.append(stop)
        session.run(train_ops.global_step_inc_op)
        return sum(found.values()), any(stops)

    return steps
