"""`data get`, `data list`, `data show`, and a run on data from files, as a user sees them."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from PIL import Image

from tests.command_line import call
from tests.learning.datasets.files import write_compact_gtsrb, write_gtsrb, write_mnist
from tests.learning.datasets.test_public import CONTENT, Server, server
from tests.protocol.test_golden import EXPERIMENT
from tests.schemes.plain_world import experiment as plain_experiment
from vefl_sim import from_tables, simulate
from vefl_sim.analysis.data_split import DataSplit, data_split
from vefl_sim.learning.datasets.public import SOURCES, RemoteFile, inventory
from vefl_sim.simulation.scenario import build_scenario

__all__ = ["server"]  # a fixture


def vefl_sim(*arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, called in the folder of the test."""
    done = call(*arguments, cwd=Path.cwd())
    return done.returncode, done.stdout, done.stderr


def digest(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture
def small_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A parent folder with a small MNIST, and its digests as the correct ones."""
    folder = write_mnist(tmp_path / "mnist")
    files = tuple(RemoteFile(path.name, digest(path), ()) for path in sorted(folder.iterdir()))
    monkeypatch.setitem(SOURCES, "mnist", files)
    return tmp_path


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """Three cars share a small MNIST."""
    data = {"kind": "mnist", "dir": str(write_mnist(tmp_path / "mnist")), "min_samples": 5}
    path = tmp_path / "cars.toml"
    path.write_text(tomli_w.dumps(EXPERIMENT | {"data": data}))
    return path


def test_get_downloads_and_prints_the_folder(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RemoteFile("cifar-10-binary.tar.gz", hashlib.md5(CONTENT).hexdigest(), (server.address,))
    monkeypatch.setitem(SOURCES, "cifar10", (file,))
    monkeypatch.setenv("VEFL_SIM_CACHE", str(tmp_path))
    folder = tmp_path / "data" / "cifar10"
    code, out, err = vefl_sim("data", "get", "cifar10")
    assert (code, out) == (0, f"cifar10 is complete in {folder}\n")
    assert "cifar-10-binary.tar.gz" in err
    assert "256.0/256.0 kB" in err
    assert (folder / file.name).read_bytes() == CONTENT
    server.behaviours = ["wrong"]
    code, out, err = vefl_sim("data", "get", "cifar10", "--dir", tmp_path / "mine")
    assert (code, out) == (2, "")
    assert [line for line in err.splitlines() if line.startswith("error: ") and "digest" in line]


def test_list_prints_the_state_of_each_data_set(small_mnist: Path) -> None:
    write_compact_gtsrb(small_mnist / "gtsrb")
    code, out, _ = vefl_sim("data", "list", "--dir", small_mnist)
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == ["signs", "positions", "mnist", "fashion-mnist", "cifar10", "gtsrb"]
    assert lines[2].endswith(f"{small_mnist / 'mnist'}  complete")
    assert lines[4].endswith("not there")
    refused = vefl_sim("data", "list", "--dir", small_mnist / "nothing")
    assert refused[0] == 2
    assert refused[2].endswith("there is no such folder: name an existing folder.\n")
    assert lines[5].endswith("gtsrb-32x32-test-jpeg.zip, in compact form")


def test_an_inventory_distinguishes_missing_from_damaged(small_mnist: Path) -> None:
    images = small_mnist / "mnist" / "train-images-idx3-ubyte.gz"
    images.write_bytes(images.read_bytes()[:-1])
    assert "damaged, wrong digest of train-images-idx3-ubyte.gz" in {one.state for one in inventory(small_mnist)}
    images.unlink()
    assert "incomplete, without train-images-idx3-ubyte.gz" in {one.state for one in inventory(small_mnist)}


def test_training_on_data_from_files(tmp_path: Path) -> None:
    data = {"kind": "gtsrb", "dir": str(write_gtsrb(tmp_path / "signs")), "min_samples": 3, "image_px": 16}
    learning = {"learning": {"kind": "jax"}, "model": {"factory": "vefl_models.cnn:cnn"}, "vefl": {"round_s": 5.0}}
    run = simulate(from_tables(EXPERIMENT | learning | {"data": data}), out=tmp_path / "runs")
    assert run.rounds["accuracy"].isin([0.0, 0.5, 1.0]).all()  # of two test images


def test_show_counts_and_draws(toml: Path) -> None:
    picture = toml.parent / "split.png"
    code, out, _ = vefl_sim("data", "show", toml, "--set", "data.partition=iid", "--out", picture.with_suffix(""))
    assert code == 0
    assert out.splitlines()[:2] == [
        "mnist: 40 samples of 10 classes over 3 CVs, IID",
        "samples per CV: minimum 13, median 13, maximum 14",
    ]
    with Image.open(picture) as image:
        colours = image.convert("RGB").getcolors(1 << 20)
    assert colours is not None
    assert len(colours) > 50  # something is drawn


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no/such.png", "cannot be written: there is no folder"),
        ("mnist", "is a folder: name a file in it, for example {}/data.png."),
        ("split.doc", "cannot be written: the name of a picture must end with .png or .pdf or .svg."),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_data_are_read(toml: Path, name: str, words: str) -> None:
    picture = toml.parent / name
    code, out, err = vefl_sim("data", "show", toml, "--out", picture)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {picture} {words.format(picture)}")


def test_statistics_of_a_split() -> None:
    split = DataSplit("toy", "IID", np.array([[9, 1, 0], [1, 1, 1], [0, 2, 2]]), groups=5)
    assert split.large_classes.tolist() == [1, 3, 2]
    assert split.lines()[2:] == [
        "classes per CV: minimum 2, median 2, maximum 3; the 2 largest (median) contain 90% of the samples of a CV",
        "5 groups of samples, each held by one CV",
    ]


def test_show_names_the_adversaries() -> None:
    """The CVs that `data show` names are those whose labels a run flips."""
    of, honest = (plain_experiment("fedavg", adversary={"share": share}) for share in (0.5, 0.0))
    run, labels = build_scenario(of), build_scenario(honest).dataset.train_targets
    flipped = [cv for cv, own in run.shards.items() if (run.dataset.train_targets[own] != labels[own]).any()]
    split = data_split(of)
    assert list(split.adversaries) == flipped
    assert 0 < len(flipped) < len(run.shards)
    [line] = (line for line in split.lines() if "adversaries" in line)
    assert line.startswith(f"{len(flipped)} of {len(run.shards)} CVs are adversaries")
    assert line.endswith(f": {', '.join(map(str, flipped))}")
