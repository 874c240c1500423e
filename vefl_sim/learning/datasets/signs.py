"""`signs`: traffic signs drawn by the program, so that a run needs no download.

Any number of images of any size, determined by the random generator. A linear model on the pixels stays
near an accuracy of 0.65 where the paper's CNN reaches 0.97 (10,000 images of 28 × 28).

A shape is a function of points that returns signed distances: negative inside, zero on the edge, positive outside.
Coordinates are in units of the sign's radius, x to the right and y *down*, as in images. Distances are exact near the
edge, which is all that antialiasing needs. Constants are Python floats, so that float32 points give float32 distances.

Sixteen faces are drawn. Four warning triangles, three speed limits and three mandatory directions differ only in their
pictogram or its orientation, and two diamonds only in a stripe, so colour and outline are not enough to distinguish the
classes.

A photograph adds pose, background, light and a poor camera, for many images at once. Arrays are [images, height, width]
for geometry and [images, 3, height, width] for colour, float32 in 0 … 1. All drawing is array code over one chunk of at
most `CHUNK` images, whose arrays fit the processor's cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from math import cos, hypot, radians, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vefl_sim.experiment.experiment import DataTable
from vefl_sim.learning.datasets.dataset import Dataset, empty_pictures
from vefl_sim.learning.datasets.kinds import DataKind

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


ZERO = stroke(0.4, (-0.4, -0.55), (0, -0.9), (0.4, -0.55), (0.4, 0.55), (0, 0.9), (-0.4, 0.55), (-0.4, -0.55))
THREE = stroke(0.4, (-0.4, -0.9), (0.45, -0.9), (0, -0.15), (0.45, 0.2), (0.4, 0.7), (0, 0.9), (-0.45, 0.75))
FIVE = stroke(0.4, (0.4, -0.9), (-0.35, -0.9), (-0.4, -0.1), (0.1, -0.2), (0.45, 0.2), (0.3, 0.75), (-0.4, 0.85))
SEVEN = stroke(0.4, (-0.45, -0.9), (0.45, -0.9), (-0.1, 0.9))


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


CHUNK = 64
POLE = polygon((-0.09, 0.8), (0.09, 0.8), (0.09, 9), (-0.09, 9))
STEEL: Colour = (0.45, 0.46, 0.48)


@dataclass(frozen=True)
class Variation:
    """How much photographs differ: too much for a linear model, but not for a small CNN."""

    radius: tuple[float, float] = (0.5, 0.88)  # of the sign, in units of half the image side
    shift: float = 0.75  # from the centre, as a share of the space around the sign
    turn_deg: float = 12.0
    shear: float = 0.15
    perspective: float = 0.15
    light: tuple[float, float] = (0.45, 1.1)
    shadow: float = 0.3  # relative change of light across the image
    cast: float = 0.12  # relative change of a colour channel
    haze: float = 0.3
    softness_px: float = 0.9  # of edges
    blur: float = 0.25  # weight of either neighbour
    noise: float = 0.06
    occluded: float = 0.35  # share of the images with something in front of the sign
    occluder: float = 0.22  # its half width, in units of the sign's radius


def photograph(face: Face, count: int, image_px: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw `count` photographs of one face, [count, image_px, image_px, 3]."""
    camera = _Camera(count, image_px, rng)
    canvas = camera.background()
    camera.draw_sign(canvas, face)
    camera.occlude(canvas)
    return camera.expose(canvas)


