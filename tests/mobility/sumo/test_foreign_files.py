"""Configurations and maps from anywhere: SUMO writes none of the files that they name, and their size is bounded."""

import gzip
import os
from pathlib import Path

import pytest

from tests.mobility.sumo.towns import grid_net, osm, town
from vefl_sim import BadInput
from vefl_sim.mobility.sumo import foreign_files
from vefl_sim.mobility.sumo import net as net_module
from vefl_sim.mobility.sumo.configuration import read_configuration
from vefl_sim.mobility.sumo.foreign_files import require_harmless
from vefl_sim.mobility.sumo.inputs import map_digest, renew
from vefl_sim.mobility.sumo.map_import import import_map
from vefl_sim.mobility.sumo.net import read_net
from vefl_sim.mobility.sumo.traffic import drive, driven_trajectory, prepare_sumo

KEPT = "the user's own"
TRIPS = '<flow id="a" begin="0" end="60" period="2" from="left0A0" to="C2right2">{}</flow>'


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grid_net(tmp_path_factory.mktemp("net"), "--default-junction-type", "traffic_light")


@pytest.fixture
def folder(net: Path, tmp_path: Path) -> Path:
    """A folder with a network, trips, and a file that nobody may overwrite."""
    (tmp_path / "net.xml").write_bytes(net.read_bytes())
    (tmp_path / "trips.xml").write_text(f"<routes>{TRIPS.format('')}</routes>")
    (tmp_path / "kept").write_text(KEPT)
    return tmp_path


def configured(folder: Path, options: str = "", more: str | None = None) -> Path:
    """A configuration with further options and, as an additional file, further elements."""
    if more is not None:
        (folder / "more.xml").write_text(f"<additional>{more}</additional>")
        options += '<additional-files value="more.xml"/>'
    path = folder / "town.sumocfg"
    files = '<input><net-file value="net.xml"/></input><route-files value="trips.xml"/>'
    path.write_text(f"<configuration>{files}{options}</configuration>")
    return path


