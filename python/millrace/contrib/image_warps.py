# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.image: images whose places are moved, each by a flow, or a few by hand and the others between them by a spline."""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, matrix_ops

_TINY = 1e-10


def _interpolate_bilinear(grid: Any, query_points: Any, name: str = "interpolate_bilinear", indexing: str = "ij") -> Tensor:
    """The values of [batch, height, width, channels] at points [batch, n, 2], between the four places around each; beyond the edges the edge's."""
    if indexing not in ("ij", "xy"):
        raise at_user_line(ValueError("Indexing mode must be 'ij' or 'xy'"))
    with name_scope(name):
        grid, points = convert_to_tensor(grid), convert_to_tensor(query_points)
        if grid.get_shape().ndims != 4:
            raise at_user_line(ValueError("Grid must be 4 dimensional. Received size: %s" % grid.get_shape()))
        if points.get_shape().ndims != 3 or not points.get_shape()[2].is_compatible_with(2):
            raise at_user_line(ValueError("Query points must be 3 dimensional, of size 2 in dim 2. Received size: %s" % points.get_shape()))
        sizes = array_ops.shape(grid)
        wide = [check_ops.assert_greater_equal(sizes[1 + i], 2, message="Grid %s must be at least 2." % what) for i, what in enumerate(("height", "width"))]
        with control_dependencies(wide):
            parts = array_ops.unstack(points, axis=2)
        lows, shares = [], []
        for axis, at in enumerate(parts if indexing == "ij" else parts[::-1]):
            last = math_ops.cast(sizes[1 + axis] - 2, points.dtype)
            low = gen_ops.minimum(gen_ops.maximum(gen_ops.floor(at), 0.0), last)
            lows.append(math_ops.cast(low, dtypes.int32))
            shares.append(array_ops.expand_dims(math_ops.clip_by_value(math_ops.cast(at - low, grid.dtype), 0.0, 1.0), 2))
        rows = array_ops.reshape(grid, array_ops.stack([-1, sizes[3]]))
        first = array_ops.expand_dims(gen_ops.range(0, sizes[0], 1) * sizes[1] * sizes[2], 1)

        def along_a_row(down: int) -> Tensor:
            left = first + (lows[0] + down) * sizes[2] + lows[1]
            left_values, right_values = array_ops.gather(rows, left), array_ops.gather(rows, left + 1)
            return left_values + shares[1] * (right_values - left_values)

        top = along_a_row(0)
        made = top + shares[0] * (along_a_row(1) - top)
        made.set_shape([grid.get_shape()[0], points.get_shape()[1], grid.get_shape()[3]])
        return made


def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> Tensor:
    """image [batch, height, width, channels], whose pixel at (i, j) is that at (i, j) - flow[b, i, j], between pixels."""
    with name_scope(name):
        image, flow = convert_to_tensor(image), convert_to_tensor(flow)
        sizes = array_ops.shape(image)
        down, right = (gen_ops.range(0, sizes[axis], 1) for axis in (1, 2))
        across, along = array_ops.meshgrid(right, down)
        places = math_ops.cast(array_ops.stack([along, across], 2), flow.dtype)
        points = array_ops.reshape(array_ops.expand_dims(places, 0) - flow, array_ops.stack([sizes[0], sizes[1] * sizes[2], 2]))
        made = array_ops.reshape(_interpolate_bilinear(image, points), sizes)
        made.set_shape(image.get_shape())
        return made


def _squared_distances(x: Any, y: Any) -> Tensor:
    of_x, of_y = (math_ops.reduce_sum(gen_ops.square(v), 2) for v in (x, y))
    return array_ops.expand_dims(of_x, 2) - 2 * matrix_ops.matmul(x, y, adjoint_b=True) + array_ops.expand_dims(of_y, 1)


def _radial(squares: Any, order: int) -> Tensor:
    """r^order of squared distances, times log(r) where the order is even."""
    some = gen_ops.maximum(squares, _TINY)
    if order % 2:
        return gen_ops.sqrt(some) if order == 1 else gen_ops.pow(some, 0.5 * order)
    power = squares if order == 2 else gen_ops.square(squares) if order == 4 else gen_ops.pow(some, 0.5 * order)
    return 0.5 * power * gen_ops.log(some)


