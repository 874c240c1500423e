"""Maps that are broken, empty or far from the gNB: each gives one error message and no run directory."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from tests.mobility.sumo.towns import grid_net, osm, town
from vefl_sim import BadInput
from vefl_sim.cli.main import main
from vefl_sim.mobility.sumo import programs
from vefl_sim.mobility.sumo.inputs import net_of
from vefl_sim.mobility.sumo.net import read_net
from vefl_sim.mobility.sumo.programs import complaint

NET = """<net version="1.20"><location projParameter="!"/>
<edge id=":c_0" function="internal"><lane id=":c_0_0" index="0" speed="9" length="2" shape="0,0 2,0"/></edge>
<edge id="a"><lane id="a_0" index="0" disallow="passenger bus" speed="9" length="50" shape="0,0 50,0"/>
  <lane id="a_1" index="1" allow="passenger" speed="9" length="50" shape="0,3 50,3"/></edge>
<edge id="b"><lane id="b_0" index="0" speed="14" length="200" shape="-100,40 100,40"/></edge>
<edge id="walk"><lane id="w_0" index="0" allow="pedestrian" speed="1" length="9" shape="0,0 9,0"/></edge>
<junction id="c" type="traffic_light" x="50" y="0"/><junction id="e" type="dead_end" x="0" y="0"/></net>"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grid_net(tmp_path_factory.mktemp("net"))


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


class TestNet:
    def test_what_cars_may_use(self, tmp_path: Path) -> None:
        found = read_net(written(tmp_path / "x.net.xml", NET), "x")
        assert [(s.name, s.lanes, s.length_m, s.limit_mps) for s in found.streets] == [
            ("a", 1, 50, 9),
            ("b", 1, 200, 14),
        ]
        assert len(found.junctions_m) == 1
        assert found.signals_m.tolist() == [[50, 0]]
        assert found.length_m == 250
        assert found.centre_m == (0.0, 21.5)
        assert not found.has_degrees

    def test_metres_within_a_circle(self, tmp_path: Path) -> None:
        found = read_net(written(tmp_path / "x.net.xml", NET), "x")
        assert found.metres_within((0.0, 0.0), 50.0) == pytest.approx([np.sqrt(50**2 - 9), 60.0])
        assert found.metres_within((0.0, 0.0), 39.9)[1] == 0.0
        assert found.metres_within((500.0, 0.0), 50.0).tolist() == [0.0, 0.0]

    def test_the_same_gzipped_is_the_same_net(self, tmp_path: Path) -> None:
        plain = written(tmp_path / "x.net.xml", f"<!-- today -->{NET}")
        zipped = tmp_path / "y.net.xml.gz"
        zipped.write_bytes(gzip.compress(f"<!-- tomorrow -->{NET}".encode()))
        assert read_net(plain, "x") == read_net(zipped, "y")


