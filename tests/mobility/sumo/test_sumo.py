"""Tests with SUMO on small grids: scenes, both clients, whole runs, configurations, and failures."""

import hashlib
import json
import math
import os
import socket
import subprocess
from pathlib import Path
from shutil import rmtree

import libsumo
import numpy as np
import psutil
import pytest
import tomli_w

from tests.mobility.sumo.towns import MIDDLE, grid_net, osm, town
from tests.resumable import Kill, Killer, Silent, contents, figures, only
from vefl_sim import BadInput, Run, RunFailed, resume, simulate, with_settings
from vefl_sim.cli.main import main
from vefl_sim.core.errors import NotResumable
from vefl_sim.mobility.scene import Scene
from vefl_sim.mobility.sumo import programs
from vefl_sim.mobility.sumo.inputs import convert
from vefl_sim.mobility.sumo.live import LiveTraffic, live
from vefl_sim.mobility.sumo.traffic import COMPLETE, drive, driven_trajectory, prepare_sumo
from vefl_sim.records.identity import config_digest


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grid_net(tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="module")
def straight(net: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An undisturbed run by libsumo."""
    return simulate(town(net), out=tmp_path_factory.mktemp("straight"))


class TestScenes:
    def test_each_vehicle_near_the_gnb_is_reported_once(self, net: Path, tmp_path: Path) -> None:
        """Both clients against one call per vehicle and step; some vehicles are far away at first and come near."""
        small = town(net, radio={"coverage_radius_m": 20.0})
        with live(prepare_sumo(small, tmp_path).setup) as traffic:
            within = [traffic.advance() for _ in range(90)]
        case = prepare_sumo(with_settings(small, "sumo.client=traci"), tmp_path).setup
        with live(case) as traffic:
            sumo, left_out = traffic._sumo, 0
            for other in within:
                scene = traffic.advance()
                places = np.array([sumo.vehicle.getPosition(name) for name in sumo.vehicle.getIDList()])
                near = places[np.hypot(*(places - case.gnb_m).T) <= case.reach_m] - case.gnb_m
                assert sorted(zip(scene.x_m, scene.y_m, strict=True)) == sorted(map(tuple, near))
                assert scene.same_as(other)
                left_out += len(places) - len(near)
            assert left_out > 0  # so that the test covers vehicles that are left out

    def test_vehicles_are_numbered_as_they_depart(self, net: Path, tmp_path: Path) -> None:
        with live(prepare_sumo(town(net), tmp_path).setup) as traffic:
            scene = [traffic.advance() for _ in range(20)][-1]
            names = traffic._sumo.vehicle.getIDList()
            numbers = traffic._register.numbers(names)
        assert numbers.tolist() == [int(name) for name in names]  # the names in our demand are numbers in this order
        assert set(scene.vehicle) <= set(numbers)

    def test_the_vehicles_are_ours(self, net: Path, tmp_path: Path) -> None:
        keys = {"headway_s": 1.7, "min_gap_m": 2.5, "max_accel_mps2": 1.1, "comfort_decel_mps2": 1.9, "length_m": 4.0}
        with live(prepare_sumo(town(net, mobility=keys), tmp_path).setup) as traffic:
            kind = traffic._sumo.vehicletype
            assert kind.getTau("car") == 1.7
            assert (kind.getMinGap("car"), kind.getLength("car")) == (2.5, 4.0)
            assert (kind.getAccel("car"), kind.getDecel("car"), kind.getMaxSpeed("car")) == (1.1, 1.9, 15.0)

    @pytest.mark.parametrize("limits", [True, False])
    def test_lane_limits(self, net: Path, tmp_path: Path, limits: bool) -> None:
        """The lanes of the grid allow 13.89 m/s, the vehicles 15 m/s."""
        experiment = town(net, sumo={"lane_limits": limits})
        with live(prepare_sumo(experiment, tmp_path).setup) as traffic:
            fastest = max(traffic.advance().speed_mps.max() for _ in range(200))
        assert fastest < 13.9 if limits else 13.9 < fastest <= 15.0

    def test_without_a_warm_start_the_streets_are_empty(self, net: Path, tmp_path: Path) -> None:
        experiment = town(net, traffic={"warm_start": False}, mobility={"start_s": None})
        with live(prepare_sumo(experiment, tmp_path).setup) as traffic:
            assert traffic.scene().vehicle.size == 0
            assert sum(traffic.advance().vehicle.size for _ in range(100)) > 0


class TestRuns:
    def test_both_clients_drive_alike(self, straight: Run, net: Path, tmp_path: Path) -> None:
        by_traci = with_settings(town(net), "sumo.client=traci")
        assert config_digest(by_traci) == config_digest(town(net))
        run = simulate(by_traci, out=tmp_path)
        assert contents(run) == contents(straight)
        name = Path("traffic") / COMPLETE
        assert (run.path / name).read_bytes() == (straight.path / name).read_bytes()
        assert not sumo_processes()

    def test_a_cv_is_where_sumo_had_it(self, straight: Run, net: Path, tmp_path: Path) -> None:
        """Every scene of the run, to the last bit, against a second simulation by SUMO."""
        played = driven_trajectory(straight.path / "traffic" / COMPLETE, town(net))
        with live(prepare_sumo(town(net), tmp_path).setup) as traffic:
            assert played.scene().same_as(traffic.scene())
            for _ in range(51):
                assert played.advance().same_as(traffic.advance())

    def test_killed_and_resumed_without_sumo(
        self, straight: Run, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(Kill):
            simulate(town(net), out=tmp_path, watcher=Killer(3))
        monkeypatch.setattr(programs, "find_spec", lambda name: None)
        watcher = Silent()
        run = resume(only(tmp_path), watcher=watcher)
        assert watcher.resumed == [3]
        assert contents(run) == contents(straight)
        assert figures(run) == figures(straight)

    def test_an_edited_map_is_another_run(self, net: Path, tmp_path: Path) -> None:
        copy = tmp_path / "grid.net.xml"
        copy.write_text(net.read_text())
        before = config_digest(town(copy))
        assert before == config_digest(town(net))  # the path does not count
        copy.write_text(net.read_text() + "<!-- -->")
        assert config_digest(town(copy)) != before

    def test_a_map_of_openstreetmap(self, tmp_path: Path) -> None:
        experiment = town(osm(tmp_path / "x.osm"), mobility={"origin_deg": MIDDLE})
        run = simulate(experiment, out=tmp_path)
        assert run.is_done
        noted = json.loads((run.path / "traffic" / "sumo.json").read_text())
        assert noted["gnb_m"] == pytest.approx([300.6, 199.0], abs=2.0)
        assert sorted(file.name for file in (run.path / "traffic").iterdir()) == [
            "demand.rou.xml.gz", "map.net.xml.gz", "sumo.json", "trajectory.parquet",
        ]  # fmt: skip


class TestConfiguration:
    @pytest.fixture
    def configuration(self, net: Path, tmp_path: Path) -> Path:
        """Krauss drivers of SUMO's own, two departures per second, for a minute from 100 s on."""
        (tmp_path / "trips.xml").write_text(
            '<routes><vType id="fast" maxSpeed="50" speedFactor="3" speedDev="0"/>'
            '<flow id="a" type="fast" begin="100" end="160" period="2" from="left0A0" to="C2right2"/></routes>'
        )
        (tmp_path / "net.xml").write_bytes(net.read_bytes())
        path = tmp_path / "town.sumocfg"
        path.write_text(
            '<configuration><input><net-file value="net.xml"/><route-files value="trips.xml"/></input>'
            '<time><begin value="100"/></time></configuration>'
        )
        return path

    def test_what_it_says_itself_is_refused(self, configuration: Path) -> None:
        with pytest.raises(Exception, match=r"mobility.headway_s has no effect with mobility.file"):
            town(configuration, mobility={"headway_s": 2.0})

    def test_an_edited_demand_is_another_run(self, configuration: Path) -> None:
        """By any option that names a file, and also if another input file includes it."""
        configuration.with_name("more.xml").write_text("<additional><include href='trips.xml'/></additional>")
        trips, text = configuration.with_name("trips.xml"), configuration.with_name("trips.xml").read_text()
        for named in ("r", "routes", "w", "load-state", "a"):
            file = "more.xml" if named == "a" else "trips.xml"
            configuration.write_text(f'<configuration><n value="net.xml"/><{named} v="{file}"/></configuration>')
            trips.write_text(text)
            before = config_digest(town(configuration))
            trips.write_text(text.replace('period="2"', 'period="3"'))
            assert config_digest(town(configuration)) != before

    def test_u_max_limits_also_a_type_that_is_read_late(self, configuration: Path, tmp_path: Path) -> None:
        """By default SUMO reads routes only 200 s ahead."""
        configuration.with_name("trips.xml").write_text(
            '<routes><vType id="slow" maxSpeed="5"/>'
            '<trip id="1" type="slow" depart="100" from="left0A0" to="C2right2"/>'
            '<trip id="2" type="slow" depart="350" from="left0A0" to="C2right2"/>'
            '<trip id="3" type="slow" depart="550" from="left0A0" to="C2right2"/>'
            '<vType id="fast" maxSpeed="50" speedFactor="3" speedDev="0"/>'
            '<trip id="4" type="fast" depart="600" from="left0A0" to="C2right2"/></routes>'
        )
        experiment = town(configuration, mobility={"start_s": 604.0})
        scenes = driven_trajectory(drive(experiment, tmp_path / "traffic"), experiment)
        assert 13.0 < max(scenes.advance().speed_mps.max(initial=0.0) for _ in range(50)) <= 15.0

    def test_a_bicycle_is_no_cv(self, configuration: Path, tmp_path: Path) -> None:
        trips = configuration.with_name("trips.xml")
        bicycle = '<vType id="b" vClass="bicycle"/><flow id="b" type="b" begin="100" end="160" period="4" '
        trips.write_text(trips.read_text().replace("</routes>", f'{bicycle} from="left0A0" to="C2right2"/></routes>'))
        experiment = town(configuration, mobility={"start_s": 120.0})
        scene = driven_trajectory(drive(experiment, tmp_path / "traffic"), experiment).scene()
        assert 0 < scene.connected.sum() < scene.connected.size

    def test_nobody_jumps(self, configuration: Path, tmp_path: Path) -> None:
        """Farther than 4 m beyond u_max, which is 1.5 m in a step; in a recording it would be 10 m."""
        configuration.with_name("trips.xml").write_text(
            '<routes><vehicle id="frog" depart="100"><route edges="left0A0 A0left0"/>'
            '<stop lane="left0A0_0" endPos="40" duration="1" jump="0"/>'
            '<stop lane="A0left0_0" endPos="30" duration="1"/></vehicle></routes>'
        )
        with pytest.raises(Exception, match=r"town.sumocfg\", vehicle frog at .* s: it is 8.\d m from where"):
            drive(town(configuration, run={"rounds": 30}, mobility={"start_s": 100.0}), tmp_path / "traffic")

    @pytest.mark.parametrize("client", ["libsumo", "traci"])
    def test_why_sumo_stopped(self, configuration: Path, tmp_path: Path, client: str) -> None:
        configuration.with_name("trips.xml").write_text(
            '<routes><vehicle id="1" depart="101"><route edges="left0A0 C0right0"/></vehicle></routes>'
        )
        experiment = town(configuration, mobility={"start_s": 100.0}, sumo={"client": client})
        with pytest.raises(RunFailed, match="has no valid route"):
            drive(experiment, tmp_path / "traffic")

    def test_a_start_before_its_beginning(self, configuration: Path, tmp_path: Path) -> None:
        with pytest.raises(Exception, match=r"mobility.start_s = 30: SUMO begins at 100 s"):
            drive(town(configuration), tmp_path / "traffic")


class TestFailures:
    def test_what_was_driven_outlives_bad_input(self, net: Path, tmp_path: Path) -> None:
        """There are too few samples for the CVs, whose number is known only after SUMO has run."""
        with pytest.raises(BadInput):
            simulate(town(net, data={"train_samples": 43, "min_samples": 43}), out=tmp_path)
        assert (only(tmp_path).path / "traffic" / COMPLETE).exists()
        assert only(tmp_path).state == "failed"
        assert "samples" in (only(tmp_path).path / "FAILED").read_text()

    def test_what_can_be_known_before_is_said_before(
        self, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("vefl_sim.mobility.sumo.traffic.drive", lambda *_: pytest.fail("SUMO drives"))
        for tables in ({"model": {"factory": "math:sin"}}, {"scheme": {"kind": "math:sin"}}):
            with pytest.raises(BadInput):
                simulate(town(net, **tables), out=tmp_path)
        assert not list(tmp_path.iterdir())

    def test_after_a_failure_the_same_command_drives_again(
        self, straight: Run, net: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """SUMO is killed two seconds after the start of the run."""

        def dying(self: LiveTraffic) -> Scene:
            if self.scene().time_ns == 2_000_000_000:
                self._sumo._process.kill()
            return advance(self)

        advance = LiveTraffic.advance
        monkeypatch.setattr(LiveTraffic, "advance", dying)
        toml = tmp_path / "town.toml"
        toml.write_text(tomli_w.dumps(town(net).model_dump(exclude_defaults=True, exclude_none=True)))
        with pytest.raises(SystemExit) as end:
            main([str(toml), "--set", "sumo.client=traci", "--out", str(tmp_path / "runs"), "--quiet"])
        assert end.value.code == 1
        [message] = capsys.readouterr().err.strip().splitlines()
        assert message.startswith("error: SUMO stopped at 32.1 s of its own time: Connection")
        run = only(tmp_path / "runs")
        assert run.state == "failed"
        assert "SUMO stopped" in (run.path / "FAILED").read_text()
        assert not sumo_processes()
        assert not list(run.path.glob("traffic/*.parquet*"))
        monkeypatch.undo()  # the next SUMO is not killed
        assert contents(simulate(with_settings(town(net), "sumo.client=traci"), out=tmp_path / "runs")) == contents(
            straight
        )
        assert only(tmp_path / "runs").state == "done"

    @pytest.mark.parametrize("client", ["libsumo", "traci"])
    def test_nothing_is_left_of_it_after_an_error_or_ctrl_c(self, net: Path, tmp_path: Path, client: str) -> None:
        experiment = town(net, sumo={"client": client})

        def stopped(stop: BaseException) -> None:
            with live(prepare_sumo(experiment, tmp_path).setup) as traffic:
                traffic.advance()
                raise stop

        for stop in (RunFailed("…"), KeyboardInterrupt()):
            with pytest.raises(type(stop)):
                stopped(stop)
        assert not sumo_processes()
        assert not libsumo.simulation.isLoaded()
        with live(prepare_sumo(experiment, tmp_path).setup) as traffic:  # and it can be started again
            assert math.isfinite(traffic.advance().x_m.sum())

    def test_libsumo_opens_no_port(self, tmp_path: Path) -> None:
        """A port of SUMO would be open to all machines, and whoever connects first could write any file."""
        net = convert(osm(tmp_path / "x.osm"), tmp_path / "x.net.xml", "x")
        (tmp_path / "x.sumocfg").write_text('<configuration><net-file value="x.net.xml"/></configuration>')
        for file in (net, tmp_path / "x.sumocfg"):
            case = prepare_sumo(town(file, mobility={"origin_deg": MIDDLE, "start_s": 0.0}), tmp_path).setup
            before = ports()
            with live(case):
                assert ports() == before

    def test_traci_closes_its_port_once_connected(self, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        command, popen = list[str](), subprocess.Popen
        monkeypatch.setattr(subprocess, "Popen", lambda args, **rest: command.extend(args) or popen(args, **rest))
        before = ports()
        with programs.running("traci", ("--net-file", str(net)), "x"):
            assert ports() == before
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", int(command[command.index("--remote-port") + 1])))

    def test_one_that_has_changed(self, net: Path, tmp_path: Path) -> None:
        """After a checkpoint a changed trajectory is refused; before the first one SUMO simulates it again."""
        with pytest.raises(Kill):
            simulate(town(net), out=tmp_path, watcher=Killer(2))
        run = only(tmp_path)
        path, noted = run.path / "traffic" / COMPLETE, run.path / "traffic" / "sumo.json"
        whole = path.read_bytes()
        assert json.loads(noted.read_text())["trajectory"]["sha256"] == hashlib.sha256(whole).hexdigest()
        for size in (len(whole) // 2, 1 << 40):  # a sparse terabyte is not read
            os.truncate(path, size)
            with pytest.raises(NotResumable, match=r"trajectory.parquet has changed since it was written"):
                resume(run)
        rmtree(run.path / "checkpoints")
        rmtree(run.path / "parts")
        assert resume(run).is_done
        assert path.read_bytes() == whole


def ports() -> set[int]:
    """Ports at which this process and its children listen."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    connections = [connection for process in processes for connection in process.net_connections("tcp")]
    return {connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN}


def sumo_processes() -> list[str]:
    """Child processes of SUMO, also ended ones that were not waited for; another test may have left a browser open."""
    return [name for child in psutil.Process().children(recursive=True) if "sumo" in (name := child.name())]