class _Camera:
    """Draws one chunk of photographs; the order of the method calls determines the random numbers."""

    variation = Variation()

    def __init__(self, count: int, image_px: int, rng: np.random.Generator) -> None:
        self.count, self.image_px, self.rng = count, image_px, rng
        centres = ((np.arange(image_px) + 0.5) * 2 / image_px - 1).astype(np.float32)
        self.pixels = Points(*np.meshgrid(centres, centres))  # -1 … 1 in both directions
        self.radius = self._uniform(*self.variation.radius)
        edge_px = 1 + self._uniform(0, self.variation.softness_px)
        self.edge = edge_px * (2 / image_px) / self.radius  # width of an edge in units of the sign's radius
        self.points = self._pose()

    def _uniform(self, low: float, high: float, *shape: int) -> Array:
        """Uniform draws [count, *shape], or [count, 1, 1] to broadcast with geometry."""
        return self.rng.uniform(low, high, (self.count, *(shape or (1, 1)))).astype(np.float32)

    def _symmetric(self, bound: float, *shape: int) -> Array:
        return self._uniform(-bound, bound, *shape)

    def _direction(self) -> Points:
        """A random unit vector."""
        angle = self._symmetric(np.pi)
        return Points(np.cos(angle), np.sin(angle))

    def _pose(self) -> Points:
        """Pixel coordinates in the frame of the sign, with shift, scale, rotation, shear and perspective undone."""
        v = self.variation
        room = v.shift * (1.05 - self.radius)
        x = (self.pixels.x - room * self._symmetric(1)) / self.radius
        y = (self.pixels.y - room * self._symmetric(1)) / self.radius
        angle = self._symmetric(float(np.deg2rad(v.turn_deg)))
        x, y = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
        x += self._symmetric(v.shear) * y
        depth = 1 + self._symmetric(v.perspective) * x + self._symmetric(v.perspective) * y
        depth = np.maximum(depth, 0.4)
        return Points(x / depth, y / depth)

    def _cover(self, distance: Array) -> Array:
        """Share of each pixel inside a shape, [count, 1, height, width]: linear across the edge."""
        return np.clip(0.5 - distance / self.edge, 0, 1)[:, np.newaxis]

    def background(self) -> Array:
        """Draw a street out of focus: smooth patches, lighter at the top, and the edges of two buildings."""
        patches = self._uniform(0.1, 0.75, 3, 5, 5)
        patches = 0.5 * patches + 0.5 * patches.mean(axis=1, keepdims=True)  # streets are mostly grey
        patches[:, :, 0] = 0.5 * patches[:, :, 0] + 0.5 * self._uniform(0.5, 1.0, 3, 1)
        canvas = _interpolated(patches, self.image_px)
        for _ in range(2):
            _paint(canvas, self._building(), self._masonry())
        return canvas

    def _building(self) -> Array:
        """Share of each pixel on one side of a random line through the picture."""
        across = self._direction()
        distance = across.x * self.pixels.x + across.y * self.pixels.y + self._uniform(0.4, 1.2)
        return self._cover(distance / self.radius)

    def _masonry(self) -> Array:
        """A slightly tinted grey for a building."""
        return self._uniform(0.1, 0.7, 1, 1, 1) + self._symmetric(0.15, 3, 1, 1)

    def draw_sign(self, canvas: Array, face: Face) -> None:
        """Draw the pole, the rim, the field and the pictogram, one over the other."""
        plate = face.plate(self.points)
        self._draw(canvas, POLE(self.points), STEEL)
        self._draw(canvas, plate, face.rim_colour)
        self._draw(canvas, plate + face.rim_width, face.field_colour)
        if face.pictogram is not None:
            self._draw(canvas, face.pictogram(self.points), face.ink)

    def _draw(self, canvas: Array, distance: Array, colour: Colour) -> None:
        _paint(canvas, self._cover(distance), np.array(colour, np.float32)[:, np.newaxis, np.newaxis])

    def occlude(self, canvas: Array) -> None:
        """Draw a twig or a post across some of the pictures, somewhere between the sign's middle and its rim."""
        across = self._direction()
        middle = across.x * self.points.x + across.y * self.points.y - self._uniform(0.25, 1.0)
        cover = self._cover(np.abs(middle) - self._uniform(0.04, self.variation.occluder))
        present = self.rng.random((self.count, 1, 1, 1)) < self.variation.occluded
        _paint(canvas, cover * present, self._uniform(0.05, 0.5, 3, 1, 1))

    def expose(self, canvas: Array) -> NDArray[np.uint8]:
        """Apply light, shadow, colour cast, haze, blur and noise; return 8-bit pixels with the channels last."""
        v = self.variation
        shadow = 1 + self._symmetric(v.shadow) * self.pixels.x + self._symmetric(v.shadow) * self.pixels.y
        canvas *= (self._uniform(*v.light) * shadow)[:, np.newaxis]
        canvas *= 1 + self._symmetric(v.cast, 3, 1, 1)
        canvas += self._uniform(0, v.haze, 1, 1, 1) * (0.7 - canvas)
        canvas = _blurred(canvas, self._uniform(0, v.blur, 1, 1, 1))
        grain = self.rng.standard_normal(canvas.shape, dtype=np.float32)
        canvas += self._uniform(0, v.noise, 1, 1, 1) * grain
        pixels: NDArray[np.uint8] = np.clip(canvas * 255 + 0.5, 0, 255).astype(np.uint8)
        return pixels.transpose(0, 2, 3, 1)


