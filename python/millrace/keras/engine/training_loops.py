# SPDX-License-Identifier: Apache-2.0
"""Training, evaluation and prediction over many batches."""

from __future__ import annotations

import itertools
import random
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from millrace import tf_logging
from millrace.framework.errors import OutOfRangeError, at_user_line
from millrace.keras import backend as K
from millrace.keras import callbacks as callback_module
from millrace.keras.engine import training_data as data
from millrace.layers.nodes import listed, one_or_all


def _is_stream(x: Any) -> bool:
    """Whether it gives batches by itself: a data set, an iterator, a generator, a Sequence."""
    return (
        hasattr(x, "make_one_shot_iterator")
        or hasattr(x, "__next__")
        or hasattr(x, "get_next")
        or (hasattr(x, "__getitem__") and hasattr(x, "__len__") and hasattr(x, "on_epoch_end"))
    )


def _rows(array: Any, at: Any) -> Any:
    if array is None:
        return None
    made = array[at]
    return made.toarray() if hasattr(made, "toarray") else made


class _Sums:
    """Means of measures over batches, by their numbers of examples; of those that count themselves the last value."""

    def __init__(self, counted: Any = ()) -> None:
        self.total: Any = None
        self.last: Dict[int, float] = {}
        self.counted, self.seen = counted, 0

    def add(self, values: Any, size: int) -> None:
        """Counts a batch."""
        values = np.array([float(v) for v in values])
        self.last.update((i, float(values[i])) for i in self.counted)
        self.total = values * size if self.total is None else self.total + values * size
        self.seen += size

    def means(self) -> List[float]:
        """The means so far."""
        return [] if self.total is None else [self.last.get(i, float(v)) for i, v in enumerate(self.total / max(1, self.seen))]


def _is_validated(epoch: int, frequency: Any) -> bool:
    """Whether a model is validated after an epoch, counted from 1: every so many epochs, or after those of a list."""
    if isinstance(frequency, int):
        if frequency < 1:
            raise at_user_line(ValueError("`validation_freq` can not be less than 1."))
        return epoch % frequency == 0
    if not hasattr(frequency, "__contains__"):
        raise at_user_line(ValueError("`validation_freq` must be an Integer or `collections_abc.Container` (e.g. list, tuple, etc.)"))
    return epoch in frequency


def _loss_or_all(means: List[float]) -> Any:
    """A loss without metrics as a scalar of NumPy, else the list."""
    return np.float64(means[0]) if len(means) == 1 else means


def _check_rows(outputs: List[Any], count: int) -> None:
    """ValueError unless each output has a row for each example."""
    for made in outputs:
        if hasattr(made, "shape") and made.shape[:1] != (count,):
            raise at_user_line(
                ValueError(
                    "Mismatch between expected batch size and model output batch size. Output shape = %s, expected output shape = shape %s"
                    % (made.shape, (count, *made.shape[1:]))
                )
            )


