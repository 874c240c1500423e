"""Attack the readers of data sets, recordings and maps with damaged files.

An attempt is a folder, named after the reader, with the files of one data set, recording or map. The reader reads it,
or refuses it in one sentence that names a file; it writes nothing, and takes little memory and time.
"""

import gzip
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.fuzz.command import Broken
from tests.fuzz.damages import BYTES, Damage, any_of, archived, gzipped, link, packed, pipe, remove, word
from tests.fuzz.damages import folder as folder_in_place
from tests.learning.datasets import files
from tests.mobility.recorded import recordings
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.experiment.plugins import load_part
from vefl_sim.mobility.recorded.playback import recording_digest
from vefl_sim.mobility.sumo import inputs

NET = """<net version="1.20"><location netOffset="0.00,0.00" convBoundary="0.00,0.00,200.00,100.00" projParameter="!"/>
<edge id=":B_0" function="internal"><lane id=":B_0_0" index="0" speed="9.26" length="9.03" shape="99,1 101,1"/></edge>
<edge id="AB" from="A" to="B" priority="-1">
<lane id="AB_0" index="0" disallow="pedestrian" speed="13.89" length="92.80" shape="0.00,-1.60 92.80,-1.60"/></edge>
<junction id="A" type="dead_end" x="0.00" y="0.00" incLanes="" intLanes="" shape="0.00,0.00 0.00,-3.20"/>
<junction id="B" type="traffic_light" x="100.00" y="0.00" incLanes="AB_0" intLanes="" shape="92.80,0.00 107.20,0.00"/>
</net>
"""
OSM = """<osm version="0.6"><node id="1" lat="0.0018" lon="10.0027"/><node id="2" lat="0.0028" lon="10.0037"/>
<way id="1"><nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/></way></osm>
"""
CONFIGURATION = """<configuration><input><net-file value="map.net.xml"/><route-files value="demand.rou.xml"/></input>
<time><begin value="0"/><end value="10"/></time></configuration>
"""
ROUTES = '<routes><include href="map.net.xml"/><vehicle id="1" depart="0"><route edges="AB"/></vehicle></routes>'


IMAGES = files.folder_members() | {"test/cat/1.ppm": files.picture((1, 2, 3))}


def _write_images(folder: Path) -> None:
    files.write_folder(folder, IMAGES | {f"train/cat/{form}.png": files.picture((1, 2, 3), "PNG") for form in "abc"})


def _write_zip(folder: Path) -> None:
    (folder / "images.zip").write_bytes(files.zipped(IMAGES))


def _write_cifar(folder: Path) -> None:
    (folder / "cifar-10-binary.tar.gz").write_bytes(files.tar_gz(files.cifar_members(1)))


def _write_recordings(folder: Path) -> None:
    (folder / "fcd.xml.gz").write_bytes(gzip.compress(recordings.fcd_xml(folder).read_bytes(), mtime=0))
    recordings.fcd_parquet(folder)
    recordings.own_table(folder)


def _write_map(folder: Path) -> None:
    texts = {"map.net.xml": NET, "map.osm": OSM, "map.sumocfg": CONFIGURATION, "demand.rou.xml": ROUTES}
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("map.net.xml", "map.osm"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes(), mtime=0))


