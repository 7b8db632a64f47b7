# SPDX-License-Identifier: Apache-2.0
"""tf.estimator.tpu: estimators of programs that were written for TPUs as well, on the machine that runs them (use_tpu=False).

There are no TPUs here. What is left of a TPUEstimator without them: params["batch_size"] is the batch size of the mode that input_fn and
model_fn are called for, params["use_tpu"] tells model_fn that there is none, and the functions of a TPUEstimatorSpec that would run on the
host, beside the TPU, are called with its tensors as they are.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from millrace import tf_logging
from millrace.contrib import summary
from millrace.estimator.estimator import Estimator, _check_arguments
from millrace.estimator.run_config import RunConfig as _RunConfig
from millrace.estimator.run_config import TaskType
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.estimator.util import fn_args
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.protos import definitions
from millrace.train.cluster import ClusterSpec
from millrace.train.hooks import SessionRunArgs, SessionRunContext, SessionRunHook, StepCounterHook

_RESERVED = ("batch_size", "context")
_LOOP = re.compile(r"^(?P<count>[1-9]\d*)(?P<unit>[smh]?)$")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class InputPipelineConfig:
    """How input would be dealt out to TPUs."""

    PER_SHARD_V1, PER_HOST_V1, PER_HOST_V2, BROADCAST, SLICED = 1, 2, 3, 4, 5


def _iterations(given: Any) -> Tuple[int, bool]:
    """How long a loop on a TPU takes, and whether that is in seconds rather than steps."""
    found = _LOOP.match(str(given))
    if found is None:
        raise at_user_line(
            ValueError("Invalid TPUConfig `iterations_per_loop` value %r: a positive integer, or one with a unit of time: 3600s, 60m or 1h." % given)
        )
    return int(found["count"]) * _SECONDS.get(found["unit"], 1), bool(found["unit"])


def _positive(value: Any, name: str) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise at_user_line(TypeError("%s must be int, got %s" % (name, type(value))))
    if value <= 0:
        raise at_user_line(ValueError("%s must be positive, got %s" % (name, value)))


class _TPUConfig(NamedTuple):
    iterations_per_loop: Any
    num_shards: Any
    num_cores_per_replica: Any
    per_host_input_for_training: Any
    tpu_job_name: Any
    initial_infeed_sleep_secs: Any
    input_partition_dims: Any
    eval_training_input_configuration: Any
    experimental_host_call_every_n_steps: Any


class TPUConfig(_TPUConfig):
    """What a program says of its TPUs. Of it only iterations_per_loop has a meaning without them: how often the speed is logged."""

    def __new__(
        cls,
        iterations_per_loop: Any = 2,
        num_shards: Optional[int] = None,
        num_cores_per_replica: Optional[int] = None,
        per_host_input_for_training: Any = True,
        tpu_job_name: Optional[str] = None,
        initial_infeed_sleep_secs: Optional[int] = None,
        input_partition_dims: Any = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
    ) -> "TPUConfig":
        _iterations(iterations_per_loop)
        if num_shards is not None:
            _positive(num_shards, "TPUConfig num_shards")
        if initial_infeed_sleep_secs:
            _positive(initial_infeed_sleep_secs, "TPUConfig initial_infeed_sleep_secs")
        if num_cores_per_replica not in (None, 1, 2, 4, 8, 16, 32, 64, 128):
            raise at_user_line(ValueError("num_cores_per_replica must be 1, 2, 4, 8, 16, 32, 64, 128; got %s" % num_cores_per_replica))
        if input_partition_dims is not None:
            if len(input_partition_dims) not in (1, 2):
                raise at_user_line(ValueError("input_partition_dims must be a list/tuple with one or two elements."))
            if per_host_input_for_training is not InputPipelineConfig.PER_HOST_V2:
                raise at_user_line(ValueError("input_partition_dims is only supported in PER_HOST_V2 mode."))
            if num_cores_per_replica is None:
                raise at_user_line(ValueError("input_partition_dims requires setting num_cores_per_replica."))
        if eval_training_input_configuration not in (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.SLICED):
            raise at_user_line(ValueError("eval_training_input_configuration must be PER_HOST_V1 or SLICED; got %s" % eval_training_input_configuration))
        if isinstance(per_host_input_for_training, bool):
            per_host_input_for_training = InputPipelineConfig.PER_HOST_V1 if per_host_input_for_training else InputPipelineConfig.PER_SHARD_V1
        told = json.loads(os.environ.get("TF_CONFIG") or "{}").get("service", {}).get("tpu_worker_job_name")
        return super().__new__(
            cls,
            iterations_per_loop,
            num_shards,
            num_cores_per_replica,
            per_host_input_for_training,
            tpu_job_name or told,
            initial_infeed_sleep_secs,
            input_partition_dims,
            eval_training_input_configuration,
            experimental_host_call_every_n_steps,
        )


class RunConfig(_RunConfig):
    """A RunConfig that says something of TPUs as well. A cluster resolver gives the master and the tasks."""

    def __init__(
        self, tpu_config: Optional[TPUConfig] = None, evaluation_master: Optional[str] = None, master: Optional[str] = None, cluster: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if master is not None and cluster is not None:
            raise at_user_line(ValueError("Both master and cluster are set."))
        self._tpu_config, self._cluster = tpu_config or TPUConfig(), cluster
        if master is not None or cluster is not None:
            self._master = cluster.master() if master is None else master
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master
        elif not self._evaluation_master and self.task_type != TaskType.EVALUATOR:
            self._evaluation_master = self._master
        if cluster is not None:
            self._take_tasks(cluster.cluster_spec())

    def _take_tasks(self, tasks: Any) -> None:
        self._cluster_spec = ClusterSpec({}) if tasks is None else tasks
        if self._session_config is None:
            self._session_config = definitions.ConfigProto(allow_soft_placement=True, isolate_session_state=True)
        if self._session_config.HasField("cluster_def"):
            raise at_user_line(ValueError("You cannot provide a ClusterResolver and session_config.cluster_def."))
        if tasks:
            self._session_config.cluster_def.CopyFrom(tasks.as_cluster_def())

    tpu_config = property(lambda self: self._tpu_config, doc="What is said of TPUs.")
    cluster = property(lambda self: self._cluster, doc="The cluster resolver, or None.")

    def replace(self, **kwargs: Any) -> "RunConfig":
        """A copy with other values."""
        tpu_config = kwargs.pop("tpu_config", self._tpu_config)
        made: Any = super().replace(**kwargs)
        made._tpu_config = tpu_config
        return made  # type: ignore[no-any-return]


class _HostCallHook(SessionRunHook):
    """Runs in each step what a function of the host made, with the writers of tf.contrib.summary that it uses."""

    def __init__(self, tensors: Any) -> None:
        self._tensors = tensors

    def begin(self) -> None:
        """Finds the writers."""
        self._init, self._flush = summary.summary_writer_initializer_op(), summary._flush_all()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the writers."""
        session.run(self._init)

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for what the function made."""
        return SessionRunArgs(self._tensors)

    def end(self, session: Any) -> None:
        """Writes what waits."""
        session.run(self._flush)


def _checked_call(name: str, call: Any) -> None:
    if not isinstance(call, (tuple, list)):
        raise at_user_line(ValueError("%s should be tuple or list" % name))
    if len(call) != 2:
        raise at_user_line(ValueError("%s should have two elements." % name))
    function, tensors = call
    if not callable(function):
        raise at_user_line(TypeError("%s[0] should be callable." % name))
    if not isinstance(tensors, (tuple, list, dict)):
        raise at_user_line(ValueError("%s[1] should be tuple or list, or dict." % name))
    takes_any = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in inspect.signature(function).parameters.values())
    if not isinstance(tensors, dict) and not takes_any and len(tensors) != len(fn_args(function)):
        raise at_user_line(
            RuntimeError(
                "In TPUEstimatorSpec.%s, length of tensors %d does not match method args of the function, which takes %d."
                % (name, len(tensors), len(fn_args(function)))
            )
        )


def _called(call: Any) -> Any:
    function, tensors = call
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class _TPUEstimatorSpec(NamedTuple):
    mode: Any
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: Any
    export_outputs: Any
    scaffold_fn: Any
    host_call: Any
    training_hooks: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class TPUEstimatorSpec(_TPUEstimatorSpec):
    """The tensors and operations of a model. eval_metrics and host_call are pairs of a function and the tensors that it gets, as a list or a dict."""

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: Any = None,
        export_outputs: Any = None,
        scaffold_fn: Optional[Callable[[], Any]] = None,
        host_call: Any = None,
        training_hooks: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> "TPUEstimatorSpec":
        for name, call in (("eval_metrics", eval_metrics), ("host_call", host_call)):
            if call is not None:
                _checked_call(name, call)
        hooks = [tuple(given or ()) for given in (training_hooks, evaluation_hooks, prediction_hooks)]
        for hook in sum(hooks, ()):
            if not isinstance(hook, SessionRunHook):
                raise at_user_line(TypeError("All hooks must be SessionRunHook instances, given: %s" % (hook,)))
        return super().__new__(cls, mode, predictions, loss, train_op, eval_metrics, export_outputs, scaffold_fn, host_call, *hooks)

    def as_estimator_spec(self) -> EstimatorSpec:
        """What an Estimator takes: the functions are called."""
        measures = None if self.eval_metrics is None else _called(self.eval_metrics)
        of_host = () if self.host_call is None else (_HostCallHook(_called(self.host_call)),)
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op,
            measures,
            self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            training_hooks=self.training_hooks + of_host,
            evaluation_hooks=self.evaluation_hooks + of_host,
            prediction_hooks=self.prediction_hooks + of_host,
        )


class ExamplesPerSecondHook(StepCounterHook):
    """Records how many steps and examples there are a second."""

    def __init__(
        self,
        batch_size: Optional[int],
        every_n_steps: Optional[int] = 100,
        every_n_secs: Optional[float] = None,
        output_dir: Optional[str] = None,
        summary_writer: Any = None,
    ) -> None:
        super().__init__(every_n_steps, every_n_secs, output_dir, summary_writer)
        self._batch_size = batch_size

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        super()._log_and_record(elapsed_steps, elapsed_time, global_step)
        if self._batch_size is not None:
            self._record("examples/sec", self._batch_size * elapsed_steps / elapsed_time, global_step)


def _set(params: Any, key: str, value: Any) -> None:
    """Sets a parameter of a dict, or of HParams."""
    if not hasattr(params, "set_hparam"):
        params[key] = value
    elif key in params:
        params.set_hparam(key, value)
    else:
        params.add_hparam(key, value)


class TPUEstimator(Estimator):
    """An Estimator whose functions learn their batch size from params["batch_size"]. With use_tpu=False it works; there are no TPUs."""

    def __init__(
        self,
        model_fn: Any = None,
        model_dir: Optional[str] = None,
        config: Optional[RunConfig] = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: Optional[int] = None,
        eval_batch_size: Optional[int] = None,
        predict_batch_size: Optional[int] = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: Any = None,
    ) -> None:
        del batch_axis  # batches are not divided
        if not isinstance(config, RunConfig):
            raise at_user_line(ValueError("`config` must be provided with type `tpu_config.RunConfig`"))
        if params is not None and any(key in params for key in _RESERVED):
            raise at_user_line(ValueError("%s are reserved keys but existed in params %s." % (list(_RESERVED), params)))
        if embedding_config_spec is not None:
            raise at_user_line(NotImplementedError("embedding_config_spec is not provided: use tf.nn.embedding_lookup or feature columns in model_fn."))
        if not export_to_cpu:
            raise at_user_line(NotImplementedError("export_to_cpu=False is not provided: there are no TPUs to export models to."))
        if use_tpu and train_batch_size is None:
            raise at_user_line(ValueError("`train_batch_size` cannot be `None`"))
        self._batch_sizes = {ModeKeys.TRAIN: train_batch_size, ModeKeys.EVAL: eval_batch_size, ModeKeys.PREDICT: predict_batch_size}
        for mode, size in self._batch_sizes.items() if use_tpu else ():
            if size is not None:
                _positive(size, "batch size (%s)" % mode)
        self._use_tpu, self._eval_on_tpu, self._export_to_tpu = use_tpu, eval_on_tpu, export_to_tpu
        self._has_input = False  # whether the model that is built next gets what an input function made, or is exported
        self._log_every, self._loop = config.log_step_count_steps, config.tpu_config.iterations_per_loop
        _check_arguments(model_fn, params)
        if "params" not in fn_args(model_fn):
            raise at_user_line(
                ValueError("model_fn (%s) does not include params argument, required by TPUEstimator to pass batch size as params['batch_size']" % model_fn)
            )
        super().__init__(self._with_batch_size(model_fn), model_dir, config.replace(log_step_count_steps=None), params or {}, warm_start_from)

    def _refuse_tpu(self, mode: str) -> None:
        if self._use_tpu and (mode != ModeKeys.EVAL or self._eval_on_tpu):
            raise at_user_line(
                RuntimeError("Cannot find any TPU cores in the system: there are none. Give TPUEstimator use_tpu=False, which runs on this machine.")
            )

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        self._refuse_tpu(mode)
        names = fn_args(input_fn)
        if "params" not in names:
            raise at_user_line(
                ValueError('input_fn (%s) does not include params argument, required by TPUEstimator to pass batch size as params["batch_size"]' % input_fn)
            )
        params = self.params
        if self._batch_sizes[mode] is not None:
            _set(params, "batch_size", self._batch_sizes[mode])
        given: Dict[str, Any] = {"params": params, "config": self.config, "mode": mode}
        self._has_input = True
        with get_default_graph().device("/cpu:0"):
            return input_fn(**{key: value for key, value in given.items() if key in names})

    def _with_batch_size(self, model_fn: Callable[..., Any]) -> Callable[..., EstimatorSpec]:
        names = fn_args(model_fn)

        def model_of_mode(features: Any, labels: Any, mode: str, config: Any, params: Any) -> Any:
            exported, self._has_input = not self._has_input, False
            if exported and self._export_to_tpu and mode == ModeKeys.PREDICT:
                tf_logging.warning("The model is exported for CPUs alone: there are no TPUs (export_to_tpu=False).")
            size = self._batch_sizes[mode]
            if size is not None and not exported:
                _set(params, "batch_size", size)
            _set(params, "use_tpu", False)
            if "labels" not in names and labels is not None:
                raise at_user_line(ValueError("model_fn does not take labels, but input_fn returns labels."))
            given = {"labels": labels, "mode": mode, "config": config, "params": params}
            tf_logging.info("Running %s on CPU", mode)
            spec = model_fn(features=features, **{key: value for key, value in given.items() if key in names})
            if isinstance(spec, TPUEstimatorSpec):
                spec = spec.as_estimator_spec()
            if isinstance(spec, EstimatorSpec) and self._log_every is not None:
                spec = spec._replace(training_hooks=(*spec.training_hooks, self._speed_hook(size)))
            return spec

        return model_of_mode

    def _speed_hook(self, size: Optional[int]) -> ExamplesPerSecondHook:
        length, in_seconds = _iterations(self._loop)
        steps = None if in_seconds else math.ceil(self._log_every / length)
        return ExamplesPerSecondHook(size, steps, length if in_seconds else None, self._model_dir if self._config.save_summary_steps else None)
