# SPDX-License-Identifier: Apache-2.0
"""tf.keras.callbacks.TensorBoard."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

import numpy as np

from millrace import summary
from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.keras import backend as K
from millrace.keras.callback_base import Callback
from millrace.keras.engine import training_data
from millrace.layers.nodes import listed
from millrace.ops import array_ops
from millrace.ops.variables import Variable
from millrace.protos import text_format
from millrace.protos.definitions import ProjectorConfig, Summary  # type: ignore[attr-defined]
from millrace.train.saver import Saver


class TensorBoard(Callback):
    """Writes the loss and metrics of each epoch as summaries, with update_freq "batch" or a number also those of batches, each time that so many samples
    were trained. With histogram_freq histograms of weights and outputs are written at each batch of validation, with write_grads and write_images also
    gradients and pictures of weights; with embeddings_freq what embeddings make of embeddings_data, for TensorBoard's projector. Profiles are not written,
    whatever profile_batch says: tf.profiler.record makes traces.
    """

    def __init__(
        self,
        log_dir: str = "./logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        embeddings_freq: int = 0,
        embeddings_layer_names: Any = None,
        embeddings_metadata: Any = None,
        embeddings_data: Any = None,
        update_freq: Any = "epoch",
        profile_batch: int = 2,
    ) -> None:
        del profile_batch  # as the class says
        self.log_dir, self.histogram_freq, self.batch_size = log_dir, histogram_freq, batch_size
        self.write_graph, self.write_grads, self.write_images = write_graph, write_grads, write_images
        self.embeddings_freq, self.embeddings_layer_names = embeddings_freq, embeddings_layer_names
        self.embeddings_metadata, self.embeddings_data = embeddings_metadata, embeddings_data
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self.merged: Any = None
        self._samples = self._samples_written = self._batches = self._validated = 0

    def _init_writer(self, model: Any) -> None:
        del model  # its graph is the session's
        self.writer = summary.FileWriter(self.log_dir, K.get_session().graph if self.write_graph else None)

    def set_model(self, model: Any) -> None:
        """Makes the summaries, and opens the file."""
        self.model = model
        self._init_writer(model)
        if self.histogram_freq and self.merged is None:
            for layer in model.layers:
                self._summarize(layer)
        self.merged = summary.merge_all()
        if self.embeddings_freq and self.embeddings_data is not None:
            self._prepare_embeddings()

    def _summarize(self, layer: Any) -> None:
        for weight in layer.weights:
            name = weight.name.replace(":", "_")
            summary.histogram(name, weight)
            picture = _picture(weight) if self.write_images else None
            if picture is not None:
                summary.image(name, picture)
        for weight in layer.trainable_weights if self.write_grads else []:
            (gradient,) = self.model.optimizer.get_gradients(self.model.total_loss, [weight])
            if gradient is not None:
                values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
                summary.histogram("%s_grad" % weight.name.replace(":", "_"), values)
        if len(layer._inbound_nodes) == 1:
            outputs = layer.output
            for i, output in enumerate(listed(outputs)):
                summary.histogram("%s_out%s" % (layer.name, "_%d" % i if isinstance(outputs, list) else ""), output)

    def _prepare_embeddings(self) -> None:
        self.embeddings_data = training_data.standardize_input_data(self.embeddings_data, self.model.input_names)
        names = self.embeddings_layer_names or [layer.name for layer in self.model.layers if type(layer).__name__ == "Embedding"]
        self._first, self._count = array_ops.placeholder(dtypes.int32), array_ops.placeholder(dtypes.int32)
        kept: Dict[str, Any] = {}
        self._assigned: List[Any] = []
        for layer in self.model.layers:
            if layer.name in names:
                width = int(np.prod(layer.output.get_shape().as_list()[1:]))
                table: Any = Variable(np.zeros([len(self.embeddings_data[0]), width], np.float32), name=layer.name + "_embedding")
                kept[layer.name] = table
                rows = array_ops.reshape(layer.output, array_ops.stack([self._count, width]))
                self._assigned.append(table[self._first : self._first + self._count].assign(rows))
        self._saver = Saver(list(kept.values()))
        labels = dict.fromkeys(kept, self.embeddings_metadata) if isinstance(self.embeddings_metadata, str) else self.embeddings_metadata or {}
        config = ProjectorConfig()
        for name, table in kept.items():
            shown = config.embeddings.add()
            shown.tensor_name = table.name
            if name in labels:
                shown.metadata_path = labels[name]
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(text_format.MessageToString(config))

    def _fetch_callback(self, written: Any) -> None:
        self.writer.add_summary(written, self._validated)
        self._validated += 1

    def _write(self, prefix: str, logs: Optional[Dict[str, Any]], step: int) -> None:
        for name, value in (logs or {}).items():
            if name not in ("batch", "size", "num_steps"):
                message = Summary()
                message.value.add(tag=prefix + name, simple_value=float(value))
                self.writer.add_summary(message, step)
        self.writer.flush()

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes the measures of batches, where update_freq says so."""
        self._samples += (logs or {}).get("size", 1)
        if self.update_freq != "epoch" and self._samples - self._samples_written >= self.update_freq:
            self._write("batch_", logs, self._batches)
            self._samples_written = self._samples
        self._batches += 1

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Lets the validation of this epoch make the histograms, where histogram_freq says so."""
        if self.histogram_freq and epoch % self.histogram_freq == 0 and self.merged is not None:
            self.model._fetches_of_tests[self.merged] = self._fetch_callback

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes the measures of the epoch, and what embeddings make of their data."""
        self._write("epoch_", logs, epoch if self.update_freq == "epoch" else self._samples)
        if self.histogram_freq:
            self.model._fetches_of_tests.pop(self.merged, None)
        if self.embeddings_freq and self.embeddings_data is None:
            raise ValueError("To visualize embeddings, embeddings_data must be provided.")
        if self.embeddings_freq and epoch % self.embeddings_freq == 0:
            session, total = K.get_session(), len(self.embeddings_data[0])
            for first in range(0, total, self.batch_size):
                part = [array[first : first + self.batch_size] for array in self.embeddings_data]
                session.run(self._assigned, {**self.model._feeds(part), self._first: first, self._count: len(part[0])})
            self._saver.save(session, os.path.join(self.log_dir, "keras_embedding.ckpt"), epoch)

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self.writer.close()


def _picture(weight: Any) -> Any:
    """A weight as images: one of a matrix, which lies, or a vector, one for each channel of three dimensions; None of others."""
    image = array_ops.squeeze(weight)
    shape: Any = image.get_shape().as_list()
    if len(shape) == 3 and K.image_data_format() == "channels_last":
        image = array_ops.transpose(image, [2, 0, 1])
    elif len(shape) == 2 and shape[0] > shape[1]:
        image = array_ops.transpose(image)
    shape = image.get_shape().as_list()
    sizes = {1: [1, *shape, 1, 1], 2: [1, *shape, 1], 3: [*shape, 1]}.get(len(shape))
    return None if sizes is None else array_ops.reshape(image, sizes)
