# SPDX-License-Identifier: Apache-2.0
"""Training, evaluation and prediction over many batches."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras import callbacks as callback_module
from millrace.keras.engine import composites
from millrace.keras.engine import training_data as data
from millrace.keras.engine import training_streams as streams
from millrace.layers.nodes import listed, one_or_all


def _rows(array: Any, at: Any) -> Any:
    if array is None:
        return None
    if composites.is_composite(array):
        return composites.rows_of(array, at)
    made = array[at]
    return made.toarray() if hasattr(made, "toarray") else made


class _Sums:
    """The mean of the loss over batches, by their numbers of examples, and the last values of metrics, which count over batches themselves."""

    def __init__(self) -> None:
        self.total, self.seen = np.float64(0), 0
        self.metrics: Optional[List[Any]] = None

    def add(self, values: Any, size: int) -> None:
        """Counts a batch."""
        self.total += np.float64(values[0]) * size
        self.seen += size
        self.metrics = list(values[1:])

    def means(self) -> List[Any]:
        """The loss and metrics so far."""
        if self.metrics is None:
            raise at_user_line(ValueError("Empty training data."))
        return [self.total / max(1, self.seen), *self.metrics]


def _is_validated(epoch: int, frequency: Any) -> bool:
    """Whether a model is validated after an epoch, counted from 1: every so many epochs, or after those of a list."""
    if isinstance(frequency, int):
        if frequency < 1:
            raise at_user_line(ValueError("`validation_freq` can not be less than 1."))
        return epoch % frequency == 0
    if not hasattr(frequency, "__contains__"):
        raise at_user_line(ValueError("`validation_freq` must be an Integer or `collections_abc.Container` (e.g. list, tuple, etc.)"))
    return epoch in frequency


def _check_rows(outputs: List[Any], count: int) -> None:
    """ValueError unless each output has a row for each example."""
    for made in outputs:
        if hasattr(made, "shape") and tuple(made.shape[:1]) != (count,):
            raise at_user_line(
                ValueError(
                    "Mismatch between expected batch size and model output batch size. Output shape = %s, expected output shape = shape %s"
                    % (made.shape, (count, *made.shape[1:]))
                )
            )


class TrainingLoops(streams.StreamLoops):
    """fit, evaluate and predict, of arrays and of what gives batches."""

    _watching: Any = None  # the callbacks of what is under way

    def _run_step(self: Any, x: Any, y: Any, weights: Any, training: bool) -> Any:
        others = {} if training else self._fetches_of_tests
        fetch = [self._measures, self._operations() if training else self._extra_updates(), list(others)]
        values, _, found = K.get_session().run(fetch, self._feeds(x, y, weights, training))
        for take, value in zip(others.values(), found):
            take(value)
        return values

    def _new_sums(self: Any) -> _Sums:
        """What measures are gathered in from the start; metrics that count themselves start again."""
        self.reset_metrics()
        return _Sums()

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
        equal_batches: bool = False,
    ) -> Any:
        """`batches` gives the (inputs, targets, weights) of an epoch, `validate` the measures of other data, of the last batch's size, after the epochs of validation_freq.
        With equal_batches each counts as one example, however many it has."""
        count_mode = "samples" if samples is not None else "steps"
        told = callback_module.configure_callbacks(
            callbacks, self, validate is not None, size, epochs, None if samples is not None else steps, samples, verbose=0
        )
        bar = self._progress(count_mode, told.params, verbose)
        self._watching = told
        self._operations()
        self.stop_training = told.model.stop_training = False
        told.on_train_begin({})
        for epoch in range(first, epochs):
            told.on_epoch_begin(epoch, {})
            bar.on_epoch_begin(epoch, {})
            sums, i, count = self._new_sums(), -1, 1
            for i, (x, y, weights) in enumerate(batches()):
                count = 1 if equal_batches else next((a.shape[0] for a in [*x, *y] if a is not None), 1)
                logs: Dict[str, Any] = {"batch": i, "size": count}
                told.on_train_batch_begin(i, logs)
                bar.on_batch_begin(i, logs)
                values = self._run_step(x, y, weights, True)
                sums.add(values, count)
                logs.update(zip(self.metrics_names, values))
                told.on_train_batch_end(i, logs)
                bar.on_batch_end(i, logs)
                if self._is_stopped(told):
                    break
            if steps is None:  # they are counted now
                steps = told.params["steps"] = bar.progbar.target = i + 1
            epoch_logs = dict(zip(self.metrics_names, sums.means()))
            if validate is not None and _is_validated(epoch + 1, validation_freq) and not self._is_stopped(told):
                epoch_logs.update(zip(["val_" + n for n in self.metrics_names], listed(validate(count))))
            told.on_epoch_end(epoch, epoch_logs)
            bar.on_epoch_end(epoch, epoch_logs)
            if self._is_stopped(told):
                break
        told.on_train_end({})
        self._watching = None
        return self.history

    def _is_stopped(self: Any, told: Any) -> bool:
        return bool(self.stop_training or told.model.stop_training)

    def _progress(self: Any, count_mode: str, params: Dict[str, Any], verbose: int) -> Any:
        """What prints how far it has got."""
        bar = callback_module.ProgbarLogger(count_mode, self.metrics_names[1:] if hasattr(self, "metrics_names") else ())
        bar.set_params({**params, "verbose": verbose})
        bar.on_train_begin()
        return bar

    def _each(self: Any, mode: str, items: Any, run: Callable[[Any], Any], bar: Any = None) -> Iterator[Any]:
        """(what `run` makes of it, its size) of each (batch, size) of an evaluation ("test") or prediction ("predict"), of which callbacks are told."""
        told = self._watching if self._watching is not None else callback_module.CallbackList()
        getattr(told, "on_%s_begin" % mode)({})
        if bar is not None:
            bar.on_epoch_begin(0, {})
        for i, (item, size) in enumerate(items):
            logs: Dict[str, Any] = {"batch": i, "size": size}
            getattr(told, "on_%s_batch_begin" % mode)(i, logs)
            made = run(item)
            logs.update({"outputs": made} if mode == "predict" else zip(self.metrics_names, made))
            getattr(told, "on_%s_batch_end" % mode)(i, logs)
            if bar is not None:
                bar.on_batch_begin(i, logs)
                bar.on_batch_end(i, logs)
            yield made, size
        getattr(told, "on_%s_end" % mode)({})

    def _measured(self: Any, items: Any, verbose: int = 0, samples: Any = None, steps: Any = None) -> List[Any]:
        """The means of the measures over batches of an evaluation."""
        bar = self._progress("steps" if samples is None else "samples", self._parameters_of(samples, steps, "test"), verbose) if verbose else None
        sums = self._new_sums()
        for values, size in self._each("test", items, lambda batch: self._run_step(*batch, False), bar):
            sums.add(values, size)
        means = sums.means()
        if bar is not None:
            bar.on_epoch_end(0, dict(zip(self.metrics_names, means)))
        return means

    def _parameters_of(self: Any, samples: Any, steps: Any, mode: str) -> Dict[str, Any]:
        names = list(self.metrics_names) if mode == "test" else []
        return {"epochs": 1, "batch_size": None, "steps": steps, "samples": samples, "do_validation": False, "metrics": names}

    def _watched_by(self: Any, callbacks: Any, mode: str, run: Callable[[], Any]) -> Any:
        """Runs an evaluation or prediction with callbacks."""
        self._watching = callback_module.configure_callbacks(callbacks, self, mode=mode, verbose=0)
        try:
            return run()
        finally:
            self._watching = None

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
        self._check_call("fit")
        if data.has_tensors(x, y, sample_weight):
            x, y, sample_weight = data.symbolic(x, y, sample_weight, steps_per_epoch, "steps_per_epoch"), None, None
        if streams.is_stream(x):
            data.check_stream(x, y, sample_weight, validation_split, batch_size)
            return self.fit_generator(
                x,
                steps_per_epoch,
                epochs,
                verbose,
                callbacks,
                validation_data,
                validation_steps,
                validation_freq,
                class_weight,
                max_queue_size,
                workers,
                use_multiprocessing,
                initial_epoch=initial_epoch,
            )
        if validation_data is None and validation_steps is not None:
            raise at_user_line(ValueError("`validation_steps` should not be specified if `validation_data` is None."))
        size = self._size_of_batches(batch_size, x)
        if validation_data is not None and not streams.is_stream(validation_data):
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
            held = [[_rows(a, slice(at, None)) for a in part] for part in (inputs, targets, weights)]
            inputs, targets, weights = ([_rows(a, slice(at)) for a in part] for part in (inputs, targets, weights))
            self._validation_arrays = held
            validate = lambda _: self._evaluate_arrays(*held, size, None)
        present = [a for a in [*inputs, *targets] if a is not None]
        count = present[0].shape[0] if present else 0
        self._needs_steps(present, steps_per_epoch, "steps_per_epoch")
        if verbose:
            first = next((a for a in (self._validation_arrays or [[]])[0] if a is not None), None)
            streams.print_what_is_trained(steps_per_epoch or count, None if first is None else first.shape[0], "samples")

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
            equal_batches=bool(steps_per_epoch),
        )

    def _validation(self: Any, given: Any, size: Optional[int], steps: Any) -> Any:
        """A function that gives the measures of other data, of a number: the size of arrays' batches where `size` is None; each batch counts the same then."""
        if data.has_tensors(given):
            given = data.symbolic(given[0], given[1], given[2] if len(given) > 2 else None, steps, "validation_steps")
        if streams.is_stream(given):
            self._steps_of(given, steps, "validation_steps")
            return lambda _: self._evaluate_stream(given, steps, "validation_steps")
        x, y, weights = self._standardize_user_data(given[0], given[1], given[2] if len(given) > 2 else None, None, False, size)
        self._validation_arrays = x, y, weights
        return lambda trained: self._evaluate_arrays(x, y, weights, size or trained, steps, equal_batches=size is None)

    def _evaluate_arrays(self: Any, x: Any, y: Any, weights: Any, size: int, steps: Any, verbose: int = 0, equal_batches: bool = False) -> List[Any]:
        present = [a for a in [*x, *y] if a is not None]
        self._needs_steps(present, steps, "steps")
        if steps or not present:  # tensors give other values each time
            return self._measured([((x, y, weights), 1)] * (steps or 1), verbose, steps=steps or 1)
        count = present[0].shape[0]
        parts = self._array_batches(x, y, weights, size, np.arange(count))
        sized = ((part, 1 if equal_batches else next(a.shape[0] for a in [*part[0], *part[1]] if a is not None)) for part in parts)
        return self._measured(sized, verbose, samples=count)

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
        self._check_call("evaluate")
        if data.has_tensors(x, y, sample_weight):
            x, y, sample_weight = data.symbolic(x, y, sample_weight, steps, "steps"), None, None
        if streams.is_stream(x):
            data.check_stream(x, y, sample_weight, batch_size=batch_size)
            return self.evaluate_generator(x, steps, callbacks, max_queue_size, workers, use_multiprocessing, verbose)
        size = self._size_of_batches(batch_size, x)
        x, y, weights = self._standardize_user_data(x, y, sample_weight, None, False, size)
        return one_or_all(self._watched_by(callbacks, "test", lambda: self._evaluate_arrays(x, y, weights, size, steps, verbose)))

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
        self._check_call("predict")
        if data.has_tensors(x):
            x = data.symbolic(x, None, None, steps, "steps")
        if streams.is_stream(x):
            data.check_stream(x, batch_size=batch_size)
            return self.predict_generator(x, steps, callbacks, max_queue_size, workers, use_multiprocessing, verbose)
        return self._watched_by(callbacks, "predict", lambda: self._predict_arrays(x, batch_size, steps, verbose))

    def _predict_arrays(self: Any, x: Any, batch_size: Optional[int], steps: Optional[int], verbose: int) -> Any:
        self._build_for(x)
        size = self._size_of_batches(batch_size, x)
        inputs = self._standardized_inputs(x if self._feed_input_names else None)
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
        whole = bool(steps) or not present
        count: Any = None if whole else present[0].shape[0]
        starts = [] if whole else range(0, max(count, 1), size)
        parts = [(inputs, 1)] * (steps or 1) if whole else (([_rows(a, slice(i, i + size)) for a in inputs], min(size, count - i)) for i in starts)
        bar = self._progress("steps" if whole else "samples", self._parameters_of(count, steps, "predict"), verbose) if verbose else None
        made = []
        for outputs, rows in self._each("predict", parts, lambda part: session.run(fetch, self._feeds(part))[0], bar):
            made.append(outputs)
            if not whole:
                _check_rows(outputs, rows)
        if bar is not None:
            bar.on_epoch_end(0, {})
        return one_or_all([composites.joined([m[k] for m in made]) for k in range(len(self.outputs))])
