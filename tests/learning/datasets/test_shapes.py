import numpy as np
import pytest

from vefl_sim.learning.datasets.signs.shapes import (
    Points,
    Shape,
    disc,
    mirrored,
    moved,
    polygon,
    regular_polygon,
    stroke,
    turned,
    union,
)

BOX = polygon((-1, -2), (1, -2), (1, 2), (-1, 2))
RIGHT_OF_MIDDLE = moved(disc(0.1), 0.5, 0)


def distance(shape: Shape, x: float, y: float) -> float:
    return float(shape(Points(np.array([x], float), np.array([y], float)))[0])


@pytest.mark.parametrize(
    ("shape", "point", "expected"),
    [
        (disc(2), (3, 4), 3),
        (disc(2), (0, 0), -2),
        (BOX, (3, 0), 2),
        (BOX, (0, 0), -1),
        (BOX, (0, -2.5), 0.5),
        (regular_polygon(4, 2**0.5, 45), (0, 3), 2),
        (stroke(2, (0, 0), (4, 0)), (2, 3), 2),
        (stroke(2, (0, 0), (4, 0)), (7, 4), 4),
        (stroke(2, (0, 0), (4, 0), (4, 4)), (4, 2), -1),
        (union(disc(1), moved(disc(1), 5, 0)), (5, 0), -1),
        (moved(disc(1), 1, 2, size=3), (1, 7), 2),
        (mirrored(RIGHT_OF_MIDDLE), (-0.5, 0), -0.1),
        (turned(RIGHT_OF_MIDDLE, 1), (0, 0.5), -0.1),
        (turned(RIGHT_OF_MIDDLE, 3), (0, -0.5), -0.1),
    ],
)
def test_distances_are_exact(shape: Shape, point: tuple[float, float], expected: float) -> None:
    assert distance(shape, *point) == pytest.approx(expected)


def test_float32_points_give_float32_distances() -> None:
    points = Points(np.zeros(2, np.float32), np.ones(2, np.float32))
    for shape in (turned(mirrored(moved(union(disc(1), BOX), 0.1, 0.2, 0.3)), 2), stroke(0.1, (0, 0), (1, 1))):
        assert shape(points).dtype == np.float32
