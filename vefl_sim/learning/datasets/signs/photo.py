"""Simulated photographs of a sign: pose, background, light and a poor camera, for many images at once.

Arrays are [images, height, width] for geometry and [images, 3, height, width] for colour, float32 in 0 … 1.
All drawing is array code over one chunk of at most `CHUNK` images, whose arrays fit the processor's cache.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.learning.datasets.signs.faces import Colour, Face
from vefl_sim.learning.datasets.signs.shapes import Array, Points, polygon

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


def photograph(
    face: Face, count: int, image_px: int, rng: np.random.Generator, variation: Variation | None = None
) -> NDArray[np.uint8]:
    """Draw `count` photographs of one face, [count, image_px, image_px, 3]."""
    camera = _Camera(count, image_px, rng, variation or Variation())
    canvas = camera.background()
    camera.draw_sign(canvas, face)
    camera.occlude(canvas)
    return camera.expose(canvas)


class _Camera:
    """Draws one chunk of photographs; the order of the method calls determines the random numbers."""

    def __init__(self, count: int, image_px: int, rng: np.random.Generator, variation: Variation) -> None:
        self.count, self.image_px, self.rng, self.variation = count, image_px, rng, variation
        centres = ((np.arange(image_px) + 0.5) * 2 / image_px - 1).astype(np.float32)
        self.pixels = Points(*np.meshgrid(centres, centres))  # -1 … 1 in both directions
        self.radius = self._uniform(*variation.radius)
        edge_px = 1 + self._uniform(0, variation.softness_px)
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
