"""Plane shapes as signed distances: negative inside, zero on the edge, positive outside.

A shape is a function of points. Coordinates are in units of the sign's radius, x to the right and y *down*,
as in images. Distances are exact near the edge, which is all that antialiasing needs. Constants are Python
floats, so that float32 points give float32 distances.
"""

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from math import cos, hypot, radians, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Corner = tuple[float, float]


class Points(NamedTuple):
    """Coordinates of pixels, in two arrays of the same shape."""

    x: Array
    y: Array


Shape = Callable[[Points], Array]


def disc(radius: float) -> Shape:
    """A disc around the origin."""
    return lambda p: np.sqrt(p.x * p.x + p.y * p.y) - radius


def polygon(*corners: Corner) -> Shape:
    """A convex polygon, corners clockwise as seen: the largest of the distances to its edge lines."""
    edges = list(pairwise([*corners, corners[0]]))
    return lambda p: reduce(np.maximum, (_distance_outside(p, *edge) for edge in edges))


def _distance_outside(p: Points, start: Corner, end: Corner) -> Array:
    """Signed distance from the line from `start` to `end`, positive on its left, which is outside the polygon."""
    along_x, along_y = end[0] - start[0], end[1] - start[1]
    length = hypot(along_x, along_y)
    normal_x, normal_y = along_y / length, -along_x / length
    return normal_x * p.x + normal_y * p.y - (normal_x * start[0] + normal_y * start[1])


def regular_polygon(corners: int, radius: float, first_deg: float) -> Shape:
    """A polygon with its corners on a circle, the first one at this angle (0 is right, 90 is down)."""
    angles = [radians(first_deg + 360 / corners * i) for i in range(corners)]
    return polygon(*((radius * cos(angle), radius * sin(angle)) for angle in angles))


def stroke(width: float, *points: Corner) -> Shape:
    """A pen line of this width through the points, with round ends."""
    pieces = list(pairwise(points))
    return lambda p: np.sqrt(reduce(np.minimum, (_distance2(p, *piece) for piece in pieces))) - width / 2


def _distance2(p: Points, start: Corner, end: Corner) -> Array:
    """Squared distance to the segment from `start` to `end`."""
    along_x, along_y = end[0] - start[0], end[1] - start[1]
    x, y = p.x - start[0], p.y - start[1]
    share = np.clip((x * along_x + y * along_y) / (along_x**2 + along_y**2), 0, 1)
    x -= share * along_x
    y -= share * along_y
    return x * x + y * y


def union(*shapes: Shape) -> Shape:
    """All points inside at least one of the shapes."""
    return lambda p: reduce(np.minimum, (shape(p) for shape in shapes))


def moved(shape: Shape, x: float, y: float, size: float = 1.0) -> Shape:
    """The shape scaled by `size` and then moved by (x, y)."""
    return lambda p: size * shape(Points((p.x - x) / size, (p.y - y) / size))


def mirrored(shape: Shape) -> Shape:
    """The shape with left and right exchanged."""
    return lambda p: shape(Points(-p.x, p.y))


def turned(shape: Shape, quarters: int) -> Shape:
    """The shape turned clockwise by quarter turns."""
    if quarters % 4 == 0:
        return shape
    return turned(lambda p: shape(Points(p.y, -p.x)), quarters - 1)
