"""`gtsrb`: German traffic signs, 43 classes, 39209 training images in tracks and 12630 test images.

A track is one sign, photographed about thirty times from an approaching car. Its images are nearly the same, so tracks
are groups: a track stays with one CV. The official zips are read (PPM of many sizes, the classes of the test images in
a separate zip), or compact zips of the same images as small JPEG.
"""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vefl_sim.experiment.experiment import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files import Damaged, DataLocation, Zip, read_pictures
from vefl_sim.learning.datasets.kinds import DataKind, Subsets

SIGNS = (
    "limit 20", "limit 30", "limit 50", "limit 60", "limit 70", "limit 80", "end of limit 80", "limit 100",
    "limit 120", "no overtaking", "no overtaking by lorries", "priority at the next crossing", "priority road",
    "give way", "stop", "no vehicles", "no lorries", "no entry", "danger", "bend left", "bend right", "double bend",
    "uneven road", "slippery road", "road narrows", "road works", "traffic lights", "pedestrians", "children",
    "cyclists", "snow or ice", "wild animals", "end of all limits", "turn right ahead", "turn left ahead",
    "straight on", "straight on or right", "straight on or left", "keep right", "keep left", "roundabout",
    "end of no overtaking", "end of no overtaking by lorries",
)  # fmt: skip
"""Names of the classes, in the order of their numbers."""
OFFICIAL = ("GTSRB_Final_Training_Images.zip", "GTSRB_Final_Test_Images.zip")
COMPACT = ("gtsrb-32x32-train-jpeg.zip", "gtsrb-32x32-test-jpeg.zip")
TRUTH = "GTSRB_Final_Test_GT.zip"
_TRAIN_IMAGE = re.compile(r"(?:.*/)?(\d{5})/(\d{5})_\d{5}\.(?:ppm|jpg)")
_COMPACT_TEST_IMAGE = re.compile(r"(?:.*/)?(\d{5})/\d{5}\.jpg")

Labels = dict[str, int]
"""Class of each image, by its name in the zip."""


def gtsrb(data: DataTable, rng: np.random.Generator) -> Dataset:
    """Read the official zips if they exist, else the compact ones."""
    location, subsets = DataLocation.of(data), Subsets(data, rng)
    compact = location.has(COMPACT[0]) and not location.has(OFFICIAL[0])
    train_zip, test_zip = COMPACT if compact else OFFICIAL
    with location.reading(train_zip) as path, Zip(path) as archive:
        labels = _labels_in_names(archive, _TRAIN_IMAGE)
        names, train_inputs, train_targets = _read(archive, labels, subsets.train, data.image_px)
    tracks = np.array([int(_TRAIN_IMAGE.sub(r"\1\2", name)) for name in names], np.int64)  # numbered in each class
    truth = None if compact else _truth(location)
    with location.reading(test_zip) as path, Zip(path) as archive:
        labels = _labels_in_names(archive, _COMPACT_TEST_IMAGE) if truth is None else _labels_in_table(archive, truth)
        _, test_inputs, test_targets = _read(archive, labels, subsets.test, data.image_px)
    return Dataset("gtsrb", train_inputs, train_targets, test_inputs, test_targets, len(SIGNS), tracks, SIGNS)


def _read(
    archive: Zip, labels: Labels, drawn: Callable[[int], NDArray[np.int64]], image_px: int
) -> tuple[list[str], NDArray[np.uint8], NDArray[np.int32]]:
    """Names, pictures and classes of the images that are drawn from those with labels."""
    if not labels:
        raise Damaged("has no images at the expected paths")
    names = sorted(labels)
    used = [names[number] for number in drawn(len(names))]
    return used, read_pictures(archive, used, image_px), np.array([labels[name] for name in used], np.int32)


def _truth(location: DataLocation) -> Labels:
    """Classes of the official test images, by their file names."""
    with location.reading(TRUTH) as path, Zip(path) as archive:
        tables = [name for name in archive.names() if name.endswith(".csv")]
        if len(tables) != 1:
            raise Damaged(f"has {len(tables)} tables (.csv) instead of one")
        text = io.StringIO(archive.read(tables[0]).decode("utf-8-sig"))
        rows = csv.DictReader(text, delimiter=";", restval="")
        if not {"Filename", "ClassId"} <= set(rows.fieldnames or ()):
            raise Damaged("has a table without the columns Filename and ClassId")
        return {row["Filename"]: _class_number(row["ClassId"]) for row in rows}


def _labels_in_names(archive: Zip, pattern: re.Pattern[str]) -> Labels:
    return {name: _class_number(match[1]) for name in archive.names() if (match := pattern.fullmatch(name))}


def _labels_in_table(archive: Zip, truth: Labels) -> Labels:
    pictures = {Path(name).name: name for name in archive.names() if name.endswith(".ppm")}
    if missing := truth.keys() - pictures.keys():
        raise Damaged(f"has no image {min(missing)}, which {TRUTH} lists")
    return {pictures[name]: label for name, label in truth.items()}


def _class_number(text: str) -> int:
    if not text.isdecimal() or int(text) >= len(SIGNS):
        raise Damaged(f"names a class {text!r}, but classes go from 0 to {len(SIGNS) - 1}")
    return int(text)


GTSRB = DataKind(
    gtsrb,
    unused_keys=("data.horizon_s",),
    label="GTSRB",
    train_samples=39_209,
    test_samples=12_630,
)
