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
from vefl_sim.mobility.sumo.programs import ask, file_argument, run_program
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


def passed_on(folder: Path, options: str = "") -> tuple[str, ...]:
    """What SUMO gets of a configuration with these options."""
    return read_configuration(configured(folder, options)).arguments({})


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
    def test_whatever_is_not_known_to_be_harmless_is_named(self, folder: Path) -> None:
        options = [
            "save-template", "save-configuration", "save-schema", "configuration-file", "astar.landmark-distances",
            "remote-port", "python-script", "unheard-of",
        ]  # fmt: skip
        with pytest.raises(BadInput) as error:
            passed_on(folder, "".join(f'<{option} value="kept"/>' for option in options))
        assert [problem.split(" sets ")[1].split()[0] for problem in error.value.problems] == options

    def test_of_all_options_that_name_a_file_only_inputs_are_passed_on(self, folder: Path) -> None:
        """All options of the installed SUMO, from its own template, by all their names."""
        run_program("sumo", ("--save-template", folder / "all.xml"), "no template")
        named = [e for e in ElementTree.parse(folder / "all.xml").iter() if e.get("type") == "FILE"]
        names = {name for e in named for name in (e.tag, *e.get("synonymes", "").split())}
        assert len(names) > 80
        assert names >= set(inputs_module._INPUTS)
        for name in names - set(inputs_module._INPUTS):
            try:
                passed = passed_on(folder, f'<{name} value="kept"/>')
            except BadInput:
                continue
            assert len(passed) == 2, name

    def test_outputs_are_left_out(self, folder: Path) -> None:
        options = [
            "tripinfo", "l", "save-state.period", "output-prefix", "device.ssm.file", "device.rerouting.output",
            "pedestrian.jupedsim.py", "tripinfo-output.write-unfinished", "device.fcd.probability",
        ]  # fmt: skip
        assert passed_on(folder, "".join(f'<{option} value="kept"/>' for option in options)) == passed_on(folder)

    def test_what_changes_the_traffic_is_passed_on(self, folder: Path) -> None:
        options = '<b v="3"/><scale value="2"/><time-to-teleport.ride value="7"/><verbose value="1"/>'
        assert passed_on(folder, options) == (
            f"--net-file={folder / 'net.xml'}", f"--route-files={folder / 'trips.xml'}",
            "--b=3", "--scale=2", "--time-to-teleport.ride=7",
        )  # fmt: skip

    def test_a_list_where_sumo_takes_one_file(self, folder: Path) -> None:
        """SUMO would take both names, with the comma between them, for the path of another network."""
        other = folder / f"a.xml,{folder}"
        other.mkdir(parents=True)
        for file in (other / "net.xml", folder / "a.xml"):
            file.write_bytes((folder / "net.xml").read_bytes())
        path = configured(folder)
        path.write_text(path.read_text().replace('"net.xml"', '"a.xml,net.xml"'))
        assert "a.xml,net.xml, and there is no such file" in refused(path, folder)

    def test_the_run_sets_the_rest(self, folder: Path) -> None:
        """With an option twice SUMO would not start; what is only for sumo-gui need not exist."""
        options = '<step-length value="1"/><seed v="5"/><gui-settings-file v="no.xml"/><collision.action v="none"/>'
        assert vehicles(configured(folder, f'{options}<begin value="0"/><max-depart-delay value="5"/>'), folder) > 2

    def test_a_value_is_never_an_option(self, folder: Path) -> None:
        assert "SUMO says" in refused(configured(folder, '<ignore-route-errors value="--fcd-output=kept"/>'), folder)

    @pytest.mark.parametrize("name", ["http://127.0.0.1:9/net.xml", "/dev/zero", "missing.xml", "${HOME", "pipe"])
    def test_inputs_are_files_on_this_machine(self, folder: Path, name: str) -> None:
        os.mkfifo(folder / "pipe")
        for call in (prepare, map_digest_of):
            with pytest.raises(BadInput, match=r"and there is no such file\.$"):
                call(configured(folder, f'<a value="{name}"/>'), folder)


def prepare(file: Path, folder: Path) -> None:
    prepare_sumo(town(file, mobility={"start_s": 0.0}), folder)


def map_digest_of(file: Path, folder: Path) -> str:
    return map_digest(str(file))


@pytest.mark.parametrize("name", ["a,b", "a$b", "a "])
def test_names_that_sumo_would_take_for_others(name: str) -> None:
    with pytest.raises(BadInput, match="has a comma, a"):
        file_argument(Path(name))