def _paint(canvas: Array, cover: Array, colour: Array) -> None:
    """Mix the colour into the canvas, in place."""
    canvas += cover * (colour - canvas)


def _interpolated(patches: Array, image_px: int) -> Array:
    """[images, 3, k, k] values, linearly interpolated to [images, 3, image_px, image_px]."""
    knots = patches.shape[-1]
    position = np.linspace(0, knots - 1, image_px)[:, np.newaxis]
    spread = np.maximum(0, 1 - np.abs(position - np.arange(knots))).astype(np.float32)
    rows = np.einsum("yk,nckj->ncyj", spread, patches)
    return np.asarray(np.einsum("xk,nchk->nchx", spread, rows))


def _blurred(canvas: Array, weight: Array) -> Array:
    """Filter with (w, 1 − 2w, w) along both axes; border pixels are repeated."""
    above = np.concatenate((canvas[:, :, :1], canvas[:, :, :-1]), axis=2)
    below = np.concatenate((canvas[:, :, 1:], canvas[:, :, -1:]), axis=2)
    canvas = canvas + weight * (above + below - 2 * canvas)
    left = np.concatenate((canvas[..., :1], canvas[..., :-1]), axis=3)
    right = np.concatenate((canvas[..., 1:], canvas[..., -1:]), axis=3)
    return canvas + weight * (left + right - 2 * canvas)


def signs(
    train_samples: int, test_samples: int, image_px: int, rng: np.random.Generator, *, unseen: bool = False
) -> Dataset:
    """Draw RGB images of the sixteen `FACES`; their numbers differ by at most one.

    Training and test set have separate random streams: the test set stays the same when `train_samples` changes.
    With `unseen` the labels are the same, and the images are left black.
    """
    _keep_freed_memory()
    train_rng, test_rng = rng.spawn(2)
    train = _draw(train_samples, image_px, train_rng, unseen)
    test = _draw(test_samples, image_px, test_rng, unseen)
    return Dataset("signs", *train, *test, classes=len(FACES), class_names=tuple(face.name for face in FACES))


def _draw(
    samples: int, image_px: int, rng: np.random.Generator, unseen: bool
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    labels = rng.permutation(np.arange(samples) % len(FACES)).astype(np.int32)
    images = empty_pictures(samples, image_px)
    if unseen:
        return images, labels
    for label, face in enumerate(FACES):
        members = np.flatnonzero(labels == label)
        for start in range(0, len(members), CHUNK):
            chunk = members[start : start + CHUNK]
            images[chunk] = photograph(face, len(chunk), image_px, rng)
    return images, labels


def _keep_freed_memory() -> None:
    """Free one large array, so that glibc keeps the many small ones freed later instead of unmapping them.

    Its thresholds adapt to the largest block seen freed; without this, page faults take more than half of the time.
    """
    np.empty(2**24, np.uint8)


def _signs(data: DataTable, rng: np.random.Generator, *, unseen: bool = False) -> Dataset:
    train, test = data.train_samples or SIGNS.train_samples, data.test_samples or SIGNS.test_samples
    return signs(train, test, data.image_px, rng, unseen=unseen)


SIGNS = DataKind(
    _signs,
    unused_keys=("data.dir", "data.horizon_s"),
    any_number=True,
    train_samples=12_000,
    test_samples=2_000,
    make_unseen=partial(_signs, unseen=True),
)