def _read_data_set(kind: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        data = DataTable(kind=kind, dir=str(folder), image_px=16)
        load_part("data.kind", kind).make(data, np.random.default_rng(1))

    return read


def _play(path: Path) -> None:
    recording_digest(str(path))
    recordings.scenes(path)


def _read_map(path: Path) -> None:
    inputs.map_digest(str(path))
    if path.name.lower().endswith(inputs.OSM):  # what follows is netconvert
        inputs.require_harmless([path], path, path.name)
        return
    if path.name.lower().endswith(inputs.CONFIGURATION):
        net, _ = inputs.configuration_of(str(path), path.parent)
    else:
        net = inputs.net_of(str(path), path.parent)
    inputs.gnb_m(recordings.experiment(path), net)
    for street in net.streets:
        net.joined_m(street)


Kind = tuple[Callable[[Path], Any], Callable[[Path], None], tuple[str, ...]]
KINDS: dict[str, Kind] = {
    "mnist": (files.write_mnist, _read_data_set("mnist"), ()),
    "cifar10": (_write_cifar, _read_data_set("cifar10"), ()),
    "gtsrb": (files.write_gtsrb, _read_data_set("gtsrb"), ()),
    "compact": (files.write_compact_gtsrb, _read_data_set("gtsrb"), ()),
    "images": (_write_images, _read_data_set("folder"), ()),
    "zip": (_write_zip, _read_data_set("folder"), (".zip",)),
    "recordings": (_write_recordings, _play, (".xml", ".gz", ".parquet")),
    "map": (_write_map, _read_map, (*inputs.NET, *inputs.OSM, *inputs.CONFIGURATION)),
}
"""Writers of valid files, and readers of the folder, or of all files in it that end like this."""

_bytes, _text = any_of(*BYTES), any_of(*BYTES, *[word] * 6)
DAMAGES: dict[str, Damage] = {
    **{".tar.gz": packed(archived, _bytes), ".xml.gz": packed(gzipped, _text), ".osm.gz": packed(gzipped, _text)},
    **{".gz": packed(gzipped, _bytes), ".zip": packed(archived, _text), "": _text},
}
"""Damages by the end of the file's name; the first that fits."""


class DataFiles:
    """The attack with damaged data files."""

    name = "data-files"
    goal = 20_000
    limit_s = 30.0

    def make(self, random: Random, folder: Path) -> None:
        """Copy valid files, and damage one or two of them, or what is in their place."""
        kind = random.choice(sorted(KINDS))
        shutil.copytree(_valid_files(folder.parent) / kind, folder / kind)
        present = sorted(path for path in (folder / kind).rglob("*") if path.is_file())
        for path in random.sample(present, min(len(present), random.choice((1, 1, 2)))):
            if random.random() < 0.05:  # a pipe only there: a user may well name one as the file to read
                random.choice((remove, folder_in_place, link, pipe if kind == "images" else remove))(random, path)
            else:
                damage = next(damage for suffix, damage in DAMAGES.items() if path.name.endswith(suffix))
                path.write_bytes(damage(random, path.read_bytes()))

    def check(self, folder: Path) -> None:
        """Read the files; a refusal names one of them, or for maps any file of the machine."""
        [kind] = (path.name for path in folder.iterdir() if path.name in KINDS)
        _, read, suffixes = KINDS[kind]
        single = sorted(path for path in (folder / kind).iterdir() if path.name.endswith(suffixes))
        names = {path.name for path in folder.rglob("*")}
        for path in single if suffixes else [folder / kind]:
            with nothing_written(), warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                try:
                    read(path)
                except BadInput as error:
                    for sentence in error.problems:
                        if not any(name in sentence for name in names) and not Path(sentence.split(",")[0]).is_file():
                            raise Broken(f"names no file: {sentence}") from None


@cache
def _valid_files(parent: Path) -> Path:
    """A folder with the valid files of all kinds, beside the attempts, with which it is removed."""
    folder = parent / "valid"
    for kind, (write, *_) in KINDS.items():
        (folder / kind).mkdir(parents=True)
        write(folder / kind)
    return folder


_watched: list[str] = []
_WRITING = ("os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link", "shutil.unpack_archive")


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if _watched and (opens or event in _WRITING) and "__pycache__" not in str(arguments[0]):
        _watched.append(f"{event} {arguments[0]}")


sys.addaudithook(_hook)  # for the rest of the process: there is no way to remove it


@contextmanager
def nothing_written() -> Iterator[None]:
    """Raise Broken if a file is opened for writing, except compiled Python."""
    _watched[:] = ["watching"]
    try:
        yield
        if written := _watched[1:]:
            raise Broken(f"writes {', '.join(written)}")
    finally:
        _watched.clear()


ATTACK = DataFiles()
