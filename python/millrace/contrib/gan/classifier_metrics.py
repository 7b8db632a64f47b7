# SPDX-License-Identifier: Apache-2.0
"""How good generated images are, by the eyes of a classifier."""

from __future__ import annotations

import functools
import os
import tarfile
import urllib.request
from typing import Any, Callable, List, Optional, Tuple, Union

from millrace import gfile, resource_loader
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.importer import import_graph_def
from millrace.ops import array_ops, functional_ops, gen_ops, image_resize, math_ops, matrix_ops, nn_ops
from millrace.protos import definitions

INCEPTION_DEFAULT_IMAGE_SIZE = 299
INCEPTION_INPUT, INCEPTION_OUTPUT, INCEPTION_FINAL_POOL = "Mul:0", "logits:0", "pool_3:0"
INCEPTION_URL = "http://download.tensorflow.org/models/frozen_inception_v1_2015_12_05.tar.gz"
INCEPTION_FROZEN_GRAPH = "inceptionv1_for_inception_score.pb"
_Names = Union[str, List[str]]


def get_graph_def_from_disk(filename: str) -> Any:
    """The GraphDef of a file."""
    with gfile.GFile(filename, "rb") as file:
        return definitions.GraphDef.FromString(file.read())


def get_graph_def_from_resource(filename: str) -> Any:
    """The GraphDef of a file beside the program."""
    return definitions.GraphDef.FromString(resource_loader.load_resource(filename))


def get_graph_def_from_url_tarball(url: str, filename: str, tar_filename: Optional[str] = None) -> Any:
    """The GraphDef of a file in a tarball, which is fetched from a URL unless it is there under tar_filename, and kept there."""
    if tar_filename is None or not os.path.exists(tar_filename):
        tar_filename, _ = urllib.request.urlretrieve(url, tar_filename)
    with tarfile.open(tar_filename, "r:gz") as tar:
        file = tar.extractfile(filename)
        if file is None:
            raise at_user_line(ValueError("%s in %s is no file." % (filename, tar_filename)))
        return definitions.GraphDef.FromString(file.read())


def _default_graph_def_fn() -> Any:
    return get_graph_def_from_url_tarball(INCEPTION_URL, INCEPTION_FROZEN_GRAPH, os.path.basename(INCEPTION_URL))


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
    default_graph_def_fn: Any = _default_graph_def_fn,
    image_size: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    input_tensor: str = INCEPTION_INPUT,
    output_tensor: _Names = INCEPTION_OUTPUT,
) -> Any:
    """What an Inception network gives for images of -1 to 1, flat. Where no graph is given default_graph_def_fn makes it: TensorFlow's is fetched once,
    into the folder that the program runs in."""
    images = convert_to_tensor(images)
    images.get_shape().with_rank(4).assert_is_compatible_with([None, image_size, image_size, None])
    if graph_def is None:
        if default_graph_def_fn is None:
            raise at_user_line(ValueError("If `graph_def` is `None`, must provide `default_graph_def_fn`: get_graph_def_from_disk reads one."))
        graph_def = default_graph_def_fn()
    made = run_image_classifier(images, graph_def, input_tensor, output_tensor)
    flat = [array_ops.reshape(m, array_ops.stack([array_ops.shape(m)[0], -1])) for m in (made if isinstance(made, list) else [made])]
    return flat if isinstance(made, list) else flat[0]


# ---- scores ----


def _in_parts(images: Any, classifier_fn: Callable[[Any], Any], num_batches: int) -> Tensor:
    parts = array_ops.stack(array_ops.split(convert_to_tensor(images), num_batches))
    made = functional_ops.map_fn(classifier_fn, parts, dtypes.float32, parallel_iterations=1, back_prop=False, name="RunClassifier")
    return array_ops.concat(array_ops.unstack(made), 0)


def _kl_divergence(p: Tensor, p_logits: Tensor, q: Tensor) -> Tensor:
    """That of each row of p, whose logits are p_logits, from q."""
    for tensor, rank in ((p, 2), (p_logits, 2), (q, 1)):
        if not tensor.dtype.is_floating:
            raise at_user_line(ValueError("Input %s must be floating type." % tensor.name))
        tensor.get_shape().assert_has_rank(rank)
    return math_ops.reduce_sum(p * (nn_ops.log_softmax(p_logits) - gen_ops.log(q)), 1)


