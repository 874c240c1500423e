"""Configurations and maps from anywhere: SUMO writes none of the files that they name, and their size is bounded."""

import gzip
import os
from pathlib import Path
from shutil import rmtree
from xml.etree import ElementTree

import pytest

from tests.mobility.sumo.towns import grid_net, osm, town
from vefl_sim import BadInput
from vefl_sim.mobility.sumo import foreign_files
from vefl_sim.mobility.sumo import inputs as inputs_module
from vefl_sim.mobility.sumo import net as net_module
from vefl_sim.mobility.sumo.foreign_files import copy_without_outputs, require_harmless
from vefl_sim.mobility.sumo.inputs import convert, map_digest, net_of, read_configuration
from vefl_sim.mobility.sumo.map_import import import_map
from vefl_sim.mobility.sumo.net import read_net
from vefl_sim.mobility.sumo.programs import require_accepted, run_program
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
            "save-template", "save-configuration", "save-schema", "configuration-file", "astar.landmark-distances",
            "remote-port", "python-script", "unheard-of",
        ],
    )  # fmt: skip
    def test_whatever_is_not_known_to_be_harmless(self, folder: Path, option: str) -> None:
        sentence = refused(configured(folder, f'<output><{option} value="kept"/></output>'), folder)
        assert f'town.sumocfg" sets {option} = "kept", and only options that read files or change' in sentence

    def test_all_of_them_are_named(self, folder: Path) -> None:
        with pytest.raises(BadInput) as error:
            read_configuration(configured(folder, '<unheard-of v="1"/><remote-port v="9"/>'))
        assert [problem.split(" sets ")[1].split()[0] for problem in error.value.problems] == [
            "unheard-of",
            "remote-port",
        ]

    def test_of_all_options_that_name_a_file_only_inputs_are_passed_on(self, folder: Path) -> None:
        """All options of the installed SUMO, from its own template, by all their names."""
        run_program("sumo", ("--save-template", folder / "all.xml"), "no template")
        named = [e for e in ElementTree.parse(folder / "all.xml").iter() if e.get("type") == "FILE"]
        names = [name for e in named for name in (e.tag, *e.get("synonymes", "").split())]
        assert len(names) > 80
        inputs = set(names) & set(inputs_module._INPUTS)
        assert inputs == set(inputs_module._INPUTS)
        for name in set(names) - inputs:
            try:
                passed = read_configuration(configured(folder, f'<{name} value="kept"/>')).arguments({})
            except BadInput:
                continue
            assert len(passed) == 2, name

    @pytest.mark.parametrize(
        "option",
        [
            "tripinfo", "l", "save-state.period", "output-prefix", "device.ssm.file", "device.rerouting.output",
            "pedestrian.jupedsim.py", "tripinfo-output.write-unfinished", "device.fcd.probability",
        ],
    )  # fmt: skip
    def test_outputs_are_left_out(self, folder: Path, option: str) -> None:
        passed = read_configuration(configured(folder, f'<output><{option} value="kept"/></output>')).arguments({})
        assert passed == read_configuration(configured(folder)).arguments({})

    def test_a_list_where_sumo_takes_one_file(self, folder: Path) -> None:
        """SUMO would take both names, with the comma between them, for the path of another network."""
        other = folder / f"a.xml,{folder}"
        other.mkdir(parents=True)
        lane_data = '<laneData id="d" freq="1" file="kept"/></net>'
        (other / "net.xml").write_text((folder / "net.xml").read_text().replace("</net>", lane_data))
        (folder / "a.xml").write_bytes((folder / "net.xml").read_bytes())
        path = configured(folder)
        path.write_text(path.read_text().replace('"net.xml"', '"a.xml,net.xml"'))
        assert "a.xml,net.xml, and there is no such file" in refused(path, folder)

    def test_what_changes_the_traffic_is_passed_on(self, folder: Path) -> None:
        path = configured(folder, '<b v="3"/><scale value="2"/><time-to-teleport.ride value="7"/><verbose value="1"/>')
        assert read_configuration(path).arguments({}) == (
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

    def test_in_what_is_written(self, net: Path, harmless: Path) -> None:
        with pytest.raises(BadInput, match=r"NOPE} has a \$"):
            prepare_sumo(town(net), harmless)
        with pytest.raises(BadInput, match=r"NOPE} has a \$"):
            import_map(net, harmless, None, 5.0, lambda imported, picture: True)


class TestContent:
    WRITING = """
        <e1Detector id="1" lane="A0A1_0" pos="9" period="1" file="kept"/>
        <inductionLoop id="2" lane="A0A1_0" pos="9" period="1" file="{folder}/kept"/>
        <laneAreaDetector id="3" lane="A0A1_0" pos="0" endPos="9" period="1" file="kept"/>
        <entryExitDetector id="4" period="1" file="kept"><detEntry lane="A0A1_0" pos="9"/></entryExitDetector>
        <instantInductionLoop id="5" lane="A0A1_0" pos="9" file="kept"/>
        <edgeData id="6" period="1" file="kept" edgesFile="kept"/>
        <laneData id="7" period="1" file="kept"/>
        <vTypeProbe id="8" period="1" file="kept"/>
        <routeProbe id="9" edge="A0A1" period="1" file="kept"/>
        <calibrator id="10" edge="A0A1" pos="0" output="kept"/>
        <timedEvent type="SaveTLSStates" source="A0" dest="kept"/>
        <timedEvent type="SaveTLSSwitchTimes" source="A0" dest="kept"/>"""

    def test_detectors_and_the_like_write_nothing(self, folder: Path) -> None:
        """Neither in an additional file, nor in what it includes, nor in routes; the traffic is the same as without."""
        without = vehicles(configured(folder, more=""), folder)
        detectors = self.WRITING.format(folder=folder)
        (folder / "deep").mkdir()
        others = detectors.replace('id="', 'id="deep')
        (folder / "deep" / "deep.xml").write_text(f"<additional>{others}</additional>")
        (folder / "deep" / "less.xml.gz").write_bytes(gzip.compress(b'<a><include href="deep.xml"/></a>'))
        path = configured(folder, more=f'<include href="deep/less.xml.gz"/>{detectors}')
        trips = (folder / "trips.xml").read_text().replace("</routes>", f"{self.WRITING.splitlines()[1]}</routes>")
        (folder / "trips.xml").write_text(trips.replace('id="1"', 'id="first"'))
        rmtree(folder / "traffic")
        before = {file for file in folder.rglob("*") if file.is_file()}
        assert vehicles(path, folder) == without > 2
        assert (folder / "kept").read_text() == KEPT
        new = {file.relative_to(folder).parts[0] for file in folder.rglob("*") if file.is_file() and file not in before}
        assert new == {"traffic"}

    def test_the_rest_of_a_copy_is_the_same(self, folder: Path) -> None:
        text = '<vType id="t" guiShape=""><param key="a" value="&lt;&amp;&quot;\'&#10;é"/></vType>'
        (folder / "more.xml").write_text(f'<a>{text}<edgeData id="d" file="kept"/></a>', encoding="iso-8859-1")
        declared = b'<?xml version="1.0" encoding="iso-8859-1"?>' + (folder / "more.xml").read_bytes()
        (folder / "more.xml").write_bytes(declared)
        [copy] = copy_without_outputs(require_harmless([folder / "more.xml"]), folder).values()
        old, new = ([(e.tag, e.attrib) for e in ElementTree.parse(file).iter()] for file in (folder / "more.xml", copy))
        assert new == [*old[:-1], ("edgeData", {"id": "d", "file": "NUL"})]

    def test_all_problems_of_a_file_are_named(self, folder: Path) -> None:
        (folder / "more.xml").write_text('<a><b file="kept"/>\n<param key="file" value="kept"/>\n<c output="d"/></a>')
        with pytest.raises(BadInput) as error:
            require_harmless([folder / "more.xml"])
        lines = [problem.split("line ")[1].split(":")[0] for problem in error.value.problems]
        assert lines == ["1", "2", "3"]

    def test_what_the_wizard_of_sumo_writes(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The options and files of osmWebWizard.py (SUMO 1.28), with all that it adds for traffic and for buses."""
        (folder / "output.add.xml").write_text(
            '<additional>   <edgeData id="wizard_example" period="3600" file="edgeData.xml"/>\n</additional>'
        )
        (folder / "stops.add.xml").write_text(
            '<additional><busStop id="s" lane="left0A0_0" startPos="5" endPos="25"/></additional>'
        )
        (folder / "osm.view.xml").write_text("<viewsettings/>")
        monkeypatch.chdir(folder)
        options = (
            "--net-file=net.xml", "--gui-settings-file=osm.view.xml", "--duration-log.statistics",
            "--device.rerouting.adaptation-interval=10", "--device.rerouting.adaptation-steps=18",
            "--tls.actuated.jam-threshold=30", "-v", "--no-step-log", "--ignore-route-errors",
            "--route-files=trips.xml", "--tripinfo-output=tripinfos.xml", "--statistic-output=stats.xml",
            "--stop-output=stopinfos.xml", "--additional-files=stops.add.xml,output.add.xml",
        )  # fmt: skip
        run_program("sumo", (*options, "--save-configuration", folder / "osm.sumocfg"), "no configuration")
        before = {path.name for path in folder.iterdir()}
        assert vehicles(folder / "osm.sumocfg", folder) > 2
        assert {path.name for path in folder.iterdir()} == before | {"traffic"}
        assert all(path.is_file() for path in (folder / "traffic").iterdir())  # a run directory with folders is refused

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

    @pytest.mark.parametrize(("key", "value"), [("profile", "calm"), ("assessment", "good"), ("has.ssmx", "1")])
    def test_other_parameters(self, folder: Path, key: str, value: str) -> None:
        (folder / "x.xml").write_text(f'<routes><param key="{key}" value="{value}"/></routes>')
        assert len(require_harmless([folder / "x.xml"])) == 1

    @pytest.mark.parametrize("packed", [False, True])
    def test_in_a_file_that_a_file_includes(self, folder: Path, packed: bool) -> None:
        """Packed or not, whatever the name says, as SUMO reads it."""
        text = b'<additional><param key="device.toc.file" value="kept"/></additional>'
        (folder / "deep.xml").write_bytes(gzip.compress(text) if packed else text)
        (folder / "less.xml").write_text('<additional><include href="deep.xml"/></additional>')
        assert "deep.xml, line 1: the parameter device.toc.file" in refused(
            configured(folder, more='<include href="less.xml"/>'), folder
        )

    def test_in_a_file_that_two_links_name(self, folder: Path) -> None:
        """What the file includes depends on the folder of the link."""
        for name, text in (("a", ""), ("b", '<param key="file" value="kept"/>')):
            (folder / name).mkdir()
            (folder / name / "deep.xml").write_text(f"<additional>{text}</additional>")
        (folder / "a" / "more.xml").write_text('<additional><include href="deep.xml"/></additional>')
        (folder / "b" / "more.xml").symlink_to(folder / "a" / "more.xml")
        for order in ("a/more.xml,b/more.xml", "b/more.xml,a/more.xml"):
            assert "b/deep.xml, line 1: the parameter file" in refused(
                configured(folder, f'<a value="{order}"/>'), folder
            )

    def test_in_a_network(self, folder: Path) -> None:
        text = (folder / "net.xml").read_text().replace("</net>", '<edgeData id="d" period="1" file="kept"/></net>')
        (folder / "x.net.xml").write_text(text)
        assert "<edgeData> would read or write the file" in refused(folder / "x.net.xml", folder)
        with pytest.raises(BadInput, match="<edgeData> would read or write the file"):
            convert(folder / "x.net.xml", folder / "new.net.xml", "x")

    def test_whatever_belongs_in_a_network(self, tmp_path: Path) -> None:
        options = ("--tls.guess", "--tls.default-type", "actuated", "--sidewalks.guess", "--crossings.guess")
        net = grid_net(tmp_path, *options, "--write-metadata", "--turn-lanes", "1", "--bikelanes.guess")
        assert len(net_of(str(net), tmp_path).signals_m) == 9
        require_accepted(("--net-file", str(net)), "x")

    def test_in_a_map(self, folder: Path) -> None:
        path = osm(folder / "x.osm")
        path.write_text(path.read_text().replace("</osm>", '<include href="nothing.xml"/></osm>'))
        assert "<include> would read or write the file" in refused(path, folder)
        with pytest.raises(BadInput, match="<include> would read or write the file"):
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

    def test_files_that_include_each_other(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(foreign_files, "MAX_ELEMENTS", 10_000)
        (folder / "deep.xml").write_text('<additional><include href="more.xml"/></additional>')
        assert "include them less often" in refused(configured(folder, more='<include href="deep.xml"/>'), folder)

    def test_a_file_that_two_files_include(self, folder: Path) -> None:
        (folder / "deep.xml").write_text("<additional/>")
        for name in ("less.xml", "more.xml"):
            (folder / name).write_text('<additional><include href="deep.xml"/></additional>')
        assert len(require_harmless([folder / "less.xml", folder / "more.xml"])) == 3

    def test_a_digest_does_not_wait_for_a_pipe(self, folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        with pytest.raises(BadInput, match="there is no such file"):
            map_digest(str(configured(folder, '<a value="pipe"/>')))


class TestBounds:
    def test_of_bytes(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(foreign_files, "MAX_BYTES", 1 << 20)
        (folder / "x.xml").write_bytes(gzip.compress(b"<additional>" + b" " * (2 << 20) + b"</additional>"))
        with pytest.raises(BadInput, match=r"x.xml cannot be read: .* or all files together more than"):
            require_harmless([folder / "x.xml"])

    def test_of_files_that_are_included_again_and_again(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Thirty files, each of which includes the next one twice: a billion elements."""
        for number in range(30):
            twice = f'<include href="{number + 1}.xml"/>' * 2
            (folder / f"{number}.xml").write_text(f"<additional>{twice}</additional>")
        (folder / "30.xml").write_text("<additional/>")
        monkeypatch.setattr(foreign_files, "MAX_ELEMENTS", 10_000)
        with pytest.raises(BadInput, match="10000 elements: include them less often"):
            require_harmless([folder / "0.xml"])

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

    def test_of_a_network(self, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(net_module, "MAX_POINTS", 250)
        with pytest.raises(BadInput, match="has too many streets: use at most 10 of them"):
            read_net(net, "x")