class TestBadInput:
    def refused(self, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], **mobility: object) -> str:
        """The error message of the command line, which exits with code 2 and leaves no run directory."""
        tables = town(file).model_dump(exclude_defaults=True, exclude_none=True)
        tables["mobility"] |= mobility
        toml = written(tmp_path / "town.toml", tomli_w.dumps(tables))
        with pytest.raises(SystemExit) as end:
            main([str(toml), "--out", str(tmp_path / "runs"), "--quiet"])
        assert end.value.code == 2
        assert not list((tmp_path / "runs").glob("*"))
        [message] = capsys.readouterr().err.strip().splitlines()
        return message.removeprefix("error: ")

    @pytest.mark.parametrize(
        ("name", "text", "sentence"),
        [
            ("cut.net.xml", NET[:300], "line 4: it is not XML, or it is incomplete (unclosed token): write it again."),
            ("other.net.xml", "<routes/>", "is not a network of SUMO, or has no street that cars may use: choose a"),
            ("walk.net.xml", re.sub('<edge id="[ab]"', '<edge id="w" function="crossing"', NET), "has no street"),
            ("bad.net.xml", NET.replace("-100,40", "north"), "or it is incomplete (could not convert string"),
            ("far.net.xml", NET.replace("-100,40", "-1e200,40"), "(-1e200 m is farther than around the Earth)"),
            ("nothing.osm", " ", "line 1: it is not XML, or it is incomplete (no element found)"),
            ("cut.osm", "<osm><node", "line 1: it is not XML, or it is incomplete (unclosed token)"),
            ("x.sumocfg", "<configuration/>", "is not a configuration of SUMO: it names no net-file."),
            ("x.sumocfg", '<a><net-file value="no.net.xml"/></a>', "no.net.xml, and there is no such file."),
            ("x.sumocfg", f'<a><n v="{"n" * 300}.xml"/></a>', "n.xml, and there is no such file."),
            ("x.sumocfg", '<a><remote-port value="48813"/></a>', 'sets remote-port = "48813", and only options'),
            ("x.sumocfg", '<?xml version="1.0" encoding="foo"?><a/>', "is not a configuration of SUMO (unknown"),
            ("x.net.xml", f'<?xml version="1.0" encoding="foo"?>{NET}', "line 1: it has an unknown encoding (unknown"),
            ("none.osm", None, "there is no such file; relative paths start at the folder of the experiment's"),
            ("x.png", "", "has an unknown format: it must be .sumocfg, .net.xml(.gz) or .osm(.gz)."),
        ],
    )  # fmt: skip
    def test_files(self, tmp_path: Path, capsys, name: str, text: str | None, sentence: str) -> None:
        file = tmp_path / name if text is None else written(tmp_path / name, text)
        message = self.refused(file, tmp_path, capsys)
        assert f'mobility.file = "{file}"' in message
        assert sentence in message

    def test_a_net_that_does_not_reach_the_gnb(self, net: Path, tmp_path: Path, capsys) -> None:
        message = self.refused(net, tmp_path, capsys, origin_m=[160.0, 900.0])
        assert message == (
            f"No street of {net} is within radio.coverage_radius_m = 150 of the gNB at [160.0, 900.0]: "
            "set mobility.origin_m; the streets are from [0, 0] to [320, 280]."
        )

    def test_degrees_in_a_net_without(self, net: Path, tmp_path: Path, capsys) -> None:
        message = self.refused(net, tmp_path, capsys, origin_deg=[37.8, -122.3])
        assert message == f"{net} has no geographic coordinates: set mobility.origin_m instead of mobility.origin_deg."

    def test_a_net_that_crashes_sumo(self, net: Path, tmp_path: Path, capsys) -> None:
        text = re.sub("<connection .*?/>", "", net.read_text())
        message = self.refused(written(tmp_path / "x.net.xml", text), tmp_path, capsys)
        assert 'x.net.xml": SUMO says: nothing, it crashes: ' in message

    def test_without_sumo(self, net: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(programs, "find_spec", lambda name: None)
        assert self.refused(net, tmp_path, capsys) == (
            "Maps need SUMO, which is not installed here: pip install 'vefl_sim[sumo]'."
        )


class TestKeys:
    @pytest.mark.parametrize(
        ("tables", "sentence"),
        [
            ({"mobility": {"file": ""}}, 'mobility.kind = "sumo" needs mobility.file'),
            ({"mobility": {"origin_m": [0, 0], "origin_deg": [0, 0]}}, "both set the position of the gNB"),
            ({"mobility": {"step_s": 0.0005}}, "is not a whole number of milliseconds, as SUMO needs"),
            ({"mobility": {"start_s": 30.0005}}, "mobility.start_s = 30.0005 is not a whole number of milliseconds"),
            ({"traffic": {"warm_start": False}}, "mobility.start_s lets the traffic settle"),
            ({"sumo": {"client": "libtraci"}}, "sumo.client = \"libtraci\": it must be 'libsumo' or 'traci'"),
            ({"mobility": {"origin_deg": 5}}, "mobility.origin_deg = 5: it must be a point [x, y]"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_meant(self, tables: dict, sentence: str) -> None:
        with pytest.raises(BadInput) as error:
            town("x.net.xml", **tables)
        assert sentence in str(error.value)


def test_a_program_complains_with_its_first_error_and_its_place() -> None:
    text = "Warning: x\nError: invalid\n In file 'a'\n At line/column 1/2.\nQuitting (on error).\n"
    assert complaint(text) == "invalid In file 'a' At line/column 1/2."
    assert complaint("Traceback\n  File\nValueError: no sources\n") == "ValueError: no sources."


def test_gzipped_openstreetmap(tmp_path: Path) -> None:
    path = tmp_path / "x.osm.gz"
    path.write_bytes(gzip.compress(osm(tmp_path / "x.osm").read_bytes()))
    assert len(net_of(str(path), tmp_path).streets) == 16  # netconvert does not count corners as junctions
