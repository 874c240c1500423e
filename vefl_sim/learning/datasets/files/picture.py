"""Image files, read as arrays of one size."""

import io
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from vefl_sim.learning.datasets.dataset import empty_pictures
from vefl_sim.learning.datasets.files.archive import Archive
from vefl_sim.learning.datasets.files.location import Damaged

SUFFIXES = (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".bmp", ".gif", ".webp")
_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "WEBP")
_MAX_PIXELS = 1 << 25  # decoded and turned upright, this many need 0.8 GB


def read_pictures(archive: Archive, names: Sequence[str], image_px: int) -> NDArray[np.uint8]:
    """Read images as RGB and resize each, uncropped, to a square: [names, image_px, image_px, 3]."""
    images = empty_pictures(len(names), image_px)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for i, name in enumerate(names):
            images[i] = _picture(name, archive.read(name), image_px)
    return images


def _picture(name: str, content: bytes, image_px: int) -> NDArray[np.uint8]:
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:  # known from the header, before anything is decoded
                raise Damaged(f"has a picture {name} of {image.width} × {image.height} pixels")
            upright = ImageOps.exif_transpose(image)
            return np.asarray(_rgb(name, upright).resize((image_px, image_px), Image.Resampling.BILINEAR))
    except Damaged:
        raise
    except UnidentifiedImageError:
        raise Damaged(f"has a file {name} that is not a picture") from None
    except Exception as error:  # the decoders of the formats raise exceptions of many types
        raise Damaged(f"has a picture {name} that cannot be read ({str(error).rstrip('.')})") from None


def _rgb(name: str, image: Image.Image) -> Image.Image:
    """Convert to 8 bits per colour; Pillow alone would clip 16-bit greys to white, and drop transparency."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):  # the file does not define which value is white
        raise Damaged(f"has a picture {name} with more than 8 bits of grey, which only a PNG may have (16)")
    if image.has_transparency_data:
        black = Image.new("RGBA", image.size, "black")
        return Image.alpha_composite(black, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")
