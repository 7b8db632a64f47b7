# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.train: optimizers, averages, schedules, savers, coordinators."""

import importlib as _importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

from millrace.framework import not_provided as _not_provided
from millrace.ops.gradients import AggregationMethod
from millrace.ops.variables import Variable as _Variable

if TYPE_CHECKING:
    from millrace.protos.message import Message
    from millrace.train.lbfgs import LBFGSOptimizer
    from millrace.train.sandblaster import SandblasterOptimizer

    BytesList = ClusterDef = Example = Feature = FeatureList = FeatureLists = Features = FloatList = Int64List = JobDef = Message
    SaverDef = SequenceExample = ServerDef = Message
else:
    from millrace.protos.definitions import (
        BytesList,
        ClusterDef,
        Example,
        Feature,
        FeatureList,
        FeatureLists,
        Features,
        FloatList,
        Int64List,
        JobDef,
        SaverDef,
        SequenceExample,
        ServerDef,
    )
from millrace.summary import FileWriter as SummaryWriter
from millrace.summary import FileWriterCache as SummaryWriterCache
from millrace.summary import summary_iterator
from millrace.train.basic_loops import basic_train_loop
from millrace.train.checkpoint import Checkpoint
from millrace.train.checkpoint_manager import CheckpointManager
from millrace.train.checkpoint_utils import checkpoints_iterator, init_from_checkpoint
from millrace.train.cluster import ClusterSpec, replica_device_setter
from millrace.train.coordinator import Coordinator, LooperThread
from millrace.train.downpour import DownpourOptimizer
from millrace.train.decay import *  # noqa: F403
from millrace.train.global_step import assert_global_step, create_global_step, get_global_step, get_or_create_global_step, global_step
from millrace.train.hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    ProfilerHook,
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from millrace.train.batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from millrace.train.input import input_producer, limit_epochs, match_filenames_once, range_input_producer, slice_input_producer, string_input_producer
from millrace.train.monitored_session import (
    ChiefSessionCreator,
    MonitoredSession,
    MonitoredTrainingSession,
    Scaffold,
    SessionCreator,
    SessionManager,
    SingularMonitoredSession,
    WorkerSessionCreator,
)
from millrace.train.moving_averages import ExponentialMovingAverage
from millrace.train.optimizer import Optimizer
from millrace.train.proximal_optimizers import AdagradDAOptimizer, ProximalAdagradOptimizer, ProximalGradientDescentOptimizer
from millrace.train.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from millrace.train.best_checkpoints import best_checkpoint
from millrace.train.rules import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    RMSPropOptimizer,
)
from millrace.train.saver import (
    CheckpointReader,
    NewCheckpointReader,
    Saver,
    checkpoint_exists,
    export_meta_graph,
    generate_checkpoint_state_proto,
    get_checkpoint_state,
    import_meta_graph,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
    update_checkpoint_state,
    write_graph,
)
from millrace.train.checkpoint_management import get_checkpoint_mtimes, remove_checkpoint
from millrace.train.server import Server
from millrace.train.sync_replicas_optimizer import SyncReplicasOptimizer
from millrace.train.supervisor import Supervisor
from millrace.train.warm_starting import VocabInfo, warm_start


# Names that TensorFlow has not: programs list this module for its optimizers, and take each for one.
_BATCH_METHODS = {"LBFGSOptimizer": "lbfgs", "SandblasterOptimizer": "sandblaster"}


def _later(name: str) -> _Any:
    if name in _BATCH_METHODS:
        return getattr(_importlib.import_module("millrace.train." + _BATCH_METHODS[name]), name)
    if name == "experimental":
        return _importlib.import_module("millrace.train.experimental")
    if name in ("sdca_fprint", "sdca_optimizer", "sdca_shrink_l1"):
        return getattr(_importlib.import_module("millrace.ops.gen_ops"), name)
    raise AttributeError("module 'millrace.train' has no attribute %r" % name)


__getattr__ = _not_provided.getter("train", _later)
del TYPE_CHECKING