def test_variables_in_names(net: Path, folder: Path) -> None:
    """SUMO expands ${…} anywhere in a path, so that the file that is checked would not be the one that it reads."""
    for name, text in (("x", '<laneData id="d" freq="1" file="../kept"/>'), ("x${NOPE}", "")):
        (folder / name).mkdir()
        (folder / name / "more.xml").write_text(f"<additional>{text}</additional>")
    harmless, sentence = folder / "x${NOPE}", r"NOPE}.* has a comma, a \$ or a space at its end"
    for file in (
        configured(folder, f'<a value="{harmless.name}/more.xml"/>'),
        configured(folder, more=f'<include href="{harmless.name}/more.xml"/>'),
    ):
        with pytest.raises(BadInput, match=sentence):
            prepare(file, folder)
    with pytest.raises(BadInput, match=sentence):
        prepare_sumo(town(net), harmless)
    with pytest.raises(BadInput, match=sentence):
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
        text = f'<?xml version="1.0" encoding="iso-8859-1"?><a>{text}<edgeData id="d" file="kept"/></a>'
        (folder / "more.xml").write_text(text, encoding="iso-8859-1")
        [copy] = copy_without_outputs(require_harmless([folder / "more.xml"]), folder).values()
        old, new = ([(e.tag, e.attrib) for e in ElementTree.parse(file).iter()] for file in (folder / "more.xml", copy))
        assert new == [*old[:-1], ("edgeData", {"id": "d", "file": "NUL"})]

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
        ("more", "sentence"),
        [
            ('<param key="device.ssm.file" value="kept"/>', 'parameter device.ssm.file = "kept" would write a file'),
            ('<param key="has.ssm.device" value="true"/>', 'parameter has.ssm.device = "true" would write a file'),
            ('<param key="device.toc.file" value="kept"/>', "parameter device.toc.file"),
            ('<param key="file" value="kept"/>', "parameter file"),
            ('<param key="profile" value="calm"/><param key="assessment" value="good"/>', None),
            ('<param key="has.ssmx" value="1"/>', None),
            ('<tlLogic id="A0" type="swarm"/>', 'a signal has the type "swarm": choose one of static'),
            ('<vType id="a" output="kept"/>', '<vType> would read or write the file output="kept"'),
        ],
    )
    def test_what_would_write(self, folder: Path, more: str, sentence: str | None) -> None:
        configuration = read_configuration(configured(folder, more=f"\n{more}"))
        if sentence is None:
            assert len(require_harmless(configuration.files)) == 3
            return
        with pytest.raises(BadInput) as error:
            require_harmless(configuration.files)
        assert "more.xml, line 2: " in str(error.value)
        assert sentence in str(error.value)

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
        for order in (("a", "b"), ("b", "a")):
            with pytest.raises(BadInput, match=r"b/deep.xml, line 1: the parameter file"):
                require_harmless([folder / name / "more.xml" for name in order])

    def test_a_network_names_no_file(self, folder: Path) -> None:
        for element in ('<edgeData id="d" period="1" file="kept"/>', '<include href="trips.xml"/>'):
            text = (folder / "net.xml").read_text().replace("</net>", f"{element}</net>")
            (folder / "x.net.xml").write_text(text)
            assert "would read or write the file" in refused(folder / "x.net.xml", folder)
            with pytest.raises(BadInput, match="would read or write the file"):
                convert(folder / "x.net.xml", folder / "new.net.xml", "x")

    def test_nor_does_a_map(self, folder: Path) -> None:
        path = osm(folder / "x.osm")
        path.write_text(path.read_text().replace("</osm>", '<include href="nothing.xml"/></osm>'))
        assert "<include> would read or write the file" in refused(path, folder)

    def test_whatever_belongs_in_a_network(self, tmp_path: Path) -> None:
        options = ("--tls.guess", "--tls.default-type", "actuated", "--sidewalks.guess", "--crossings.guess")
        net = grid_net(tmp_path, *options, "--write-metadata", "--turn-lanes", "1", "--bikelanes.guess")
        assert len(net_of(str(net), tmp_path).signals_m) == 9
        ask(("--net-file", str(net)), "x")

    @pytest.mark.parametrize(
        ("text", "encoding", "sentence"),
        [
            ('<!DOCTYPE a [<!ENTITY e SYSTEM "kept">]><a>&e;</a>', "utf-8", "line 1: it has a document type"),
            ('<?xml version="1.0" encoding="cp500"?><a/>', "cp500", "line 1: "),
            ('<?xml version="1.0" encoding="cp1252"?><a/>', "utf-8", "the encoding cp1252 is refused"),
        ],
    )
    def test_what_parsers_may_read_differently(self, tmp_path: Path, text: str, encoding: str, sentence: str) -> None:
        (tmp_path / "x.xml").write_bytes(text.encode(encoding))
        with pytest.raises(BadInput, match=sentence):
            require_harmless([tmp_path / "x.xml"])


class TestBounds:
    def test_of_bytes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of one file, and of all together."""
        monkeypatch.setattr(foreign_files, "MAX_BYTES", 1 << 20)
        for name, size in (("x", 2 << 20), ("y", 600_000), ("z", 600_000)):
            (tmp_path / f"{name}.xml").write_bytes(gzip.compress(b"<a>" + b" " * size + b"</a>"))
        require_harmless([tmp_path / "y.xml"])
        for names, bad in (("x", "x"), ("yz", "z")):
            with pytest.raises(BadInput, match=rf"{bad}.xml cannot be read: .* or all files together more than"):
                require_harmless([tmp_path / f"{name}.xml" for name in names])

    def test_of_files_that_are_included_again_and_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Thirty files, each of which includes the next one twice, are a billion elements; a file in itself, more."""
        for number in range(30):
            twice = f'<include href="{number + 1}.xml"/>' * 2
            (tmp_path / f"{number}.xml").write_text(f"<additional>{twice}</additional>")
        (tmp_path / "30.xml").write_text("<additional/>")
        (tmp_path / "itself.xml").write_text('<additional><include href="itself.xml"/></additional>')
        monkeypatch.setattr(foreign_files, "MAX_ELEMENTS", 10_000)
        assert len(require_harmless([tmp_path / "28.xml", tmp_path / "29.xml"])) == 3
        for name in ("0.xml", "itself.xml"):
            with pytest.raises(BadInput, match="10000 elements: include them less often"):
                require_harmless([tmp_path / name])

    def test_of_elements(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(foreign_files, "MAX_ELEMENTS", 10)
        (tmp_path / "x.xml").write_text(f"<a>{'<b/>' * 20}</a>")
        with pytest.raises(BadInput, match="there are more than 10 elements"):
            require_harmless([tmp_path / "x.xml"])

    def test_of_a_network(self, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(net_module, "MAX_POINTS", 250)
        with pytest.raises(BadInput, match="has too many streets: use at most 10 of them"):
            read_net(net, "x")
