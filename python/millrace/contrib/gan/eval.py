# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan.eval: how good generated images are, by the eyes of a classifier, and summaries of them."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Tuple, Union

from millrace import gfile, losses, resource_loader, summary
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_collection, name_scope
from millrace.framework.importer import import_graph_def
from millrace.ops import array_ops, functional_ops, gen_ops, image_resize, math_ops, matrix_ops, nn_ops
from millrace.protos import definitions

INCEPTION_DEFAULT_IMAGE_SIZE = 299
INCEPTION_INPUT, INCEPTION_OUTPUT, INCEPTION_FINAL_POOL = "Mul:0", "logits:0", "pool_3:0"
_Names = Union[str, List[str]]


def get_graph_def_from_disk(filename: str) -> Any:
    """The GraphDef of a file."""
    with gfile.GFile(filename, "rb") as file:
        return definitions.GraphDef.FromString(file.read())


def get_graph_def_from_resource(filename: str) -> Any:
    """The GraphDef of a file beside the program."""
    return definitions.GraphDef.FromString(resource_loader.load_resource(filename))


def preprocess_image(images: Any, height: int = INCEPTION_DEFAULT_IMAGE_SIZE, width: int = INCEPTION_DEFAULT_IMAGE_SIZE, scope: Optional[str] = None) -> Tensor:
    """Images of 0 to 255, one or several, in another size, as values from -1 to 1."""
    with name_scope(scope, "preprocess"):
        images = convert_to_tensor(images)
        single = images.get_shape().ndims == 3
        wide = math_ops.to_float(images) if not images.dtype.is_floating else images
        sized = image_resize.resize_bilinear(wide[None] if single else wide, [height, width])
        made = (sized - 128.0) / 128.0
        return made[0] if single else made


def run_image_classifier(tensor: Any, graph_def: Any, input_tensor: str, output_tensor: _Names, scope: str = "RunClassifier", dtypes: Any = None) -> Any:
    """What a frozen graph gives for images: one tensor for a name, a list for a list."""
    del dtypes  # the graph says them
    names = [output_tensor] if isinstance(output_tensor, str) else list(output_tensor)
    made: Any = import_graph_def(graph_def, {input_tensor: tensor}, names, name=scope)
    return made[0] if isinstance(output_tensor, str) else made


def run_inception(
    images: Any,
    graph_def: Any = None,
    default_graph_def_fn: Any = None,
    image_size: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    input_tensor: str = INCEPTION_INPUT,
    output_tensor: _Names = INCEPTION_OUTPUT,
) -> Any:
    """What an Inception network gives for images of -1 to 1, flat. Its frozen graph has to be given: none is fetched."""
    images = convert_to_tensor(images)
    images.get_shape().with_rank(4).assert_is_compatible_with([None, image_size, image_size, None])
    if graph_def is None:
        if default_graph_def_fn is None:
            raise at_user_line(ValueError("run_inception needs graph_def, or default_graph_def_fn: tf.contrib.gan.eval.get_graph_def_from_disk reads one."))
        graph_def = default_graph_def_fn()
    made = run_image_classifier(images, graph_def, input_tensor, output_tensor)
    flat = [array_ops.reshape(m, array_ops.stack([array_ops.shape(m)[0], -1])) for m in (made if isinstance(made, list) else [made])]
    return flat if isinstance(made, list) else flat[0]


# ---- scores ----


def _in_parts(images: Any, classifier_fn: Callable[[Any], Any], num_batches: int) -> Tensor:
    parts = array_ops.stack(array_ops.split(convert_to_tensor(images), num_batches))
    made = functional_ops.map_fn(classifier_fn, parts, dtypes.float32, parallel_iterations=1, back_prop=False, name="RunClassifier")
    return array_ops.concat(array_ops.unstack(made), 0)


def classifier_score_from_logits(logits: Any) -> Tensor:
    """exp of the mean divergence of p(y|x) from p(y) (Salimans 2016)."""
    logits = convert_to_tensor(logits)
    logits.get_shape().assert_has_rank(2)
    wide = math_ops.cast(logits, dtypes.float64)
    p = nn_ops.softmax(wide)
    each = math_ops.reduce_sum(p * (nn_ops.log_softmax(wide) - gen_ops.log(math_ops.reduce_mean(p, 0))), 1)
    return math_ops.cast(gen_ops.exp(math_ops.reduce_mean(each)), logits.dtype.base_dtype)


def classifier_score(images: Any, classifier_fn: Callable[[Any], Any], num_batches: int = 1) -> Tensor:
    """classifier_score_from_logits of what a function gives for images, in so many batches."""
    return classifier_score_from_logits(_in_parts(images, classifier_fn, num_batches))


def _root(matrix: Tensor) -> Tensor:
    """The square root of a symmetric matrix that is not negative."""
    from millrace.ops import linalg_ops

    values, vectors = linalg_ops.self_adjoint_eig(matrix)
    return matrix_ops.matmul(vectors * gen_ops.sqrt(gen_ops.maximum(values, math_ops.cast(0, values.dtype))), vectors, transpose_b=True)


def _moments(x: Tensor) -> Tuple[Tensor, Tensor]:
    mean = math_ops.reduce_mean(x, 0)
    apart = x - mean
    return mean, matrix_ops.matmul(apart, apart, transpose_a=True) / (math_ops.cast(array_ops.shape(x)[0], x.dtype) - 1)


