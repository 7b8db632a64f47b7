# SPDX-License-Identifier: Apache-2.0
"""Summaries of GANs: images beside each other, variables, what regularizers add."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace import losses, summary
from millrace.contrib.gan.namedtuples import CycleGANModel
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, functional_ops, math_ops
from millrace.ops.variable_scope import variable_scope


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


def _assert_is_image(data: Any) -> None:
    data.get_shape().assert_has_rank(4)
    data.get_shape()[1:].assert_is_fully_defined()


def add_gan_model_summaries(gan_model: Any) -> None:
    """Histograms of the variables."""
    if isinstance(gan_model, CycleGANModel):
        for way in ("x2y", "y2x"):
            with name_scope("cyclegan_%s_summaries" % way):
                add_gan_model_summaries(getattr(gan_model, "model_" + way))
        return
    for name, variables in (("generator", gan_model.generator_variables), ("discriminator", gan_model.discriminator_variables)):
        with name_scope("%s_variables" % name):
            for variable in variables:
                summary.histogram(variable.name, variable)


def add_gan_model_image_summaries(gan_model: Any, grid_size: int = 4, model_summaries: bool = True) -> None:
    """Images of real and of generated data, grid_size^2 of each."""
    if isinstance(gan_model, CycleGANModel):
        raise at_user_line(ValueError("`add_gan_model_image_summaries` does not take CycleGANModels. Please use `add_cyclegan_image_summaries` instead."))
    for name, data in (("real_data", gan_model.real_data), ("generated_data", gan_model.generated_data)):
        _assert_is_image(data)
        height, width, channels = data.get_shape().as_list()[1:]
        summary.image(name, image_grid(data[: grid_size**2], (grid_size, grid_size), (height, width), channels), max_outputs=1)
    if model_summaries:
        add_gan_model_summaries(gan_model)


def _add_rows(rows: Any) -> None:
    """Images of each row beside each other."""
    images = [image for row in rows for image in array_ops.unstack(row)]
    summary.image("image_comparison", image_reshaper(images, len(images) // len(rows)), max_outputs=1)


def add_image_comparison_summaries(gan_model: Any, num_comparisons: int = 2, display_diffs: bool = False) -> None:
    """Inputs, below them what was made of them, then real data; with display_diffs the differences too."""
    rows = [gan_model.generator_inputs, gan_model.generated_data, gan_model.real_data]
    for data in rows:
        _assert_is_image(data)
        data.get_shape().assert_is_compatible_with(gan_model.generated_data.get_shape())
    rows = [data[:num_comparisons] for data in rows]
    if display_diffs:
        rows.append(math_ops.abs(math_ops.to_float(rows[1]) - math_ops.to_float(rows[2])))
    _add_rows(rows)


def add_cyclegan_image_summaries(cyclegan_model: Any) -> None:
    """For both ways an image, what is made of it, and that brought back."""
    if not isinstance(cyclegan_model, CycleGANModel):
        raise at_user_line(ValueError("`cyclegan_model` was not a CycleGANModel. Instead, was %s" % type(cyclegan_model)))
    x2y, y2x = cyclegan_model.model_x2y, cyclegan_model.model_y2x
    for way, model, back in (("x2y", x2y, cyclegan_model.reconstructed_x), ("y2x", y2x, cyclegan_model.reconstructed_y)):
        images = [model.generator_inputs, model.generated_data, back]
        for data in images:
            _assert_is_image(data)
        with name_scope("%s_image_comparison_summaries" % way):
            _add_rows([array_ops.concat([data[:1] for data in images], 0)])


def add_stargan_image_summaries(stargan_model: Any, num_images: int = 2, display_diffs: bool = False) -> None:
    """Images, and each brought to every domain; with display_diffs the differences below."""
    _assert_is_image(stargan_model.input_data)
    stargan_model.input_data_domain_label.get_shape().assert_has_rank(2)
    stargan_model.input_data_domain_label.get_shape()[1:].assert_is_fully_defined()
    domains = stargan_model.input_data_domain_label.get_shape()[-1].value

    def beside(image: Tensor) -> Tensor:
        images = array_ops.tile(array_ops.expand_dims(image, 0), [domains, 1, 1, 1])
        with variable_scope(stargan_model.generator_scope, reuse=True):
            made = stargan_model.generator_fn(images, array_ops.one_hot(list(range(domains)), domains))
        parts = [image, *array_ops.unstack(made, domains)]
        if display_diffs:
            parts += [array_ops.zeros_like(image), *array_ops.unstack(made - images, domains)]
        return image_reshaper(parts, domains + 1)[0]

    made = functional_ops.map_fn(beside, stargan_model.input_data[:num_images], parallel_iterations=num_images, back_prop=False, swap_memory=True)
    summary.image("stargan_image_generation", made, max_outputs=num_images)


def add_regularization_loss_summaries(gan_model: Any) -> None:
    """What regularizers add to each loss."""
    if isinstance(gan_model, CycleGANModel):
        for way in ("x2y", "y2x"):
            with name_scope("cyclegan_%s_regularization_loss_summaries" % way):
                add_regularization_loss_summaries(getattr(gan_model, "model_" + way))
        return
    for name, scope in (("generator_regularization_loss", gan_model.generator_scope), ("discriminator_regularization_loss", gan_model.discriminator_scope)):
        if scope:
            summary.scalar(name, losses.get_regularization_loss(scope.name))
