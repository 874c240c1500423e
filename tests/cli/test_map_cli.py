"""`map import`: from an .osm file to a folder with an experiment that can be run."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.command_line import call, start
from tests.mobility.sumo.towns import osm
from tests.resumable import only
from vefl_sim import load, simulate
from vefl_sim.mobility.sumo.inputs import net_of
from vefl_sim.mobility.sumo.map_import import NET_FILE, import_map

FILES = ["demand.rou.xml.gz", "experiment.toml", "map.net.xml.gz", "map.png", "map.sumocfg"]


def map_import(*arguments: object) -> subprocess.CompletedProcess[str]:
    return call("map", "import", *arguments)


@pytest.mark.slow
def test_from_a_map_to_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "maps" / "town"
    done = map_import(osm(tmp_path / "my town.osm"), "-o", folder, "--gnb", "0.0018,10.0027", "--vehicles", 8)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    found = "5 junctions (0 with signals), 16 streets of 5.8 km, each direction counted"
    assert lines[0] == f"{tmp_path / 'my town.osm'}: 0.6 × 0.4 km, {found}"
    assert lines[1].startswith("gNB at [300.")
    assert lines[2].startswith("wanted in coverage: 8 vehicles, at ")
    assert abs(float(lines[2].split("a pilot run had ")[1].split()[0]) - 8) < 1.0
    assert " in steps of 0.1 s at " in lines[2]
    assert lines[-1] == f"run it with: python -m vefl_sim {folder / 'experiment.toml'}"
    assert sorted(file.name for file in folder.iterdir()) == FILES
    assert (folder / "map.png").read_bytes()[:4] == b"\x89PNG"
    assert not list(tmp_path.glob("maps/.*"))
    short = ("run.duration_s=5.0", "vefl.round_s=1.0", "learning.kind=none", "mobility.start_s=30.0")
    settings = (*short, "model.factory=tests.scripted:thousand_weights", "data.train_samples=800", "data.image_px=16")
    experiment = load(folder / "experiment.toml", settings)
    assert experiment.run.name == "my-town"
    assert simulate(experiment, out=tmp_path / "runs").is_done
    assert (only(tmp_path / "runs").path / "traffic" / "trajectory.parquet").exists()
    assert "exists already, and nothing is overwritten" in map_import(osm(tmp_path / "x.osm"), "-o", folder).stderr


def test_import_of_a_sumo_net(tmp_path: Path) -> None:
    net = net_of(str(osm(tmp_path / "x.osm")), tmp_path).path
    made = import_map(net, tmp_path / "town", None, 5.0, lambda imported, picture: True)
    assert made.gnb_m == pytest.approx((300.6, 199.0), abs=2.0)
    assert NET_FILE in made.lines()[-2]


@pytest.mark.parametrize(
    ("file", "options", "sentence"),
    [
        ("no.osm", (), "no.osm: there is no such file."),
        ("x.png", (), "has an unknown format: it must be .osm(.gz) or .net.xml(.gz)."),
        ("paths.osm", (), "paths.osm"),
        ("x.osm", ("--gnb", "north"), "--gnb north: write latitude,longitude in degrees"),
        ("x.osm", ("--gnb", "100,0"), "is not a latitude and a longitude"),
        ("x.osm", ("--gnb", "1,1"), "is within radio.coverage_radius_m = 500 of the gNB"),
    ],
)
def test_bad_input(tmp_path: Path, file: str, options: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "x.png").touch()
    osm(tmp_path / "x.osm")
    osm(tmp_path / "paths.osm", "footway")
    refused = map_import(tmp_path / file, "-o", tmp_path / "town", *options)
    assert refused.returncode == 2
    *_, message = refused.stderr.strip().splitlines()  # the error follows the progress lines
    assert sentence in message
    assert not (tmp_path / "town").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_few_vehicles_and_unusual_names(tmp_path: Path) -> None:
    """A name of a hundred letters, a quote and a backslash; so few vehicles that no street has one per hour."""
    folder = tmp_path / 'q"\\b'
    assert map_import(osm(tmp_path / f"{'long ' * 20}.osm"), "-o", folder, "--vehicles", 0.1).returncode == 0
    moved = folder.rename(tmp_path / "moved")
    experiment = load(moved / "experiment.toml")
    assert experiment.mobility.file == str(moved / NET_FILE)
    assert experiment.run.name.startswith("long-long-")
    assert (moved / "map.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_import_leaves_no_files(tmp_path: Path, number: signal.Signals) -> None:
    """Interrupted during a pilot run; progress is printed on stderr."""
    command = "-m", "vefl_sim", "map", "import", osm(tmp_path / "x.osm"), "-o", tmp_path / "town"
    with start(*command, stderr=subprocess.PIPE) as process:
        assert process.stderr
        lines = [process.stderr.readline().strip() for _ in range(3)]
        assert lines[0] == f"netconvert reads {tmp_path / 'x.osm'}"
        assert lines[2].startswith("pilot run 1")
        assert list(tmp_path.glob(".town-*"))
        process.send_signal(number)
        assert f"{tmp_path / 'town'} was not created" in process.stderr.read()
    assert process.returncode not in (0, None)
    assert [file.name for file in tmp_path.iterdir()] == ["x.osm"]
