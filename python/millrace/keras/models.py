# SPDX-License-Identifier: Apache-2.0
"""tf.keras.Model and Sequential: layers that are trained together."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras import callbacks as callback_module
from millrace.keras import objectives, optimizers
from millrace.keras.engine import Input, InputLayer, Layer, listed, nodes_between, one_or_all
from millrace.ops import array_ops, gen_ops, math_ops


class Model(Layer):
    """What leads from inputs to outputs."""

    def __init__(self, inputs: Any = None, outputs: Any = None, name: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(name=name)
        self.optimizer: Any = None
        self._functions: Dict[str, Any] = {}
        self.history: Any = None
        self.stop_training = False
        if inputs is None:
            raise at_user_line(NotImplementedError("Models that are subclasses are not provided: use Model(inputs, outputs) or Sequential."))
        self._connect(listed(inputs), listed(outputs))

    def _connect(self, inputs: List[Any], outputs: List[Any]) -> None:
        self.inputs, self.outputs, self.built = inputs, outputs, True
        self._nodes = nodes_between(inputs, outputs)
        seen: List[Any] = [t._keras_history.layer for t in inputs if hasattr(t, "_keras_history")]
        seen += [n.layer for n in self._nodes]
        self.layers = list(dict.fromkeys(seen))

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """The outputs for other inputs."""
        known = {id(t): x for t, x in zip(self.inputs, listed(inputs))}
        for node in self._nodes:
            values = [known[id(t)] for t in node.inputs]
            arguments = {k: v for k, v in node.arguments.items() if k != "_many"}
            made = node.layer(values if node.arguments.get("_many") else values[0], **arguments)
            known.update((id(t), x) for t, x in zip(node.outputs, listed(made)))
        return one_or_all([known[id(t)] for t in self.outputs])

    # ---- weights ----

    @property
    def trainable_weights(self) -> List[Any]:
        """Those that are trained."""
        return [w for layer in self.layers for w in layer.trainable_weights] if self.trainable else []

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The others."""
        return [w for layer in self.layers for w in (layer.non_trainable_weights if self.trainable else layer.weights)]

    @property
    def weights(self) -> List[Any]:
        """All, layer by layer."""
        return [w for layer in self.layers for w in layer.weights]

    @property
    def losses(self) -> List[Any]:
        """What regularizers add to the loss."""
        return [v for layer in self.layers for v in layer.losses]

    input = property(lambda self: one_or_all(self.inputs), doc="Its inputs.")
    output = property(lambda self: one_or_all(self.outputs), doc="Its outputs.")
    input_shape = property(lambda self: one_or_all([K.int_shape(t) for t in self.inputs]), doc="The shapes of its inputs.")
    output_shape = property(lambda self: one_or_all([K.int_shape(t) for t in self.outputs]), doc="The shapes of its outputs.")

    def get_layer(self, name: Optional[str] = None, index: Optional[int] = None) -> Any:
        """A layer by name or place."""
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise at_user_line(ValueError("No such layer: %s" % name))

    def _saver(self) -> Any:
        from millrace.train.saver import Saver
        if "saver" not in self._functions:
            self._functions["saver"] = Saver({w.op.name: w for w in self.weights}, max_to_keep=None)
        return self._functions["saver"]

    def save_weights(self, filepath: str, overwrite: bool = True, save_format: Optional[str] = None) -> None:
        """Writes a checkpoint of TensorFlow's form."""
        if str(filepath).endswith((".h5", ".hdf5", ".keras")) or save_format == "h5":
            raise at_user_line(NotImplementedError("HDF5 files are not provided: save_weights without .h5 writes a checkpoint."))
        self._saver().save(K.get_session(), filepath, write_meta_graph=False, write_state=False)

    def load_weights(self, filepath: str, by_name: bool = False) -> None:
        """Reads what save_weights wrote."""
        if str(filepath).endswith((".h5", ".hdf5", ".keras")):
            raise at_user_line(NotImplementedError("HDF5 files are not provided: load a checkpoint that save_weights wrote."))
        self._saver().restore(K.get_session(), filepath)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Not provided."""
        raise at_user_line(NotImplementedError("Model.save is not provided: use save_weights, and build the model again before load_weights."))

    to_json = to_yaml = save

    def summary(self, line_length: Optional[int] = None, positions: Any = None, print_fn: Any = None) -> None:
        """Prints its layers."""
        show = print_fn or print
        show("%s\n%-28s %-25s %s\n%s" % ("_" * 65, "Layer (type)", "Output Shape", "Param #", "=" * 65))
        for layer in self.layers:
            show("%-28s %-25s %d" % (("%s (%s)" % (layer.name, type(layer).__name__))[:28], str(layer.output_shape)[:25], layer.count_params()))
        trained = sum(K.count_params(w) for w in self.trainable_weights)
        show("%s\nTotal params: %s\nTrainable params: %s\nNon-trainable params: %s\n%s" % (
            "=" * 65, format(self.count_params(), ","), format(trained, ","), format(self.count_params() - trained, ","), "_" * 65))

    # ---- training ----

    def compile(self, optimizer: Any, loss: Any = None, metrics: Any = None, loss_weights: Any = None, sample_weight_mode: Any = None,
                weighted_metrics: Any = None, target_tensors: Any = None, **unused: Any) -> None:
        """Chooses how it is trained."""
        if loss is None:
            raise at_user_line(ValueError("Missing loss."))
        self.optimizer = optimizers.get(optimizer)
        names = [t._keras_history.layer.name for t in self.outputs]
        by_output = [loss[n] for n in names] if isinstance(loss, dict) else list(loss) if isinstance(loss, (list, tuple)) else [loss] * len(names)
        self.loss, self._losses_of, self.output_names = loss, [objectives.get(v) for v in by_output], names
        shares = [loss_weights.get(n, 1.0) for n in names] if isinstance(loss_weights, dict) else listed(loss_weights) or [1.0] * len(names)
        self._targets = [array_ops.placeholder(K.floatx() if f is not objectives.sparse_categorical_crossentropy else "int64", [None] * max(K.ndim(t) or 1, 1)
                                               if f is not objectives.sparse_categorical_crossentropy else None, name=n + "_target")
                         for t, n, f in zip(self.outputs, names, self._losses_of)]
        self._share = array_ops.placeholder_with_default(np.ones([1], np.float32), [None], name="sample_weights")
        parts = [self._mean(f(y, t)) for f, y, t in zip(self._losses_of, self._targets, self.outputs)]
        self.total_loss = gen_ops.add_n([part * np.float32(share) for part, share in zip(parts, shares)] + self.losses)
        self.metrics_names, self._measures = ["loss"], [self.total_loss]
        if len(parts) > 1:
            self.metrics_names += [n + "_loss" for n in names]
            self._measures += parts
        for i, (n, f, y, t) in enumerate(zip(names, self._losses_of, self._targets, self.outputs)):
            for metric in listed(metrics.get(n) if isinstance(metrics, dict) else metrics):
                accuracy = metric in ("accuracy", "acc")
                function: Callable[..., Any] = objectives.accuracy_for(f, t) if accuracy else objectives.get(metric)
                name = "acc" if accuracy else metric if isinstance(metric, str) else metric.__name__
                self.metrics_names.append(name if len(names) == 1 else "%s_%s" % (n, name))
                self._measures.append(math_ops.reduce_mean(function(y, t)))
        self.metrics, self._functions = listed(metrics), {k: v for k, v in self._functions.items() if k == "saver"}

    def _mean(self, each: Any) -> Any:
        rank = K.ndim(each) or 1
        if rank > 1:
            each = math_ops.reduce_mean(each, list(range(1, rank)))
        return math_ops.reduce_mean(each * self._share)

    def _operations(self) -> Any:
        """What a training step runs."""
        if "train" not in self._functions:
            updates = [u for layer in self._all_layers() for u in layer.updates]
            self._functions["train"] = [self.optimizer.get_updates(self.total_loss, self.trainable_weights), updates]
        return self._functions["train"]

    def _all_layers(self) -> Iterator[Any]:
        stack = list(self.layers)
        while stack:
            layer = stack.pop()
            yield layer
            stack.extend(getattr(layer, "layers", None) or ([layer.layer] if hasattr(layer, "layer") else []))

    def _feeds(self, x: Any, y: Any = None, weights: Any = None, training: bool = False) -> Dict[Any, Any]:
        feeds = dict(zip(self.inputs, x))
        if y is not None:
            for target, value, output, loss in zip(self._targets, y, self.outputs, self._losses_of):
                if value.ndim == (K.ndim(output) or 0) - 1 and loss is not objectives.sparse_categorical_crossentropy:
                    value = np.expand_dims(value, -1)
                feeds[target] = value
            if weights is not None:
                feeds[self._share] = weights
        phase = K.learning_phase()
        if not isinstance(phase, (bool, int)):
            feeds[phase] = training
        return feeds

    def _arrays(self, given: Any, names: List[str], what: str) -> List[Any]:
        if isinstance(given, dict):
            given = [given[n] for n in names]
        arrays = [np.asarray(a) for a in (given if isinstance(given, (list, tuple)) and len(names) > 1 or isinstance(given, list) and len(given) == 1
                                          and hasattr(given[0], "shape") else [given])]
        if len(arrays) != len(names):
            raise at_user_line(ValueError("Error when checking model %s: expected %d arrays, got %d" % (what, len(names), len(arrays))))
        return arrays

    def _data(self, x: Any, y: Any = None) -> Any:
        if y is not None and self.optimizer is None:
            raise at_user_line(RuntimeError("You must compile a model before training/testing. Use `model.compile(optimizer, loss)`."))
        inputs = self._arrays(x, [t._keras_history.layer.name for t in self.inputs], "input")
        targets = None if y is None else self._arrays(y, self.output_names, "target")
        for array, tensor in zip(inputs, self.inputs):
            if not tensor.get_shape().is_compatible_with(array.shape):
                raise at_user_line(ValueError("Error when checking input: expected %s to have shape %s but got array with shape %s" % (
                    tensor._keras_history.layer.name, K.int_shape(tensor)[1:], array.shape[1:])))
        if len({len(a) for a in [*inputs, *(targets or [])]}) > 1:
            raise at_user_line(ValueError("Input arrays should have the same number of samples as target arrays. Found %s" % sorted(
                {len(a) for a in [*inputs, *(targets or [])]})))
        return inputs, targets

    def _weighed(self, y: List[Any], sample_weight: Any, class_weight: Any) -> Any:
        if class_weight is not None:
            classes = y[0].argmax(-1) if y[0].ndim > 1 and y[0].shape[-1] > 1 else y[0].ravel()
            by_class = np.array([class_weight.get(int(c), 1.0) for c in classes], np.float32)
            return by_class if sample_weight is None else by_class * np.asarray(sample_weight, np.float32)
        return None if sample_weight is None else np.asarray(sample_weight, np.float32)

    def fit(self, x: Any = None, y: Any = None, batch_size: Optional[int] = None, epochs: int = 1, verbose: int = 1, callbacks: Any = None,
            validation_split: float = 0.0, validation_data: Any = None, shuffle: Any = True, class_weight: Any = None, sample_weight: Any = None,
            initial_epoch: int = 0, steps_per_epoch: Optional[int] = None, validation_steps: Optional[int] = None, nb_epoch: Optional[int] = None,
            **unused: Any) -> Any:
        """Trains on arrays; its History."""
        inputs, targets = self._data(x, y)
        weights = self._weighed(targets, sample_weight, class_weight)
        if validation_data is None and validation_split:
            at = int(len(inputs[0]) * (1 - validation_split))
            validation_data = [a[at:] for a in inputs], [a[at:] for a in targets]
            inputs, targets, weights = [a[:at] for a in inputs], [a[:at] for a in targets], None if weights is None else weights[:at]
        count, size = len(inputs[0]), batch_size or 32

        def batches() -> Iterator[Any]:
            order = np.random.permutation(count) if shuffle else np.arange(count)
            for i in range(0, count, size):
                at = order[i:i + size]
                yield [a[at] for a in inputs], [a[at] for a in targets], None if weights is None else weights[at]
        return self._loop(batches, nb_epoch or epochs, verbose, callbacks, validation_data, initial_epoch, size, steps_per_epoch or -(-count // size))

    def _loop(self, batches: Callable[[], Iterator[Any]], epochs: int, verbose: int, callbacks: Any, validation_data: Any, first: int, size: int,
              steps: int) -> Any:
        operations, session = self._operations(), K.get_session()
        self.history = callback_module.History()
        watchers = [self.history, *([callback_module.ProgbarLogger()] if verbose else []), *listed(callbacks)]
        for w in watchers:
            w.set_model(self)
            w.set_params({"epochs": epochs, "batch_size": size, "verbose": verbose, "steps": steps, "metrics": self.metrics_names})
            w.on_train_begin()
        self.stop_training = False
        for epoch in range(first, epochs):
            for w in watchers:
                w.on_epoch_begin(epoch)
            totals, seen = np.zeros(len(self._measures)), 0
            for i, (x, y, weights) in enumerate(batches()):
                for w in watchers:
                    w.on_batch_begin(i, {"batch": i, "size": len(x[0])})
                values = session.run([self._measures, operations], self._feeds(x, y, weights, True))[0]
                totals, seen = totals + np.array(values) * len(x[0]), seen + len(x[0])
                for w in watchers:
                    w.on_batch_end(i, {"batch": i, "size": len(x[0]), **dict(zip(self.metrics_names, values))})
                if self.stop_training:
                    break
            logs = dict(zip(self.metrics_names, totals / max(seen, 1)))
            if validation_data is not None:
                found = listed(self.evaluate(validation_data[0], validation_data[1], size, 0))
                logs.update(("val_" + n, v) for n, v in zip(self.metrics_names, found))
            for w in watchers:
                w.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        for w in watchers:
            w.on_train_end()
        return self.history

    def evaluate(self, x: Any = None, y: Any = None, batch_size: Optional[int] = None, verbose: int = 1, sample_weight: Any = None,
                 steps: Optional[int] = None) -> Any:
        """The loss and the metrics."""
        inputs, targets = self._data(x, y)
        weights = self._weighed(targets, sample_weight, None)
        session, size, totals = K.get_session(), batch_size or 32, np.zeros(len(self._measures))
        for i in range(0, len(inputs[0]), size):
            part = [a[i:i + size] for a in inputs]
            values = session.run(self._measures, self._feeds(part, [a[i:i + size] for a in targets], None if weights is None else weights[i:i + size]))
            totals += np.array(values) * len(part[0])
        return one_or_all([float(v) for v in totals / max(len(inputs[0]), 1)])

    def predict(self, x: Any, batch_size: Optional[int] = None, verbose: int = 0, steps: Optional[int] = None) -> Any:
        """The outputs."""
        inputs, _ = self._data(x)
        session, size = K.get_session(), batch_size or 32
        made = [session.run(self.outputs, self._feeds([a[i:i + size] for a in inputs])) for i in range(0, len(inputs[0]), size)]
        return one_or_all([np.concatenate(parts) for parts in zip(*made)]) if made else np.zeros([0])

    def predict_classes(self, x: Any, batch_size: Optional[int] = None, verbose: int = 0) -> Any:
        """The most probable classes."""
        made = self.predict(x, batch_size)
        return made.argmax(-1) if made.shape[-1] > 1 else (made > 0.5).astype("int32")

    predict_proba = predict

    def train_on_batch(self, x: Any, y: Any, sample_weight: Any = None, class_weight: Any = None) -> Any:
        """One step; the loss and the metrics."""
        inputs, targets = self._data(x, y)
        operations = self._operations()
        feeds = self._feeds(inputs, targets, self._weighed(targets, sample_weight, class_weight), True)
        return one_or_all(list(K.get_session().run([self._measures, operations], feeds)[0]))

    def test_on_batch(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
        """The loss and the metrics of one batch."""
        return self.evaluate(x, y, len(self._data(x)[0][0]), 0, sample_weight)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs of one batch."""
        return self.predict(x, len(self._data(x)[0][0]))

    def fit_generator(self, generator: Any, steps_per_epoch: Optional[int] = None, epochs: int = 1, verbose: int = 1, callbacks: Any = None,
                      validation_data: Any = None, validation_steps: Any = None, class_weight: Any = None, initial_epoch: int = 0, **unused: Any) -> Any:
        """Trains on what a generator, or a sequence of batches, gives."""
        source = generator if hasattr(generator, "__next__") else None
        steps = steps_per_epoch if steps_per_epoch is not None else len(generator)

        def batches() -> Iterator[Any]:
            for i in range(steps):
                given = next(source) if source is not None else generator[i]
                x, y = self._data(*given[:2])
                yield x, y, self._weighed(y, given[2] if len(given) > 2 else None, class_weight)
        if validation_data is not None and hasattr(validation_data, "__next__"):
            found = [next(validation_data) for _ in range(validation_steps or 1)]
            validation_data = np.concatenate([b[0] for b in found]), np.concatenate([b[1] for b in found])
        return self._loop(batches, epochs, verbose, callbacks, validation_data, initial_epoch, 0, steps)


