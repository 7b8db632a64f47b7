# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.gan: generators and discriminators that are trained against each other."""

from millrace.contrib.gan import estimator, eval, features, losses
from millrace.contrib.gan.model_losses import cyclegan_loss, gan_loss, stargan_loss
from millrace.contrib.gan.models import acgan_model, cyclegan_model, gan_model, infogan_model, stargan_model
from millrace.contrib.gan.namedtuples import ACGANModel, CycleGANLoss, CycleGANModel, GANLoss, GANModel, GANTrainOps, GANTrainSteps, InfoGANModel, StarGANModel
from millrace.contrib.gan.train import RunTrainOpsHook, gan_train, gan_train_ops, get_joint_train_hooks, get_sequential_train_hooks, get_sequential_train_steps
