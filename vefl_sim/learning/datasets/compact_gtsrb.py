"""Whether the compact zips of GTSRB are complete: their digests are not published, so images are counted and read."""

import re
from pathlib import Path

from vefl_sim.learning.datasets.files.archive import Zip
from vefl_sim.learning.datasets.files.location import UNREADABLE, Damaged
from vefl_sim.learning.datasets.gtsrb import COMPACT, COMPACT_TEST_IMAGE, TRAIN_IMAGE

TRAIN_IMAGES, TEST_IMAGES = 39_209, 12_630


def compact_files(folder: Path) -> list[Path]:
    """The compact zips that exist in the folder."""
    return [folder / name for name in COMPACT if (folder / name).is_file()]


def compact_state(folder: Path) -> str:
    """Complete, or what is missing or damaged; every image is read, which compares its checksum."""
    present = [path.name for path in compact_files(folder)]
    if missing := [name for name in COMPACT if name not in present]:
        return f"incomplete, in compact form: without {', '.join(missing)}"
    try:
        train = _count_readable(folder / COMPACT[0], TRAIN_IMAGE)
        test = _count_readable(folder / COMPACT[1], COMPACT_TEST_IMAGE)
    except _UnreadableZip as error:
        return f"damaged, in compact form: {error}"
    counts = f"{train} of {TRAIN_IMAGES} training and {test} of {TEST_IMAGES} test images"
    whole = (train, test) == (TRAIN_IMAGES, TEST_IMAGES)
    return f"complete, in compact form: {counts}" if whole else f"incomplete, in compact form: {counts}"


class _UnreadableZip(Exception):
    """A zip that cannot be read to its end; the text names the zip."""


def _count_readable(path: Path, pattern: re.Pattern[str]) -> int:
    """Number of images in a zip, after reading each of them."""
    try:
        with Zip(path) as archive:
            names = [name for name in archive.names() if pattern.fullmatch(name)]
            for name in names:
                archive.read(name)
    except (Damaged, *UNREADABLE) as error:
        raise _UnreadableZip(f"{path.name} cannot be read") from error
    return len(names)
