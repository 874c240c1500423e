"""How much of GTSRB the small zips hold. Nobody publishes their digests: their images are counted and read."""

import re
from pathlib import Path

from vefl_sim.learning.datasets.files.archive import Zip
from vefl_sim.learning.datasets.files.location import UNREADABLE, Damaged
from vefl_sim.learning.datasets.gtsrb import COMPACT, COMPACT_TEST_IMAGE, TRAIN_IMAGE

TRAIN_IMAGES, TEST_IMAGES = 39_209, 12_630


def compact_files(folder: Path) -> list[Path]:
    """The small zips that are there."""
    return [folder / name for name in COMPACT if (folder / name).is_file()]


def compact_state(folder: Path) -> str:
    """Complete, or what is missing or damaged; every image is read, so that its checksum is compared."""
    there = [path.name for path in compact_files(folder)]
    if missing := [name for name in COMPACT if name not in there]:
        return f"incomplete, in compact form: without {', '.join(missing)}"
    try:
        train = _sound_images(folder / COMPACT[0], TRAIN_IMAGE)
        test = _sound_images(folder / COMPACT[1], COMPACT_TEST_IMAGE)
    except _Unsound as error:
        return f"damaged, in compact form: {error}"
    counts = f"{train} of {TRAIN_IMAGES} training and {test} of {TEST_IMAGES} test images"
    whole = (train, test) == (TRAIN_IMAGES, TEST_IMAGES)
    return f"complete, in compact form: {counts}" if whole else f"incomplete, in compact form: {counts}"


class _Unsound(Exception):
    """A zip that cannot be read to its end; the text names it."""


def _sound_images(path: Path, pattern: re.Pattern[str]) -> int:
    """How many files have the name of an image; all of them can be read."""
    try:
        with Zip(path) as archive:
            names = [name for name in archive.names() if pattern.fullmatch(name)]
            for name in names:
                archive.read(name)
    except (Damaged, *UNREADABLE) as error:
        raise _Unsound(f"{path.name} cannot be read") from error
    return len(names)