class Sequential(Model):
    """Layers one after the other."""

    def __init__(self, layers: Any = None, name: Optional[str] = None) -> None:
        Layer.__init__(self, name=name or K.unique_name("sequential"))
        self.optimizer, self._functions, self.history, self.stop_training = None, {}, None, False
        self.layers: List[Any] = []
        self.inputs, self.outputs = [], []
        for layer in layers or []:
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Appends a layer."""
        if not hasattr(layer, "nodes"):
            raise at_user_line(TypeError("The added layer must be an instance of class Layer. Found: %s" % (layer,)))
        if not self.outputs:
            if isinstance(layer, InputLayer):
                start = layer.nodes[0].outputs[0]
                self._connect_all([start], [start], [])
                return
            if isinstance(layer, Model) and layer.inputs:
                start = Input(batch_shape=K.int_shape(layer.inputs[0]))
            elif layer.batch_input_shape is not None:
                start = Input(batch_shape=layer.batch_input_shape, dtype=layer.dtype)
            else:
                self.layers.append(layer)  # its input is not known yet
                return
            waiting, self.layers = self.layers, []
            if waiting:
                raise at_user_line(ValueError("The first layer in a Sequential model must get an `input_shape` argument."))
            self._connect_all([start], [layer(start)], [layer])
            return
        made = layer(self.outputs[0])
        if isinstance(made, list):
            raise at_user_line(TypeError("All layers in a Sequential model should have a single output tensor."))
        self._connect_all(self.inputs, [made], [*self.layers, layer])

    def _connect_all(self, inputs: List[Any], outputs: List[Any], layers: List[Any]) -> None:
        self.inputs, self.outputs, self.built, self._nodes = inputs, outputs, True, nodes_between(inputs, outputs)
        self.layers = layers

    def _data(self, x: Any, y: Any = None) -> Any:
        if not self.outputs and self.layers:
            self._begin(np.asarray(x))
        return super()._data(x, y)

    def build(self, input_shape: Any = None) -> None:
        """Gives the first layer its input."""
        if not self.outputs:
            self._begin(np.zeros([1, *input_shape[1:]]))

    def _begin(self, example: Any) -> None:
        """The shape of the first data, where no layer has said it."""
        waiting, self.layers = self.layers, []
        start = Input(batch_shape=(None, *example.shape[1:]))
        self._connect_all([start], [start], [])
        for layer in waiting:
            self.add(layer)
        if self._late is not None:
            self.compile(**self._late)

    _late: Any = None

    def compile(self, optimizer: Any, loss: Any = None, metrics: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Chooses how it is trained."""
        if not self.outputs:
            self._late = {"optimizer": optimizer, "loss": loss, "metrics": metrics, **kwargs}
            return
        super().compile(optimizer, loss, metrics, **kwargs)

    def pop(self) -> None:
        """Takes the last layer away."""
        if not self.layers:
            raise at_user_line(TypeError("There are no layers in the model."))
        last = self.layers.pop()
        self._connect_all(self.inputs, list(last.nodes[-1].inputs), self.layers)


def load_model(*args: Any, **kwargs: Any) -> Any:
    """Not provided."""
    raise at_user_line(NotImplementedError("load_model is not provided: build the model, then use load_weights."))


model_from_json = load_model