def interpolate_spline(
    train_points: Any, train_values: Any, query_points: Any, order: int, regularization_weight: float = 0.0, name: str = "interpolate_spline"
) -> Tensor:
    """The values [batch, m, k] at query_points [batch, m, d] of a polyharmonic spline through train_values [batch, n, k] at train_points
    [batch, n, d] (order 1: linear, 2: thin plate); with regularization_weight it only passes near them."""
    with name_scope(name):
        points, values, asked = (convert_to_tensor(v) for v in (train_points, train_values, query_points))
        depth, width = points.get_shape()[-1].value, values.get_shape()[-1].value
        for size, what in ((depth, "input points (d)"), (width, "output values (k)")):
            if size is None:
                raise at_user_line(ValueError("The dimensionality of the %s must be statically-inferrable." % what))
        sizes = array_ops.shape(points)
        between = _radial(_squared_distances(points, points), order)
        if regularization_weight > 0:
            between = between + regularization_weight * gen_ops.matrix_diag(array_ops.ones_like(points[..., 0]))
        flat = array_ops.concat([points, array_ops.ones_like(points[..., :1])], 2)
        nothing = array_ops.zeros(array_ops.stack([sizes[0], depth + 1, depth + 1]), points.dtype)
        upper = array_ops.concat([between, flat], 2)
        lower = array_ops.concat([array_ops.transpose(flat, [0, 2, 1]), nothing], 2)
        wanted = array_ops.concat([values, array_ops.zeros(array_ops.stack([sizes[0], depth + 1, width]), points.dtype)], 1)
        solved = gen_ops.matrix_solve(array_ops.concat([upper, lower], 1), wanted)
        bends, plane = solved[:, : sizes[1]], solved[:, sizes[1] :]
        of_asked = array_ops.concat([asked, array_ops.ones_like(asked[..., :1])], 2)
        return matrix_ops.matmul(_radial(_squared_distances(asked, points), order), bends) + matrix_ops.matmul(of_asked, plane)


def _get_grid_locations(image_height: int, image_width: int) -> Any:
    """Where each pixel is: [height, width, 2]."""
    return np.stack(np.meshgrid(np.arange(float(image_height)), np.arange(float(image_width)), indexing="ij"), -1)


def _get_boundary_locations(image_height: int, image_width: int, num_points_per_edge: int) -> Any:
    """The corners, and so many places between them along each edge."""
    down, right = (np.linspace(0, size - 1, num_points_per_edge + 2) for size in (image_height, image_width))
    along, across = np.meshgrid(down, right, indexing="ij")
    outside = (along == 0) | (along == image_height - 1) | (across == 0) | (across == image_width - 1)
    return np.stack([along[outside], across[outside]], -1)


def sparse_image_warp(
    image: Any,
    source_control_point_locations: Any,
    dest_control_point_locations: Any,
    interpolation_order: int = 2,
    regularization_weight: float = 0.0,
    num_boundary_points: int = 0,
    name: str = "sparse_image_warp",
) -> Tuple[Tensor, Tensor]:
    """(an image [batch, height, width, channels] of which what was at the source points [batch, n, 2] is at the destinations, the flow).
    num_boundary_points holds the corners, and that many less one places along each edge, where they are."""
    with name_scope(name):
        image, source, destination = (convert_to_tensor(v) for v in (image, source_control_point_locations, dest_control_point_locations))
        batch, height, width, _ = image.get_shape().as_list()
        if None in (batch, height, width):
            raise at_user_line(ValueError("sparse_image_warp needs a known batch, height and width, got %s" % image.get_shape()))
        flows = destination - source
        if num_boundary_points > 0:
            held = _get_boundary_locations(height, width, num_boundary_points - 1)
            held = constant(np.tile(held[None], [batch, 1, 1]), destination.dtype)
            destination = array_ops.concat([destination, held], 1)
            flows = array_ops.concat([flows, array_ops.zeros_like(held)], 1)
        places = np.tile(_get_grid_locations(height, width).reshape(1, -1, 2), [batch, 1, 1])
        flat = interpolate_spline(destination, flows, constant(places, image.dtype), interpolation_order, regularization_weight)
        flow = array_ops.reshape(flat, [batch, height, width, 2])
        return dense_image_warp(image, flow), flow