def classifier_score_from_logits(logits: Any) -> Tensor:
    """exp of the mean divergence of p(y|x) from p(y) (Salimans 2016)."""
    logits = convert_to_tensor(logits)
    logits.get_shape().assert_has_rank(2)
    wide = math_ops.cast(logits, dtypes.float64)
    p = nn_ops.softmax(wide)
    score = gen_ops.exp(math_ops.reduce_mean(_kl_divergence(p, wide, math_ops.reduce_mean(p, 0))))
    return math_ops.cast(score, logits.dtype.base_dtype)


def classifier_score(images: Any, classifier_fn: Callable[[Any], Any], num_batches: int = 1) -> Tensor:
    """classifier_score_from_logits of what a function gives for images, in so many batches."""
    return classifier_score_from_logits(_in_parts(images, classifier_fn, num_batches))


def _root(matrix: Tensor) -> Tensor:
    """The square root of a symmetric matrix that is not negative."""
    from millrace.ops import linalg_ops

    values, vectors = linalg_ops.self_adjoint_eig(matrix)
    return matrix_ops.matmul(vectors * gen_ops.sqrt(gen_ops.maximum(values, math_ops.cast(0, values.dtype))), vectors, transpose_b=True)


def trace_sqrt_product(sigma: Any, sigma_v: Any) -> Tensor:
    """The trace of the square root of the product of two covariances: of the symmetric S^(1/2) T S^(1/2), which has the same."""
    root = _root(convert_to_tensor(sigma))
    return matrix_ops.trace(_root(matrix_ops.matmul(root, matrix_ops.matmul(sigma_v, root))))


def _moments(x: Tensor) -> Tuple[Tensor, Tensor]:
    mean = math_ops.reduce_mean(x, 0)
    apart = x - mean
    return mean, matrix_ops.matmul(apart, apart, transpose_a=True) / (math_ops.cast(array_ops.shape(x)[0], x.dtype) - 1)


def _of_activations(distance: Callable[[Tensor, Tensor], Tensor], real: Any, generated: Any) -> Tensor:
    """A distance of two lists of vectors, which is found in float64."""
    real, generated = convert_to_tensor(real), convert_to_tensor(generated)
    for given in (real, generated):
        given.get_shape().assert_has_rank(2)
    return math_ops.cast(distance(math_ops.cast(real, dtypes.float64), math_ops.cast(generated, dtypes.float64)), real.dtype.base_dtype)


def _apart(m: Tensor, n: Tensor) -> Tensor:
    return math_ops.reduce_sum(gen_ops.squared_difference(m, n))


def mean_only_frechet_classifier_distance_from_activations(real_activations: Any, generated_activations: Any) -> Tensor:
    """|m - n|^2 of the means of activations, as if the covariances were one."""
    return _of_activations(lambda a, b: _apart(math_ops.reduce_mean(a, 0), math_ops.reduce_mean(b, 0)), real_activations, generated_activations)


def diagonal_only_frechet_classifier_distance_from_activations(real_activations: Any, generated_activations: Any) -> Tensor:
    """|m - n|^2 + sum(s + t - 2 (s t)^(1/2)) of the means and variances of activations, as if those of an example had nothing to do with each other."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        (m, s), (n, t) = nn_ops.moments(a, [0]), nn_ops.moments(b, [0])
        return _apart(m, n) + math_ops.reduce_sum(s + t - 2.0 * gen_ops.sqrt(s * t))

    return _of_activations(distance, real_activations, generated_activations)


def frechet_classifier_distance_from_activations(real_activations: Any, generated_activations: Any) -> Tensor:
    """|m - n|^2 + tr(S + T - 2 (S T)^(1/2)) of the means and covariances of activations (Heusel 2017)."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        (m, s), (n, t) = _moments(a), _moments(b)
        return _apart(m, n) + matrix_ops.trace(s + t) - 2.0 * trace_sqrt_product(s, t)

    return _of_activations(distance, real_activations, generated_activations)


def frechet_classifier_distance(real_images: Any, generated_images: Any, classifier_fn: Callable[[Any], Any], num_batches: int = 1) -> Tensor:
    """frechet_classifier_distance_from_activations of what a function gives for images, in so many batches."""
    return frechet_classifier_distance_from_activations(*(_in_parts(x, classifier_fn, num_batches) for x in (real_images, generated_images)))


inception_score = functools.partial(classifier_score, classifier_fn=functools.partial(run_inception, output_tensor=INCEPTION_OUTPUT))
frechet_inception_distance = functools.partial(frechet_classifier_distance, classifier_fn=functools.partial(run_inception, output_tensor=INCEPTION_FINAL_POOL))