def refused(file: Path, folder: Path) -> str:
    """The one sentence with which a run refuses a file, and nothing is written."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(BadInput) as error:
        drive(town(file, mobility={"start_s": 0.0}), folder / "traffic")
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before
    [sentence] = error.value.problems
    return sentence


def vehicles(file: Path, folder: Path) -> int:
    """How many vehicles are there after five seconds."""
    experiment = town(file, mobility={"start_s": 10.0})
    scenes = driven_trajectory(drive(experiment, folder / "traffic"), experiment)
    return max(scenes.advance().vehicle.size for _ in range(50))


class TestOptions:
    @pytest.mark.parametrize(
        "option",
        [
            "tripinfo-output", "tripinfo", "fcd-output", "summary-output", "netstate-dump", "ndump", "vehroutes",
            "statistic-output", "edgedata-output", "log", "l", "log-file", "message-log", "error-log", "save-template",
            "save-configuration", "save-schema", "save-state.prefix", "save-state.period", "output-prefix",
            "device.ssm.file", "device.toc.file", "device.rerouting.output", "device.taxi.dispatch-algorithm.output",
            "pedestrian.jupedsim.py", "pedestrian.jupedsim.wkt", "gui-testing.setting-output", "configuration-file",
            "astar.landmark-distances", "phemlight-path", "remote-port", "write-license", "python-script", "unheard-of",
        ],
    )  # fmt: skip
    def test_whatever_is_not_known_to_be_harmless(self, folder: Path, option: str) -> None:
        sentence = refused(configured(folder, f'<output><{option} value="kept"/></output>'), folder)
        assert f'town.sumocfg" sets {option} = "kept", and only options that read files or change' in sentence

    def test_text_counts_as_a_value(self, folder: Path) -> None:
        assert 'sets log = "kept"' in refused(configured(folder, "<log>kept</log>"), folder)

    def test_what_changes_the_traffic_is_passed_on(self, folder: Path) -> None:
        path = configured(folder, '<b v="3"/><scale value="2"/><time-to-teleport.ride value="7"/><verbose value="1"/>')
        assert read_configuration(path).arguments() == (
            f"--net-file={folder / 'net.xml'}", f"--route-files={folder / 'trips.xml'}",
            "--b=3", "--scale=2", "--time-to-teleport.ride=7",
        )  # fmt: skip

    def test_the_run_sets_the_rest(self, folder: Path) -> None:
        """With an option twice SUMO would not start; what is only for sumo-gui need not exist."""
        options = '<step-length value="1"/><seed v="5"/><gui-settings-file v="no.xml"/><collision.action v="none"/>'
        assert vehicles(configured(folder, f'{options}<begin value="0"/><max-depart-delay value="5"/>'), folder) > 2

    def test_a_value_is_never_an_option(self, folder: Path) -> None:
        assert "SUMO says" in refused(configured(folder, '<ignore-route-errors value="--fcd-output=kept"/>'), folder)

    @pytest.mark.parametrize("name", ["http://127.0.0.1:9/net.xml", "/dev/zero", "missing.xml", "${HOME", "."])
    def test_inputs_are_files_on_this_machine(self, folder: Path, name: str) -> None:
        assert refused(configured(folder, f'<a value="{name}"/>'), folder).endswith("and there is no such file.")


class TestVariables:
    """SUMO expands ${…} anywhere in a path, so that the file that is checked would not be the one that it reads."""

    @pytest.fixture
    def harmless(self, folder: Path) -> Path:
        """A folder whose name SUMO expands to that of another one, with an additional file that writes."""
        (folder / "x").mkdir()
        (folder / "x" / "more.xml").write_text('<additional><laneData id="d" freq="1" file="../kept"/></additional>')
        (folder / "x${NOPE}").mkdir()
        (folder / "x${NOPE}" / "more.xml").write_text("<additional/>")
        return folder / "x${NOPE}"

    def test_in_a_configuration(self, folder: Path, harmless: Path) -> None:
        assert "more.xml has a $, which SUMO expands: rename" in refused(
            configured(folder, f'<a value="{harmless.name}/more.xml"/>'), folder
        )

    def test_in_an_included_file(self, folder: Path, harmless: Path) -> None:
        assert "more.xml has a $" in refused(
            configured(folder, more=f'<include href="{harmless.name}/more.xml"/>'), folder
        )

    def test_in_the_folder_of_a_configuration(self, folder: Path, harmless: Path) -> None:
        for path in (folder / "net.xml", folder / "trips.xml", configured(folder)):
            path.rename(harmless / path.name)
        assert "town.sumocfg has a $" in refused(harmless / "town.sumocfg", folder)

    @pytest.mark.parametrize("variable", ["${NOPE}", "${PID}"])
    def test_in_the_folder_of_a_network(self, folder: Path, variable: str) -> None:
        (folder / variable).mkdir()
        (folder / "net.xml").rename(folder / variable / "x.net.xml")
        assert "x.net.xml has a $" in refused(folder / variable / "x.net.xml", folder)

    def test_in_the_folder_where_a_run_starts(self, folder: Path, harmless: Path, monkeypatch) -> None:
        (folder / "net.xml").rename(harmless / "x.net.xml")
        monkeypatch.chdir(harmless)
        assert "x.net.xml has a $" in refused(Path("x.net.xml"), folder)

    def test_in_what_is_written(self, net: Path, harmless: Path) -> None:
        with pytest.raises(BadInput, match=r"NOPE} has a \$"):
            prepare_sumo(town(net), harmless)
        with pytest.raises(BadInput, match=r"NOPE} has a \$"):
            import_map(net, harmless, None, 5.0, lambda imported, picture: True)


class TestContent:
    @pytest.mark.parametrize(
        "element",
        [
            '<e1Detector id="d" lane="A0A1_0" pos="9" period="1" file="kept"/>',
            '<inductionLoop id="d" lane="A0A1_0" pos="9" period="1" file="kept"/>',
            '<laneAreaDetector id="d" lane="A0A1_0" pos="0" endPos="9" period="1" file="kept"/>',
            '<entryExitDetector id="d" period="1" file="kept"><detEntry lane="A0A1_0" pos="9"/></entryExitDetector>',
            '<instantInductionLoop id="d" lane="A0A1_0" pos="9" file="kept"/>',
            '<edgeData id="d" period="1" file="kept"/>',
            '<laneData id="d" period="1" file="kept"/>',
            '<vTypeProbe id="d" period="1" file="kept"/>',
            '<routeProbe id="d" edge="A0A1" period="1" file="kept"/>',
            '<calibrator id="d" edge="A0A1" pos="0" output="kept"/>',
            '<timedEvent type="SaveTLSStates" source="A0" dest="kept"/>',
            '<timedEvent type="SaveTLSSwitchTimes" source="A0" dest="kept"/>',
        ],
    )
    def test_detectors_and_the_like(self, folder: Path, element: str) -> None:
        tag = element[1:].split()[0]
        assert f"more.xml, line 1: <{tag}> would write the file " in refused(configured(folder, more=element), folder)

    def test_a_detector_for_a_signal(self, folder: Path) -> None:
        element = '<e1Detector id="d" lane="left0A0_0" pos="9" period="1" file="NUL"/>'
        assert vehicles(configured(folder, more=element), folder) > 2

    @pytest.mark.parametrize(
        ("key", "value"),
        [("device.ssm.file", "kept"), ("has.ssm.device", "true"), ("device.toc.file", "kept"), ("file", "kept")],
    )
    def test_parameters_of_devices_and_signals(self, folder: Path, key: str, value: str) -> None:
        parameter = f'<param key="{key}" value="{value}"/>'
        (folder / "trips.xml").write_text(f"<routes>{TRIPS.format(parameter)}</routes>")
        assert f'trips.xml, line 1: the parameter {key} = "{value}" would write' in refused(configured(folder), folder)

    def test_signals_that_write_logs(self, folder: Path) -> None:
        more = '<tlLogic id="A0" programID="1" type="swarm"><phase duration="9" state="G"/></tlLogic>'
        assert 'a signal has the type "swarm": choose one of static' in refused(configured(folder, more=more), folder)

    @pytest.mark.parametrize("packed", [False, True])
    def test_in_a_file_that_a_file_includes(self, folder: Path, packed: bool) -> None:
        """Packed or not, whatever the name says, as SUMO reads it."""
        text = b'<additional><edgeData id="d" period="1" file="kept"/></additional>'
        (folder / "deep.xml").write_bytes(gzip.compress(text) if packed else text)
        (folder / "less.xml").write_text('<additional><include href="deep.xml"/></additional>')
        assert "deep.xml, line 1: <edgeData> would write" in refused(
            configured(folder, more='<include href="less.xml"/>'), folder
        )

    def test_in_a_network(self, folder: Path) -> None:
        text = (folder / "net.xml").read_text().replace("</net>", '<edgeData id="d" period="1" file="kept"/></net>')
        (folder / "x.net.xml").write_text(text)
        assert "<edgeData> would write the file" in refused(folder / "x.net.xml", folder)
        with pytest.raises(BadInput, match="<edgeData> would write the file"):
            renew(folder / "x.net.xml", folder / "new.net.xml", "x")

    def test_in_a_map(self, folder: Path) -> None:
        path = osm(folder / "x.osm")
        path.write_text(path.read_text().replace("</osm>", '<include href="nothing.xml"/></osm>'))
        assert "<include> names" in refused(path, folder)
        with pytest.raises(BadInput, match="<include> names"):
            import_map(path, folder / "town", None, 5.0, lambda imported, picture: True)

    def test_entities(self, folder: Path) -> None:
        (folder / "more.xml").write_text('<!DOCTYPE a [<!ENTITY e SYSTEM "kept">]><additional>&e;</additional>')
        assert "more.xml, line 1: it has a document type" in refused(
            configured(folder, '<a value="more.xml"/>'), folder
        )

    def test_other_encodings(self, folder: Path) -> None:
        (folder / "more.xml").write_bytes('<?xml version="1.0" encoding="cp500"?><additional/>'.encode("cp500"))
        assert "more.xml, line 1: " in refused(configured(folder, '<a value="more.xml"/>'), folder)
        (folder / "more.xml").write_text('<?xml version="1.0" encoding="cp1252"?><additional/>')
        assert "the encoding cp1252 is refused" in refused(configured(folder, '<a value="more.xml"/>'), folder)

    def test_files_that_include_each_other(self, folder: Path) -> None:
        (folder / "deep.xml").write_text('<additional><include href="more.xml"/></additional>')
        assert "more.xml is included twice, or includes itself" in refused(
            configured(folder, more='<include href="deep.xml"/>'), folder
        )

    def test_a_digest_does_not_wait_for_a_pipe(self, folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        with pytest.raises(BadInput, match="there is no such file"):
            map_digest(str(configured(folder, '<a value="pipe"/>')))


class TestBounds:
    def test_of_bytes(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(foreign_files, "MAX_BYTES", 1 << 20)
        (folder / "x.xml").write_bytes(gzip.compress(b"<additional>" + b" " * (2 << 20) + b"</additional>"))
        with pytest.raises(BadInput, match=r"x.xml cannot be read: with the files named before it has more than"):
            require_harmless([folder / "x.xml"])

    def test_of_one_file(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(foreign_files, "_SMALL_BYTES", 1 << 20)
        (folder / "x.xml").write_bytes(gzip.compress(b"<additional>" + b" " * (2 << 20) + b"</additional>"))
        with pytest.raises(BadInput, match=r"x.xml cannot be read: it unpacks to more than 1.\d+ MB"):
            require_harmless([folder / "x.xml"])

    def test_of_all_files_together(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "x.xml").write_text(f"<additional>{' ' * 600}</additional>")
        (folder / "y.xml").write_text(f"<additional>{' ' * 600}</additional>")
        monkeypatch.setattr(foreign_files, "MAX_BYTES", 1000)
        require_harmless([folder / "x.xml"])
        with pytest.raises(BadInput, match=r"y.xml cannot be read"):
            require_harmless([folder / "x.xml", folder / "y.xml"])

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("<a>" * 100, "more than 64 elements in each other"),
            (f'<a b="{"x" * (5 << 20)}"/>', "has a tag or a comment of more than 4 MB"),
            (f"<a><!--{'x' * (5 << 20)}--></a>", "has a tag or a comment of more than 4 MB"),
            (f"<a>{'<b/>' * 20}</a>", "there are more than 10 elements"),
        ],
    )
    def test_of_elements(self, tmp_path: Path, monkeypatch, text: str, sentence: str) -> None:
        if text.startswith("<a><b/>"):
            monkeypatch.setattr(foreign_files, "MAX_ELEMENTS", 10)
        (tmp_path / "x.xml").write_text(text)
        with pytest.raises(BadInput, match=sentence):
            require_harmless([tmp_path / "x.xml"])

    def test_of_a_network(self, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        edge = '<edge id="a"><lane id="b" index="0" speed="9" length="9" shape="0,0 9,0"/>{}</edge>'
        (tmp_path / "x.net.xml").write_text(f"<net>{edge.format('<param/>' * 100)}</net>")
        assert len(read_net(tmp_path / "x.net.xml", "x").streets) == 1
        monkeypatch.setattr(net_module, "_MAX_PARTS", 50)
        with pytest.raises(BadInput, match="<edge> has more than 50 parts"):
            read_net(tmp_path / "x.net.xml", "x")
        monkeypatch.setattr(net_module, "MAX_POINTS", 250)
        with pytest.raises(BadInput, match="has too many streets: use at most 10 of them"):
            read_net(net, "x")
