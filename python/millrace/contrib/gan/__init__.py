# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.gan: generators and discriminators that are trained against each other."""

from millrace.contrib.gan import estimator, eval, features, losses
from millrace.contrib.gan.namedtuples import ACGANModel, CycleGANLoss, CycleGANModel, GANLoss, GANModel, GANTrainOps, GANTrainSteps, InfoGANModel
from millrace.contrib.gan.train import (
    RunTrainOpsHook,
    acgan_model,
    gan_loss,
    gan_model,
    gan_train,
    gan_train_ops,
    get_joint_train_hooks,
    get_sequential_train_hooks,
    get_sequential_train_steps,
    infogan_model,
)
