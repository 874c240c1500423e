"""Photographs of a sign: pose, background, light and a poor camera, for many images at once.

Arrays are [images, height, width] for geometry and [images, 3, height, width] for colour, float32 in 0 … 1. All
drawing is array code over one chunk; a chunk of `CHUNK` images keeps the working set in the processor's cache.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vefl_sim.learning.datasets.shapes import Array, Points, polygon
from vefl_sim.learning.datasets.sign_faces import Colour, Face

CHUNK = 128
POLE = polygon((-0.09, 0.8), (0.09, 0.8), (0.09, 9), (-0.09, 9))


@dataclass(frozen=True)
class Variation:
    """How much photographs differ. The defaults make colour and outline easy and pictograms hard work."""

    radius: tuple[float, float] = (0.5, 0.88)  # of the sign, in halves of the image
    shift: float = 0.75  # off the middle, as a share of the room around the sign
    turn_deg: float = 12.0
    shear: float = 0.15
    perspective: float = 0.15
    light: tuple[float, float] = (0.45, 1.1)
    shadow: float = 0.3  # relative change of light across the image
    cast: float = 0.12  # relative change of a colour channel
    haze: float = 0.3
    blur: float = 0.9  # softening of edges, in pixels
    noise: float = 0.06
    occluded: float = 0.35  # share of the images with something in front of the sign
    occluder: float = 0.22  # its half width, in units of the sign's radius


def photograph(
    face: Face, count: int, image_px: int, rng: np.random.Generator, variation: Variation | None = None
) -> NDArray[np.uint8]:
    """`count` ≤ CHUNK photographs of one face, [count, image_px, image_px, 3]."""
    camera = _Camera(count, image_px, rng, variation or Variation())
    canvas = camera.background()
    camera.draw_sign(canvas, face)
    camera.occlude(canvas)
    return camera.expose(canvas)


class _Camera:
    """One chunk of photographs; every method draws its random numbers in a fixed order."""

    def __init__(self, count: int, image_px: int, rng: np.random.Generator, variation: Variation) -> None:
        self.count, self.image_px, self.rng, self.variation = count, image_px, rng, variation
        centres = ((np.arange(image_px) + 0.5) * 2 / image_px - 1).astype(np.float32)
        self.pixels = Points(np.tile(centres, (image_px, 1)), np.tile(centres[:, None], (1, image_px)))
        self.edge = self._uniform(0, variation.blur) + 1  # width of an edge in pixels: 1 is sharp
        self.radius = self._uniform(*variation.radius)
        self.points = self._pose()

    def _uniform(self, low: float, high: float, *shape: int) -> Array:
        """Uniform draws [count, *shape], or [count, 1, 1] to go with geometry."""
        return self.rng.uniform(low, high, (self.count, *(shape or (1, 1)))).astype(np.float32)

    def _symmetric(self, bound: float, *shape: int) -> Array:
        return self._uniform(-bound, bound, *shape)

    def _pose(self) -> Points:
        """The pixels in the frame of the sign: shift, scale, rotation, shear and perspective undone."""
        v = self.variation
        room = np.float32(v.shift) * (1.05 - self.radius)
        x = (self.pixels.x - room * self._symmetric(1)) / self.radius
        y = (self.pixels.y - room * self._symmetric(1)) / self.radius
        angle = self._symmetric(np.deg2rad(v.turn_deg))
        cos, sin = np.cos(angle), np.sin(angle)
        x, y = cos * x + sin * y, cos * y - sin * x
        x += self._symmetric(v.shear) * y
        depth = 1 + np.clip(self._symmetric(v.perspective) * x + self._symmetric(v.perspective) * y, -0.6, 0.6)
        return Points(x / depth, y / depth)

    def _cover(self, distance: Array) -> Array:
        """Share of each pixel inside a shape, [count, 1, height, width]: 1/2 on the edge, linear across it."""
        width = self.edge * np.float32(2 / self.image_px) / self.radius
        return cast(Array, np.clip(0.5 - distance / width, 0, 1)[:, None])

    def background(self) -> Array:
        """A street out of focus: smooth random patches, the sky above, and two edges of buildings."""
        patches = self._uniform(0.1, 0.75, 3, 5, 5)
        patches = 0.5 * patches + 0.5 * patches.mean(axis=1, keepdims=True)  # streets are rather grey
        patches[:, :, 0] = 0.5 * patches[:, :, 0] + 0.5 * self._uniform(0.5, 1.0, 3, 1)
        spread = _interpolation(5, self.image_px)
        canvas = np.einsum("xk,nchk->nchx", spread, np.einsum("yk,nckj->ncyj", spread, patches))
        for _ in range(2):
            self._paint(canvas, self._half_plane(), self._masonry())
        return canvas

    def _masonry(self) -> Array:
        """A wall's colour: a grey with a tint."""
        return cast(Array, self._uniform(0.1, 0.7, 1, 1, 1) + self._symmetric(0.15, 3, 1, 1))

    def _half_plane(self) -> Array:
        """One side of a random line through the picture."""
        angle = self._symmetric(np.pi)
        distance = np.cos(angle) * self.pixels.x + np.sin(angle) * self.pixels.y + self._uniform(0.4, 1.2)
        return self._cover(distance / self.radius)

    def _paint(self, canvas: Array, cover: Array, colour: Array) -> None:
        canvas += cover * (colour - canvas)

    def _paint_plain(self, canvas: Array, distance: Array, colour: Colour) -> None:
        self._paint(canvas, self._cover(distance), np.array(colour, np.float32)[:, None, None])

    def draw_sign(self, canvas: Array, face: Face) -> None:
        """The pole, the rim, the field and the pictogram, one over the other."""
        self._paint_plain(canvas, POLE(self.points), (0.45, 0.46, 0.48))
        plate = face.plate(self.points)
        self._paint_plain(canvas, plate, face.rim_colour)
        self._paint_plain(canvas, plate + np.float32(face.rim_width), face.field_colour)
        if face.pictogram is not None:
            self._paint_plain(canvas, face.pictogram(self.points), face.ink)

    def occlude(self, canvas: Array) -> None:
        """A twig or a post across some of the pictures, anywhere from the middle of the sign to past its edge."""
        angle = self._symmetric(np.pi)
        across = np.cos(angle) * self.points.x + np.sin(angle) * self.points.y - self._uniform(0.25, 1.0)
        cover = self._cover(np.abs(across) - self._uniform(0.04, self.variation.occluder))
        present = self.rng.random((self.count, 1, 1, 1)) < self.variation.occluded
        self._paint(canvas, cover * present, self._uniform(0.05, 0.5, 3, 1, 1))

    def expose(self, canvas: Array) -> NDArray[np.uint8]:
        """Light, shadow, colour cast, haze, blur and noise, as 8-bit pixels with the channels last."""
        v = self.variation
        shadow = 1 + self._symmetric(v.shadow) * self.pixels.x + self._symmetric(v.shadow) * self.pixels.y
        canvas *= (self._uniform(*v.light) * shadow)[:, None]
        canvas *= 1 + self._symmetric(v.cast, 3, 1, 1)
        canvas += self._uniform(0, v.haze, 1, 1, 1) * (0.7 - canvas)
        canvas = _blurred(canvas, self._uniform(0, 0.25, 1, 1, 1))
        grain = self.rng.standard_normal(canvas.shape, dtype=np.float32)
        canvas += self._uniform(0, v.noise, 1, 1, 1) * grain
        pixels = np.clip(canvas * 255 + 0.5, 0, 255).astype(np.uint8)
        return np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))


def _interpolation(knots: int, image_px: int) -> Array:
    """Linear interpolation from `knots` values to pixels, as a matrix [image_px, knots]."""
    position = np.linspace(0, knots - 1, image_px)
    return np.maximum(0, 1 - np.abs(position[:, None] - np.arange(knots))).astype(np.float32)


def _blurred(canvas: Array, weight: Array) -> Array:
    """The taps (w, 1 − 2w, w) along both axes; the border is repeated."""
    down = np.concatenate((canvas[:, :, :1], canvas[:, :, :-1]), axis=2)
    up = np.concatenate((canvas[:, :, 1:], canvas[:, :, -1:]), axis=2)
    canvas = canvas + weight * (down + up - 2 * canvas)
    right = np.concatenate((canvas[..., :1], canvas[..., :-1]), axis=3)
    left = np.concatenate((canvas[..., 1:], canvas[..., -1:]), axis=3)
    return canvas + weight * (right + left - 2 * canvas)
