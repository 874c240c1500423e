"""The traffic signs that are drawn: sixteen faces, most of which share shape and colours with another.

Four warning triangles, three speed limits and three mandatory directions differ only in their pictogram or
its orientation, and two diamonds only in a stripe, so colour and outline are not enough to distinguish the classes.
"""

from dataclasses import dataclass

from vefl_sim.learning.datasets.signs.shapes import (
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

Colour = tuple[float, float, float]

RED: Colour = (0.80, 0.07, 0.12)
WHITE: Colour = (0.95, 0.95, 0.95)
BLUE: Colour = (0.05, 0.27, 0.68)
YELLOW: Colour = (0.98, 0.77, 0.10)
BLACK: Colour = (0.07, 0.07, 0.08)


@dataclass(frozen=True)
class Face:
    """One kind of sign: a plate with a rim, a field inside the rim, and a pictogram on the field."""

    name: str
    plate: Shape
    rim_colour: Colour
    rim_width: float  # in units of the sign's radius
    field_colour: Colour
    pictogram: Shape | None = None
    ink: Colour = BLACK


UPWARD = moved(regular_polygon(3, 1.15, -90), 0, 0.2)
DOWNWARD = moved(regular_polygon(3, 1.15, 90), 0, -0.2)
OCTAGON = regular_polygon(8, 1.05, 22.5)
DIAMOND = regular_polygon(4, 1.1, 0)
SQUARE = regular_polygon(4, 1.25, 45)
DISC = disc(1.0)


def _digit(*points: tuple[float, float]) -> Shape:
    return stroke(0.4, *points)


ZERO = _digit((-0.4, -0.55), (0, -0.9), (0.4, -0.55), (0.4, 0.55), (0, 0.9), (-0.4, 0.55), (-0.4, -0.55))
THREE = _digit((-0.4, -0.9), (0.45, -0.9), (0, -0.15), (0.45, 0.2), (0.4, 0.7), (0, 0.9), (-0.45, 0.75))
FIVE = _digit((0.4, -0.9), (-0.35, -0.9), (-0.4, -0.1), (0.1, -0.2), (0.45, 0.2), (0.3, 0.75), (-0.4, 0.85))
SEVEN = _digit((-0.45, -0.9), (0.45, -0.9), (-0.1, 0.9))


def _limit(digit: Shape) -> Shape:
    """A speed limit: the digit and a zero."""
    return union(moved(digit, -0.33, 0, 0.46), moved(ZERO, 0.33, 0, 0.46))


ARROW_UP = union(
    polygon((0, -0.72), (0.5, -0.12), (-0.5, -0.12)),
    polygon((-0.17, -0.2), (0.17, -0.2), (0.17, 0.68), (-0.17, 0.68)),
)
BEND_LEFT = union(
    moved(stroke(0.19, (0.2, 0.5), (0.2, 0.12), (-0.12, 0.0), (-0.15, -0.2)), 0, 0.1),
    moved(polygon((0, -0.3), (0.24, 0.08), (-0.24, 0.08)), -0.15, -0.12),
)
BANG = union(stroke(0.22, (0, -0.32), (0, 0.2)), moved(disc(0.13), 0, 0.52))
CROSSING = union(stroke(0.2, (-0.32, -0.18), (0.32, 0.5)), stroke(0.2, (0.32, -0.18), (-0.32, 0.5)))
BAR = polygon((-0.7, -0.2), (0.7, -0.2), (0.7, 0.2), (-0.7, 0.2))
STRIPE = stroke(0.3, (-0.42, 0.42), (0.42, -0.42))
PARKING = stroke(0.27, (-0.28, 0.62), (-0.28, -0.6), (0.15, -0.6), (0.38, -0.28), (0.15, 0.05), (-0.28, 0.05))
STOP = union(
    stroke(0.11, (-0.57, -0.25), (-0.75, -0.25), (-0.75, 0), (-0.57, 0.02), (-0.57, 0.27), (-0.76, 0.27)),
    stroke(0.11, (-0.42, -0.27), (-0.14, -0.27), (-0.28, -0.27), (-0.28, 0.27)),
    stroke(0.11, (0.02, -0.27), (0.24, -0.27), (0.24, 0.27), (0.02, 0.27), (0.02, -0.27)),
    stroke(0.11, (0.46, 0.27), (0.46, -0.27), (0.7, -0.27), (0.7, 0.03), (0.46, 0.03)),
)


def _warning(name: str, pictogram: Shape) -> Face:
    return Face(name, UPWARD, RED, 0.17, WHITE, pictogram)


def _speed(name: str, digit: Shape) -> Face:
    return Face(name, DISC, RED, 0.2, WHITE, _limit(digit))


def _direction(name: str, quarters: int) -> Face:
    return Face(name, DISC, WHITE, 0.06, BLUE, turned(ARROW_UP, quarters), WHITE)


FACES: tuple[Face, ...] = (
    _warning("danger", BANG),
    _warning("crossroads", CROSSING),
    _warning("bend left", BEND_LEFT),
    _warning("bend right", mirrored(BEND_LEFT)),
    _speed("limit 30", THREE),
    _speed("limit 50", FIVE),
    _speed("limit 70", SEVEN),
    _direction("straight on", 0),
    _direction("turn right", 1),
    _direction("turn left", 3),
    Face("no entry", DISC, WHITE, 0.05, RED, BAR, WHITE),
    Face("stop", OCTAGON, WHITE, 0.07, RED, STOP, WHITE),
    Face("give way", DOWNWARD, RED, 0.2, WHITE),
    Face("priority", DIAMOND, WHITE, 0.2, YELLOW),
    Face("end of priority", DIAMOND, WHITE, 0.2, YELLOW, STRIPE),
    Face("parking", SQUARE, WHITE, 0.06, BLUE, PARKING, WHITE),
)
