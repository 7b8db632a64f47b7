# SPDX-License-Identifier: Apache-2.0
"""A model function with its training loop, its checkpoints and its evaluation."""
from __future__ import annotations

import copy
import inspect
import os
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace import metrics, summary, tf_logging
from millrace.estimator.run_config import RunConfig
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework import errors
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, add_to_collection, get_collection
from millrace.framework.random_seed import set_random_seed
from millrace.ops import control_flow_ops
from millrace.train.global_step import create_global_step
from millrace.train.hooks import CheckpointSaverHook, LoggingTensorHook, NanTensorHook, StopAtStepHook
from millrace.train.monitored_session import ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession
from millrace.train.saver import NewCheckpointReader, Saver, latest_checkpoint


def _arguments(function: Any) -> List[str]:
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return ["features", "labels", "mode", "params", "config"]
    return list(parameters)


def _examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, dict):
        yield from batch
        return
    sizes = {len(v) for v in batch.values()}
    if len(sizes) != 1:
        raise at_user_line(ValueError("Batch length of predictions should be same; got %s" % sorted(sizes)))
    for i in range(sizes.pop()):
        yield {key: value[i] for key, value in batch.items()}


class Estimator:
    """Trains, evaluates and asks the model that model_fn(features, labels, mode, params, config) builds."""

    def __init__(self, model_fn: Callable[..., EstimatorSpec], model_dir: Optional[str] = None, config: Optional[RunConfig] = None, params: Any = None,
                 warm_start_from: Any = None) -> None:
        if warm_start_from is not None:
            raise at_user_line(NotImplementedError("warm_start_from is not provided yet: restore with a Scaffold's init_fn."))
        if config is not None and not hasattr(config, "save_summary_steps"):
            raise at_user_line(ValueError("config must be an instance of RunConfig, but provided %s." % (config,)))
        self._config = copy.copy(config or RunConfig())
        folder = model_dir or self._config.model_dir
        if folder is None:
            folder = tempfile.mkdtemp()
            tf_logging.warning("Using temporary folder as model directory: %s", folder)
        self._model_dir = os.fspath(folder)
        self._config._model_dir = self._model_dir
        self._model_fn, self._params = model_fn, copy.deepcopy(params) if params is not None else {}

    model_dir = property(lambda self: self._model_dir, doc="The folder of checkpoints and event files.")
    config = property(lambda self: copy.copy(self._config), doc="Its RunConfig.")
    params = property(lambda self: copy.deepcopy(self._params), doc="What model_fn gets as params.")
    model_fn = property(lambda self: self._model_fn, doc="The function that builds the model.")

    def latest_checkpoint(self) -> Optional[str]:
        """The newest checkpoint, or None."""
        return latest_checkpoint(self._model_dir)

    def get_variable_names(self) -> List[str]:
        """The variables in the newest checkpoint."""
        return sorted(self._reader().get_variable_to_shape_map())

    def get_variable_value(self, name: str) -> Any:
        """A variable's value in the newest checkpoint."""
        return self._reader().get_tensor(name[:-2] if name.endswith(":0") else name)

    def train(self, input_fn: Callable[..., Any], hooks: Any = None, steps: Optional[int] = None, max_steps: Optional[int] = None,
              saving_listeners: Any = None) -> "Estimator":
        """Trains for `steps` more steps, up to step `max_steps`, or to the end of the input."""
        if steps is not None and max_steps is not None:
            raise at_user_line(ValueError("Can not provide both steps and max_steps."))
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise at_user_line(ValueError("Must specify %s > 0, given: %s" % (name, value)))
        if max_steps is not None and self._step_of(self.latest_checkpoint()) >= max_steps:
            tf_logging.info("Skipping training since max_steps has already saved.")
            return self
        hooks = list(hooks or [])
        if steps is not None or max_steps is not None:
            hooks.append(StopAtStepHook(steps, max_steps))
        with self._graph().as_default():
            loss = self._train_graph(input_fn, hooks, list(saving_listeners or ()))
        tf_logging.info("Loss for final step: %s.", loss)
        return self

    def _train_graph(self, input_fn: Any, hooks: List[Any], listeners: List[Any]) -> Any:
        config, step = self._config, create_global_step()
        spec = self._build(input_fn, ModeKeys.TRAIN)
        if spec.loss not in get_collection(GraphKeys.LOSSES):
            add_to_collection(GraphKeys.LOSSES, spec.loss)
        summary.scalar("loss", spec.loss)
        hooks = [NanTensorHook(spec.loss), LoggingTensorHook({"loss": spec.loss, "step": step}, every_n_iter=config.log_step_count_steps or 100),
                 *hooks, *spec.training_hooks]
        if spec.scaffold.saver is None:
            spec.scaffold.saver = Saver(max_to_keep=config.keep_checkpoint_max, keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours)
        own = [h for h in [*hooks, *spec.training_chief_hooks] if isinstance(h, CheckpointSaverHook)]
        if config.save_checkpoints_secs or config.save_checkpoints_steps:
            own = own or [CheckpointSaverHook(self._model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps, scaffold=spec.scaffold)]
            hooks += [h for h in own if h not in hooks and h not in spec.training_chief_hooks]
        if listeners and not own:
            raise at_user_line(ValueError("saving_listeners need a CheckpointSaverHook: set save_checkpoints_steps or save_checkpoints_secs."))
        if listeners:
            own[0]._listeners = list(own[0]._listeners or ()) + listeners
        loss = None
        with MonitoredTrainingSession(config.master, True, self._model_dir, spec.scaffold, hooks, spec.training_chief_hooks, save_checkpoint_secs=0,
                                      save_summaries_steps=config.save_summary_steps, config=config.session_config,
                                      log_step_count_steps=config.log_step_count_steps) as session:
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
        return loss

    def evaluate(self, input_fn: Callable[..., Any], steps: Optional[int] = None, hooks: Any = None, checkpoint_path: Optional[str] = None,
                 name: Optional[str] = None) -> Dict[str, Any]:
        """The metrics over `steps` batches, or all."""
        if steps is not None and steps <= 0:
            raise at_user_line(ValueError("Must specify steps > 0, given: %s" % steps))
        path = self._checkpoint(checkpoint_path)
        with self._graph().as_default() as graph:
            step = create_global_step()
            spec = self._build(input_fn, ModeKeys.EVAL)
            measures = dict(spec.eval_metric_ops)
            if "loss" in measures:
                raise at_user_line(ValueError("Metric with name \"loss\" is not allowed, because Estimator already defines a default metric with that name"))
            measures["loss"] = metrics.mean(spec.loss)
            update = control_flow_ops.group(*[u for _, u in measures.values()])
            values: Any = {key: value for key, (value, _) in measures.items()}
            values["global_step"] = step
            tf_logging.info("Starting evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
            with MonitoredSession(ChiefSessionCreator(spec.scaffold, config=self._config.session_config, checkpoint_filename_with_path=path),
                                  [*(hooks or ()), *spec.evaluation_hooks]) as session:
                count = 0
                try:
                    while not session.should_stop() and (steps is None or count < steps):
                        session.run(update)
                        count += 1
                except errors.OutOfRangeError:
                    pass
                results = session._tf_sess().run(values)
            self._write(results, os.path.join(self._model_dir, "eval_" + name if name else "eval"), graph)
        tf_logging.info("Saving dict for global step %d: %s", results["global_step"], ", ".join("%s = %s" % (k, v) for k, v in sorted(results.items())))
        return results  # type: ignore[no-any-return]

    def predict(self, input_fn: Callable[..., Any], predict_keys: Any = None, hooks: Any = None, checkpoint_path: Optional[str] = None,
                yield_single_examples: bool = True) -> Iterator[Any]:
        """The predictions, one example at a time."""
        path = self._checkpoint(checkpoint_path)
        with self._graph().as_default():
            create_global_step()
            spec = self._build(input_fn, ModeKeys.PREDICT)
            wanted = spec.predictions
            if predict_keys:
                keys = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
                wanted = {k: v for k, v in wanted.items() if k in keys}
                if not wanted:
                    raise at_user_line(ValueError("Expected to run at least one output from %s, provided %s." % (list(spec.predictions), keys)))
            session = MonitoredSession(ChiefSessionCreator(spec.scaffold, config=self._config.session_config, checkpoint_filename_with_path=path),
                                       [*(hooks or ()), *spec.prediction_hooks])
        # Between two examples the caller's graph is the default one again.
        try:
            while not session.should_stop():
                try:
                    made = session.run(wanted)
                except errors.OutOfRangeError:
                    break
                yield from _examples(made) if yield_single_examples else [made]
        finally:
            session.close()

    def export_savedmodel(self, export_dir_base: str, serving_input_receiver_fn: Callable[[], Any], assets_extra: Any = None, as_text: bool = False,
                          checkpoint_path: Optional[str] = None, strip_default_attrs: bool = False) -> bytes:
        """Writes the model for serving into a folder named after the time; its path."""
        from millrace import saved_model
        from millrace.framework.session import Session
        path = self._checkpoint(checkpoint_path)
        with self._graph().as_default():
            create_global_step()
            receiver = serving_input_receiver_fn()
            spec = self._call(receiver.features, None, ModeKeys.PREDICT)
            if not spec.export_outputs:
                raise at_user_line(ValueError("export_outputs must be defined in the EstimatorSpec to export a model."))
            tensors = receiver.receiver_tensors if isinstance(receiver.receiver_tensors, dict) else {"input": receiver.receiver_tensors}
            signatures = {key: output.signature(tensors) for key, output in spec.export_outputs.items()}
            if len(signatures) == 1:
                signatures.setdefault(saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY, next(iter(signatures.values())))
            with Session(config=self._config.session_config) as session:
                (spec.scaffold.saver or Saver()).restore(session, path)
                folder = os.path.join(export_dir_base, str(int(time.time())))
                builder = saved_model.builder.SavedModelBuilder(folder)
                builder.add_meta_graph_and_variables(session, [saved_model.tag_constants.SERVING], signatures)
                builder.save(as_text)
        return folder.encode()

    export_saved_model = export_savedmodel

    # ---- parts ----

    def _reader(self) -> Any:
        return NewCheckpointReader(self._checkpoint(None))

    def _checkpoint(self, given: Optional[str]) -> str:
        path = given or self.latest_checkpoint()
        if not path:
            raise at_user_line(ValueError("Could not find trained model in model_dir: %s." % self._model_dir))
        return path

    @staticmethod
    def _step_of(checkpoint: Optional[str]) -> int:
        return int(NewCheckpointReader(checkpoint).get_tensor("global_step")) if checkpoint else 0

    def _graph(self) -> Graph:
        graph = Graph()
        if self._config.tf_random_seed is not None:
            with graph.as_default():
                set_random_seed(self._config.tf_random_seed)
        return graph

    def _build(self, input_fn: Any, mode: str) -> EstimatorSpec:
        given = {"mode": mode, "params": self.params, "config": self.config}
        made = input_fn(**{key: value for key, value in given.items() if key in _arguments(input_fn)})
        features, labels = made if isinstance(made, (tuple, list)) else (made, None)
        return self._call(features, None if mode == ModeKeys.PREDICT else labels, mode)

    def _call(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        names = _arguments(self._model_fn)
        given = {"labels": labels, "mode": mode, "params": self.params, "config": self.config}
        if "labels" not in names and labels is not None:
            raise at_user_line(ValueError("model_fn does not take labels, but input_fn returns labels."))
        spec = self._model_fn(features, **{key: value for key, value in given.items() if key in names})
        if not isinstance(spec, EstimatorSpec):
            raise at_user_line(ValueError("model_fn should return an EstimatorSpec."))
        return spec

    @staticmethod
    def _write(results: Dict[str, Any], folder: str, graph: Graph) -> None:
        from millrace.protos.definitions import Summary  # type: ignore[attr-defined]
        message = Summary()
        for key, value in results.items():
            if key != "global_step" and getattr(value, "ndim", 0) == 0 and not isinstance(value, (bytes, str)):
                message.value.add(tag=key, simple_value=float(value))
        writer = summary.FileWriterCache.get(folder)
        writer.add_summary(message, int(results["global_step"]))
        writer.flush()