def frechet_classifier_distance_from_activations(real_activations: Any, generated_activations: Any) -> Tensor:
    """|m - n|^2 + tr(S + T - 2 (S T)^(1/2)) of the means and covariances of activations (Heusel 2017)."""
    given = convert_to_tensor(real_activations)
    (m, s), (n, t) = (_moments(math_ops.cast(x, dtypes.float64)) for x in (given, convert_to_tensor(generated_activations)))
    root = _root(s)
    both = matrix_ops.trace(_root(matrix_ops.matmul(root, matrix_ops.matmul(t, root))))
    made = math_ops.reduce_sum(gen_ops.squared_difference(m, n)) + matrix_ops.trace(s) + matrix_ops.trace(t) - 2 * both
    return math_ops.cast(made, given.dtype.base_dtype)


def frechet_classifier_distance(real_images: Any, generated_images: Any, classifier_fn: Callable[[Any], Any], num_batches: int = 1) -> Tensor:
    """frechet_classifier_distance_from_activations of what a function gives for images, in so many batches."""
    return frechet_classifier_distance_from_activations(*(_in_parts(x, classifier_fn, num_batches) for x in (real_images, generated_images)))


inception_score = functools.partial(classifier_score, classifier_fn=functools.partial(run_inception, output_tensor=INCEPTION_OUTPUT))
frechet_inception_distance = functools.partial(frechet_classifier_distance, classifier_fn=functools.partial(run_inception, output_tensor=INCEPTION_FINAL_POOL))


# ---- summaries ----


def image_reshaper(images: Any, num_cols: Optional[int] = None) -> Tensor:
    """Images side by side in rows of num_cols (a square unless given), as one; what is missing at the end is black."""
    if isinstance(images, (list, tuple)):
        images = array_ops.stack(images, 0)
    images = convert_to_tensor(images)
    count, height, width, channels = images.get_shape().as_list()
    columns = num_cols or round(count**0.5)
    rows = -(-count // columns)
    whole = array_ops.pad(images, [[0, rows * columns - count], [0, 0], [0, 0], [0, 0]])
    grid = array_ops.transpose(array_ops.reshape(whole, [rows, columns, height, width, channels]), [0, 2, 1, 3, 4])
    return array_ops.reshape(grid, [1, rows * height, columns * width, channels])


def image_grid(input_tensor: Any, grid_shape: Tuple[int, int], image_shape: Tuple[int, int] = (32, 32), num_channels: int = 3) -> Tensor:
    """Images in a grid, as one."""
    if grid_shape[0] * grid_shape[1] != int(convert_to_tensor(input_tensor).get_shape()[0]):
        raise at_user_line(ValueError("Grid shape %s incompatible with minibatch size %s." % (grid_shape, convert_to_tensor(input_tensor).get_shape()[0])))
    return image_reshaper(array_ops.reshape(input_tensor, [-1, *image_shape, num_channels]), grid_shape[1])


def add_gan_model_summaries(gan_model: Any) -> None:
    """Histograms of the variables, and how many there are."""
    for name, variables in (("generator", gan_model.generator_variables), ("discriminator", gan_model.discriminator_variables)):
        with name_scope("%s_variables" % name):
            for variable in variables:
                summary.histogram(variable.name, variable)


def add_gan_model_image_summaries(gan_model: Any, grid_size: int = 4, model_summaries: bool = True) -> None:
    """Images of real and of generated data, grid_size^2 of each."""
    real, made = gan_model.real_data, gan_model.generated_data
    if real.get_shape().ndims != 4:
        raise at_user_line(ValueError("image summaries need data of rank 4, got %s" % real.get_shape()))
    count = grid_size**2
    with name_scope("image_summaries"):
        summary.image("real_data", image_reshaper(real[:count], grid_size), max_outputs=1)
        summary.image("generated_data", image_reshaper(made[:count], grid_size), max_outputs=1)
    if model_summaries:
        add_gan_model_summaries(gan_model)


def add_image_comparison_summaries(gan_model: Any, num_comparisons: int = 2, display_diffs: bool = False) -> None:
    """Inputs, what was made of them, and real data, side by side; with display_diffs the differences too."""
    columns = [gan_model.generator_inputs, gan_model.generated_data, gan_model.real_data]
    for x in columns:
        if isinstance(x, (list, dict)) or x.get_shape().ndims != 4:
            raise at_user_line(ValueError("image comparisons need inputs and data of rank 4, got %s" % (x,)))
    if display_diffs:
        columns.append(math_ops.abs(gan_model.generated_data - gan_model.real_data))
    rows = [x[i] for i in range(num_comparisons) for x in columns]
    summary.image("image_comparison", image_reshaper(rows, len(columns)), max_outputs=1)


def add_regularization_loss_summaries(gan_model: Any) -> None:
    """What regularizers add to each loss."""
    for name, scope in (("generator_regularization_loss", gan_model.generator_scope), ("discriminator_regularization_loss", gan_model.discriminator_scope)):
        if get_collection(GraphKeys.REGULARIZATION_LOSSES, scope.name):
            summary.scalar(name, losses.get_regularization_loss(scope.name))
