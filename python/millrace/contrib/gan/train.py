# SPDX-License-Identifier: Apache-2.0
"""Training of GANs: operations of a step, hooks that run them, loops."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from millrace import train
from millrace.contrib.gan.namedtuples import CycleGANModel, GANTrainOps, GANTrainSteps
from millrace.contrib.training_loops import create_train_op
from millrace.contrib.training_loops import train as run_training
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, get_collection, name_scope
from millrace.ops import init_ops
from millrace.ops.variable_scope import get_variable
from millrace.train.hooks import SessionRunHook


def gan_train_ops(
    model: Any,
    loss: Any,
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    check_for_unused_update_ops: bool = True,
    is_chief: bool = True,
    **kwargs: Any,
) -> Any:
    """The GANTrainOps; `is_chief` is what hooks of synchronous optimizers are told, other arguments are those of tf.contrib.training.create_train_op."""
    step = train.get_or_create_global_step()
    advance = step.assign_add(1)
    if isinstance(model, CycleGANModel):
        both = []
        for name, part, part_loss in (("cyclegan_x2y_train", model.model_x2y, loss.loss_x2y), ("cyclegan_y2x_train", model.model_y2x, loss.loss_y2x)):
            with name_scope(name):
                both.append(gan_train_ops(part, part_loss, generator_optimizer, discriminator_optimizer, check_for_unused_update_ops, is_chief, **kwargs))
        generators, discriminators = tuple(ops.generator_train_op for ops in both), tuple(ops.discriminator_train_op for ops in both)
        return GANTrainOps(generators, discriminators, advance, [hook for ops in both for hook in ops.train_hooks])
    given = kwargs.pop("update_ops", None)
    updates = list(given) if given is not None else get_collection(GraphKeys.UPDATE_OPS)
    parts = [[u for u in get_collection(GraphKeys.UPDATE_OPS, scope.name) if u in updates] for scope in (model.generator_scope, model.discriminator_scope)]
    unused = [u for u in updates if u not in parts[0] and u not in parts[1]]
    if check_for_unused_update_ops and unused:
        raise at_user_line(ValueError("There are unused update ops: %s" % unused))
    made = []
    for name, total, optimizer, variables, own in (
        ("generator", loss.generator_loss, generator_optimizer, model.generator_variables, parts[0]),
        ("discriminator", loss.discriminator_loss, discriminator_optimizer, model.discriminator_variables, parts[1]),
    ):
        own_step = None
        if isinstance(optimizer, train.SyncReplicasOptimizer):  # it tells fresh gradients by a step, which is this one's
            own_step = get_variable(
                "dummy_global_step_" + name, [], step.dtype.base_dtype, init_ops.zeros_initializer(), trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES]
            )
            own = [*own, own_step.assign(step)]
        with name_scope(name + "_train"):
            made.append(create_train_op(total_loss=total, optimizer=optimizer, variables_to_train=variables, global_step=own_step, update_ops=own, **kwargs))
    hooks = [o.make_session_run_hook(is_chief) for o in (generator_optimizer, discriminator_optimizer) if isinstance(o, train.SyncReplicasOptimizer)]
    return GANTrainOps(made[0], made[1], advance, hooks)


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
        own, total = dict(train_step_kwargs), 0.0
        should_stop = own.pop("should_stop", None)
        for op, count in (
            (train_ops.generator_train_op, train_steps.generator_train_steps),
            (train_ops.discriminator_train_op, train_steps.discriminator_train_steps),
        ):
            for _ in range(count):
                total += train_step(session, op, global_step, own)[0]
        session.run(train_ops.global_step_inc_op)
        return total, False if should_stop is None else session.run(should_stop)

    return steps
