# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.slim: the names of contrib.layers and contrib.framework in one place."""

from millrace.framework import not_provided as _not_provided
import millrace.contrib.layers as layers
import millrace.contrib.layers_utils as utils  # noqa: F401
import millrace.contrib.slim_data.data_decoder as data_decoder  # noqa: F401
import millrace.contrib.slim_data.data_provider as data_provider  # noqa: F401
import millrace.contrib.slim_data.dataset as dataset  # noqa: F401
import millrace.contrib.slim_data.dataset_data_provider as dataset_data_provider  # noqa: F401
import millrace.contrib.slim_data.parallel_reader as parallel_reader  # noqa: F401
import millrace.contrib.slim_data.prefetch_queue as prefetch_queue  # noqa: F401
import millrace.contrib.slim_data.queues as queues  # noqa: F401
import millrace.contrib.slim_data.tfexample_decoder as tfexample_decoder  # noqa: F401
import millrace.contrib.slim_model_analyzer as model_analyzer  # noqa: F401
import millrace.contrib.slim_evaluation as evaluation  # noqa: F401
import millrace.contrib.slim_learning as learning  # noqa: F401
import millrace.contrib.slim_summaries as summaries  # noqa: F401
import millrace.contrib.losses as losses  # noqa: F401 - logits before labels, unlike tf.losses
import millrace.contrib.metrics as metrics  # noqa: F401
from millrace.contrib.framework import *  # noqa: F403
from millrace.contrib.framework import (  # noqa: F401
    add_arg_scope,
    arg_scope,
    arg_scope_func_key,
    get_or_create_global_step,
    get_variables,
    get_variables_to_restore,
    model_variable,
    variable,
)
from millrace.contrib.layers import *  # noqa: F403
from millrace.contrib.layers import (  # noqa: F401
    avg_pool2d,
    batch_norm,
    bias_add,
    conv2d,
    conv2d_transpose,
    dropout,
    flatten,
    fully_connected,
    l1_regularizer,
    l2_regularizer,
    layer_norm,
    max_pool2d,
    one_hot_encoding,
    separable_conv2d,
    variance_scaling_initializer,
    xavier_initializer,
)
from millrace.ops.variables import global_variables, local_variables, trainable_variables  # noqa: F401

initializers = regularizers = layers  # modules that TensorFlow's import brought along


def get_model_variables(scope=None, suffix=None):  # type: ignore[no-untyped-def, no-redef]
    """The variables of the model."""
    from millrace.contrib import framework

    return framework.get_model_variables(scope, suffix)


def _later(name):  # type: ignore[no-untyped-def]
    if name == "nets":
        from millrace.contrib import slim_nets

        return slim_nets
    raise AttributeError("tf.contrib.slim.%s is not provided by Millrace" % name)


__getattr__ = _not_provided.getter("contrib.slim", _later)