class TrainingLoops:
    """fit, evaluate and predict, of arrays and of what gives batches."""

    def _run_step(self: Any, x: Any, y: Any, weights: Any, training: bool) -> Any:
        fetch = [self._measures, self._operations() if training else self._extra_updates()]
        return K.get_session().run(fetch, self._feeds(x, y, weights, training))[0]

    def _new_sums(self: Any) -> _Sums:
        """What measures are gathered in from the start; metrics that count themselves start again."""
        self.reset_metrics()
        return _Sums(getattr(self, "_counting", None) or ())

    def _watchers(self: Any, callbacks: Any, epochs: int, size: Any, steps: Any, verbose: int, samples: Any, validate: bool) -> List[Any]:
        self.history = callback_module.History()
        watchers = [
            callback_module.BaseLogger(),
            *([callback_module.ProgbarLogger("samples" if samples is not None else "steps")] if verbose else []),
            *listed(callbacks),
            self.history,
        ]
        owner = getattr(self, "callback_model", None) or self
        names = list(self.metrics_names)
        self._parameters = parameters = {
            "epochs": epochs,
            "batch_size": size,
            "verbose": verbose,
            "steps": steps,
            "samples": samples,
            "do_validation": validate,
            "metrics": names + (["val_" + n for n in names] if validate else []),
        }
        for w in watchers:
            w.set_model(owner)
            w.set_params(parameters)
        self._watching = watchers
        return watchers

    def _loop(
        self: Any,
        batches: Callable[[], Iterator[Any]],
        epochs: int,
        verbose: int,
        callbacks: Any,
        validate: Any,
        first: int,
        size: Any,
        steps: Any,
        samples: Any = None,
        validation_freq: Any = 1,
    ) -> Any:
        """`batches` gives the (inputs, targets, weights) of an epoch, `validate` the measures of other data after the epochs of validation_freq."""
        watchers = self._watchers(callbacks, epochs, size, steps, verbose, samples, validate is not None)
        self._operations()
        self.stop_training = False
        for w in watchers:
            w.on_train_begin({})
        for epoch in range(first, epochs):
            for layer in [self] if self.stateful else []:
                layer.reset_states()
            for w in watchers:
                w.on_epoch_begin(epoch, {})
            sums, i = self._new_sums(), -1
            for i, (x, y, weights) in enumerate(batches()):
                count = next((a.shape[0] for a in [*x, *y] if a is not None), 1)
                logs: Dict[str, Any] = {"batch": i, "size": count}
                for w in watchers:
                    w.on_train_batch_begin(i, logs)
                values = self._run_step(x, y, weights, True)
                sums.add(values, count)
                logs.update(zip(self.metrics_names, values))
                for w in watchers:
                    w.on_train_batch_end(i, logs)
                if self.stop_training:
                    break
            if steps is None:  # they are counted now
                steps = self._parameters["steps"] = i + 1
            epoch_logs = dict(zip(self.metrics_names, sums.means()))
            if validate is not None and _is_validated(epoch + 1, validation_freq):
                epoch_logs.update(zip(["val_" + n for n in self.metrics_names], listed(validate())))
            for w in watchers:
                w.on_epoch_end(epoch, epoch_logs)
            if self.stop_training:
                break
        for w in watchers:
            w.on_train_end({})
        self._watching = []
        return self.history

    def _told(self: Any, kind: str, items: Any) -> Iterator[Any]:
        """Batches of an evaluation ("test") or prediction ("predict"), with what callbacks are told before and after each."""

        def tell(what: str, *args: Any) -> None:
            for w in getattr(self, "_watching", []):
                getattr(w, "on_%s_%s" % (kind, what))(*args)

        tell("begin", {})
        for i, item in enumerate(items):
            tell("batch_begin", i, {"batch": i})
            yield item
            tell("batch_end", i, {"batch": i})
        tell("end", {})

    def _watched_by(self: Any, callbacks: Any, run: Callable[[], Any]) -> Any:
        """Runs with callbacks other than those of a training."""
        self._watching = listed(callbacks)
        for w in self._watching:
            w.set_model(self)
        try:
            return run()
        finally:
            self._watching = []

    # ---- arrays ----

    def _size_of_batches(self: Any, asked: Optional[int], x: Any) -> int:
        self._build_for(x)
        shape = next(iter(getattr(self, "_feed_input_shapes", None) or []), None)
        return data.size_of_batches(asked, shape[0] if shape else None)

    @staticmethod
    def _needs_steps(present: Any, steps: Any, what: str) -> None:
        if not present and steps is None:
            raise at_user_line(
                ValueError(
                    "If your data is in the form of symbolic tensors, you should specify the `%s` argument (instead of the batch_size "
                    "argument, because symbolic tensors are expected to produce batches of input data)." % what
                )
            )

    def _array_batches(self: Any, x: Any, y: Any, weights: Any, size: int, order: Any) -> Iterator[Any]:
        for i in range(0, len(order), size):
            at = order[i : i + size]
            yield [_rows(a, at) for a in x], [_rows(a, at) for a in y], [_rows(a, at) for a in weights]

    def fit(
        self: Any,
        x: Any = None,
        y: Any = None,
        batch_size: Optional[int] = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: Optional[int] = None,
        validation_steps: Optional[int] = None,
        nb_epoch: Optional[int] = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        **unused: Any,
    ) -> Any:
        """Trains on arrays, a data set or tensors; its History. Validates after every validation_freq-th epoch, or after those of a list, counted from 1."""
        if unused:
            raise at_user_line(TypeError("Unrecognized keyword arguments: %s" % sorted(unused)))
        epochs = nb_epoch or epochs
        if data.has_tensors(x, y, sample_weight):
            x, y, sample_weight = data.symbolic(x, y, sample_weight, steps_per_epoch, "steps_per_epoch"), None, None
        if _is_stream(x):
            data.check_stream(x, y, sample_weight, validation_split, batch_size)
            return self.fit_generator(
                x,
                steps_per_epoch,
                epochs,
                verbose,
                callbacks,
                validation_data,
                validation_steps,
                class_weight,
                max_queue_size,
                workers,
                use_multiprocessing,
                initial_epoch=initial_epoch,
                validation_freq=validation_freq,
            )
        if validation_data is None and validation_steps is not None:
            raise at_user_line(ValueError("`validation_steps` should not be specified if `validation_data` is None."))
        size = self._size_of_batches(batch_size, x)
        if validation_data is not None and not _is_stream(validation_data):
            if not isinstance(validation_data, (list, tuple)) or len(validation_data) not in (2, 3):
                raise at_user_line(ValueError("When passing validation_data, it must contain 2 (x_val, y_val) or 3 (x_val, y_val, val_sample_weights) items"))
        inputs, targets, weights = self._standardize_user_data(x, y, sample_weight, class_weight, False, size)
        validate: Any = None
        self._validation_arrays = None
        if validation_data is not None:
            validate = self._validation(validation_data, size, validation_steps)
        elif validation_split and 0.0 < validation_split < 1.0:
            count = next(a.shape[0] for a in [*inputs, *targets] if a is not None)
            at = int(count * (1 - validation_split))
            held = [[None if a is None else a[at:] for a in part] for part in (inputs, targets, weights)]
            inputs, targets, weights = ([None if a is None else a[:at] for a in part] for part in (inputs, targets, weights))
            self._validation_arrays = held
            validate = lambda: self._evaluate_arrays(*held, size, None)
        present = [a for a in [*inputs, *targets] if a is not None]
        count = present[0].shape[0] if present else 0
        self._needs_steps(present, steps_per_epoch, "steps_per_epoch")

        def batches() -> Iterator[Any]:
            if steps_per_epoch or not present:
                for _ in range(steps_per_epoch or 1):
                    yield inputs, targets, weights
                return
            order = np.random.permutation(count) if shuffle and shuffle != "batch" else np.arange(count)
            if shuffle == "batch":
                whole = count // size * size
                order = np.concatenate([np.random.permutation(order[:whole].reshape(-1, size)).reshape(-1), order[whole:]])
            yield from self._array_batches(inputs, targets, weights, size, order)

        return self._loop(
            batches,
            epochs,
            verbose,
            callbacks,
            validate,
            initial_epoch,
            size,
            steps_per_epoch or -(-count // size),
            None if steps_per_epoch else count,
            validation_freq,
        )

    def _validation(self: Any, given: Any, size: int, steps: Any) -> Any:
        if data.has_tensors(given):
            given = data.symbolic(given[0], given[1], given[2] if len(given) > 2 else None, steps, "validation_steps")
        if _is_stream(given):
            return lambda: self.evaluate_generator(given, steps)
        x, y, weights = self._standardize_user_data(given[0], given[1], given[2] if len(given) > 2 else None, None, False, size)
        self._validation_arrays = x, y, weights
        return lambda: self._evaluate_arrays(x, y, weights, size, steps)

    def _evaluate_arrays(self: Any, x: Any, y: Any, weights: Any, size: int, steps: Any) -> List[float]:
        sums = self._new_sums()
        present = [a for a in [*x, *y] if a is not None]
        self._needs_steps(present, steps, "steps")
        whole = bool(steps) or not present  # tensors give other values each time
        parts = [(x, y, weights)] * (steps or 1) if whole else self._array_batches(x, y, weights, size, np.arange(present[0].shape[0]))
        for part in self._told("test", parts):
            sums.add(self._run_step(*part, False), 1 if whole else next(a.shape[0] for a in [*part[0], *part[1]] if a is not None))
        return sums.means()

    def evaluate(
        self: Any,
        x: Any = None,
        y: Any = None,
        batch_size: Optional[int] = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: Optional[int] = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The loss and metrics of arrays, a data set or tensors."""
        del verbose  # no progress is drawn
        if data.has_tensors(x, y, sample_weight):
            x, y, sample_weight = data.symbolic(x, y, sample_weight, steps, "steps"), None, None
        if _is_stream(x):
            data.check_stream(x, y, sample_weight, batch_size=batch_size)
            return self._watched_by(callbacks, lambda: self.evaluate_generator(x, steps, max_queue_size, workers, use_multiprocessing))
        size = self._size_of_batches(batch_size, x)
        x, y, weights = self._standardize_user_data(x, y, sample_weight, None, False, size)
        return _loss_or_all(self._watched_by(callbacks, lambda: self._evaluate_arrays(x, y, weights, size, steps)))

    def predict(
        self: Any,
        x: Any = None,
        batch_size: Optional[int] = None,
        verbose: int = 0,
        steps: Optional[int] = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The outputs for arrays, a data set or tensors."""
        del verbose  # no progress is drawn
        if data.has_tensors(x):
            x = data.symbolic(x, None, None, steps, "steps")
        if _is_stream(x):
            data.check_stream(x, batch_size=batch_size)
            return self._watched_by(callbacks, lambda: self.predict_generator(x, steps, max_queue_size, workers, use_multiprocessing))
        return self._watched_by(callbacks, lambda: self._predict_arrays(x, batch_size, steps))

    def _predict_arrays(self: Any, x: Any, batch_size: Optional[int], steps: Optional[int]) -> Any:
        self._build_for(x)
        size = self._size_of_batches(batch_size, x)
        inputs = data.standardize_input_data(x if self._feed_input_names else None, self._feed_input_names, self._feed_input_shapes, False, "input")
        present = [a for a in inputs if a is not None]
        if len({a.shape[0] for a in present}) > 1:
            raise at_user_line(ValueError("All input arrays (x) should have the same number of samples. Got %s" % [a.shape for a in present]))
        if self.stateful and present and present[0].shape[0] > size and present[0].shape[0] % size:
            raise at_user_line(
                ValueError(
                    "In a stateful network, you should only pass inputs with a number of samples that can be divided by the batch size. "
                    "Found: %d samples. Batch size: %d." % (present[0].shape[0], size)
                )
            )
        self._needs_steps(present, steps, "steps")
        fetch, session = [self.outputs, self._extra_updates()], K.get_session()
        if steps or not present:
            parts: Any = [inputs] * (steps or 1)
        else:
            parts = ([_rows(a, slice(i, i + size)) for a in inputs] for i in range(0, max(present[0].shape[0], 1), size))
        made = []
        for part in self._told("predict", parts):
            made.append(session.run(fetch, self._feeds(part))[0])
            if present and not steps:
                _check_rows(made[-1], len(next(a for a in part if a is not None)))
        return one_or_all([np.concatenate([m[k] for m in made]) for k in range(len(self.outputs))])

    # ---- what gives batches ----

    def _stream(self: Any, source: Any, shuffle: bool = False) -> Callable[[Optional[int]], Iterator[Any]]:
        """A function of a number of batches that gives them, one after the other, going on where it stopped.

        Those of a Sequence come in a new order each time that it was gone through, if `shuffle` says so.
        """
        if hasattr(source, "make_one_shot_iterator") or hasattr(source, "get_next"):
            return self._tensors_stream(source)
        if hasattr(source, "__getitem__"):
            left: List[int] = []

            def sequence(count: Optional[int]) -> Iterator[Any]:
                for _ in range(len(source) if count is None else count):
                    if not left:
                        left.extend(reversed(range(len(source))))
                        if not left:
                            raise at_user_line(ValueError("the Sequence has no batches, but %d are wanted" % (count or 0)))
                        if shuffle:
                            random.shuffle(left)
                    yield source[left.pop()]
                    if not left:
                        source.on_epoch_end()

            return sequence
        it = iter(source)

        def generated(count: Optional[int]) -> Iterator[Any]:
            taken = 0
            while count is None or taken < count:
                try:
                    item = next(it)
                except StopIteration:
                    if count is not None:
                        raise at_user_line(ValueError("The generator ended after %d of %d batches" % (taken, count))) from None
                    return
                taken += 1
                yield item

        return generated

    def _tensors_stream(self: Any, source: Any) -> Callable[[Optional[int]], Iterator[Any]]:
        known = self.__dict__.setdefault("_iterators", {})
        if id(source) not in known:
            made = source.make_initializable_iterator() if hasattr(source, "make_initializable_iterator") else source
            known[id(source)] = (source, made, made.get_next())
        _, iterator, following = known[id(source)]
        own = iterator is not source

        def run(count: Optional[int]) -> Iterator[Any]:
            session, taken = K.get_session(), 0
            if own and count is None:
                session.run(iterator.initializer)
            while count is None or taken < count:
                try:
                    item = session.run(following)
                except OutOfRangeError:
                    if count is not None:
                        tf_logging.warning(
                            "Your dataset ran out of data; interrupting training. Make sure that your dataset can generate at least "
                            "`steps_per_epoch * epochs` batches, %d are missing in this epoch. You may need to use the repeat() function when "
                            "building your dataset.",
                            count - taken,
                        )
                        self.stop_training = True
                    return
                taken += 1
                yield item

        if own:
            K.get_session().run(iterator.initializer)
        return run

    def _taken_apart(self: Any, item: Any) -> Any:
        if not self.loss and not isinstance(item, tuple):  # what it loses comes from layers alone
            return item, None, None
        if isinstance(item, tuple) and len(item) in (2, 3):
            return (*item, None) if len(item) == 2 else item
        raise at_user_line(ValueError("Output of generator should be a tuple `(x, y, sample_weight)` or `(x, y)`. Found: %s" % str(item)[:200]))

    def fit_generator(
        self: Any,
        generator: Any,
        steps_per_epoch: Optional[int] = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_data: Any = None,
        validation_steps: Optional[int] = None,
        class_weight: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        shuffle: bool = True,
        initial_epoch: int = 0,
        validation_freq: Any = 1,
        **legacy: Any,
    ) -> Any:
        """Trains on what a generator, a Sequence or a data set gives; batches are taken one by one."""
        del workers  # batches come one by one
        del use_multiprocessing  # threads, as docs/compatibility.md says
        del max_queue_size  # batches are made as they are asked for
        epochs = legacy.pop("nb_epoch", epochs)
        unknown = set(legacy) - {"max_q_size", "pickle_safe", "nb_val_samples", "samples_per_epoch", "nb_worker"}
        if unknown:
            raise at_user_line(TypeError("Unrecognized keyword arguments: %s" % sorted(unknown)))
        stream = self._stream(generator, shuffle)
        if (
            validation_data is not None
            and not _is_stream(validation_data)
            and (not isinstance(validation_data, (tuple, list)) or len(validation_data) not in (2, 3))
        ):
            raise at_user_line(
                ValueError("validation_data should be a tuple `(val_x, val_y, val_sample_weight)` or `(val_x, val_y)`. Found: %s" % (validation_data,))
            )
        validate: Any = None
        if validation_data is not None:
            if hasattr(validation_data, "__next__") and not hasattr(validation_data, "get_next") and not validation_steps:
                raise at_user_line(ValueError("When using a generator for validation data, you must specify a value for `validation_steps`."))
            validate = self._validation(validation_data, 32, validation_steps)
        if steps_per_epoch is None and hasattr(generator, "__next__"):
            raise at_user_line(ValueError("`steps_per_epoch=None` is only valid for a Sequence or a data set: a generator does not say how long it is."))

        seen: List[Any] = []  # taken out of the stream, and not trained on yet

        def batches() -> Iterator[Any]:
            first = [seen.pop()] if seen else []
            for item in itertools.chain(first, stream(None if steps_per_epoch is None else steps_per_epoch - len(first))):
                x, y, weights = self._taken_apart(item)
                yield self._standardize_user_data(x, y, weights, class_weight, of_data_set=hasattr(generator, "make_one_shot_iterator"))

        if not hasattr(self, "_measures"):
            example = generator[0] if hasattr(generator, "__getitem__") else next(iter(stream(1)))
            if steps_per_epoch is not None and not hasattr(generator, "__getitem__"):
                seen.append(example)  # without a number of steps a data set begins anew
            self._build_for(self._taken_apart(example)[0])
        return self._loop(batches, epochs, verbose, callbacks, validate, initial_epoch, None, steps_per_epoch, validation_freq=validation_freq)

    def evaluate_generator(
        self: Any, generator: Any, steps: Optional[int] = None, max_queue_size: int = 10, workers: int = 1, use_multiprocessing: bool = False, **legacy: Any
    ) -> Any:
        """The loss and metrics of what a generator gives."""
        del workers  # batches come one by one
        del use_multiprocessing  # threads, as docs/compatibility.md says
        del max_queue_size  # batches are made as they are asked for
        sums: Any = None
        for item in self._told("test", self._stream(generator)(steps)):
            x, y, weights = self._standardize_user_data(*self._taken_apart(item), of_data_set=hasattr(generator, "make_one_shot_iterator"))
            sums = sums or self._new_sums()  # the first batch may have built the model
            sums.add(self._run_step(x, y, weights, False), next((a.shape[0] for a in [*x, *y] if a is not None), 1))
        return _loss_or_all((sums or self._new_sums()).means())

    def predict_generator(
        self: Any,
        generator: Any,
        steps: Optional[int] = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
        **legacy: Any,
    ) -> Any:
        """The outputs for what a generator gives; of tuples the first part is taken."""
        del workers  # batches come one by one
        del verbose  # no progress is drawn
        del use_multiprocessing  # threads, as docs/compatibility.md says
        del max_queue_size  # batches are made as they are asked for
        made = []
        for item in self._told("predict", self._stream(generator)(steps)):
            made.append(listed(self.predict_on_batch(item[0] if isinstance(item, tuple) else item)))
        return one_or_all([np.concatenate([m[k] for m in made]) for k in range(len(made[0]))])
