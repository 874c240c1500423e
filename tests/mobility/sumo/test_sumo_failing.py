"""Failures around SUMO: the simulated traffic is kept, and the error is one sentence."""

import json
import os
import signal
import socket
import subprocess
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree

import psutil
import pytest

from tests.mobility.sumo.towns import MIDDLE, grid_net, osm, town
from tests.resumable import Kill, Killer, only
from vefl_sim import BadInput, RunFailed, resume, simulate
from vefl_sim.core.errors import NotResumable
from vefl_sim.mobility.recorded.trajectory import COMPLETE
from vefl_sim.mobility.sumo import process
from vefl_sim.mobility.sumo.inputs import convert
from vefl_sim.mobility.sumo.traffic import drive
from vefl_sim.records.identity import Identity

LANE_DATA = '<laneData id="d" file="NUL" freq="1"/>'


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grid_net(tmp_path_factory.mktemp("net"))


class TestRunDirectory:
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

    def test_sumo_that_dies_at_its_start(self, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        start_and_connect = process._start_and_connect

        def dying(command, log):
            sumo, connection = start_and_connect(command, log)
            os.kill(sumo.pid, signal.SIGKILL)
            sumo.wait()
            return sumo, connection

        monkeypatch.setattr(process, "_start_and_connect", dying)
        with pytest.raises(RunFailed, match="SUMO stopped at its start"):
            simulate(town(net, sumo={"client": "traci"}), out=tmp_path)
        assert only(tmp_path).state == "failed"
        assert not list(only(tmp_path).path.glob("traffic/*.parquet*"))

    def test_two_that_begin_at_once(self, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Neither run sees the directory of the other before it creates its own."""
        monkeypatch.setattr("vefl_sim.records.run_directory.existing_run", lambda *_: None)
        first = simulate(town(net), out=tmp_path)
        assert simulate(town(net), out=tmp_path).path == first.path == only(tmp_path).path


def ports() -> set[int]:
    """Ports at which this process and its children listen."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    connections = [connection for process in processes for connection in process.net_connections("tcp")]
    return {connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN}


class TestPorts:
    """SUMO's port is open to all machines, and whoever connects first can write any file."""

    def test_libsumo_opens_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "_separate_process", lambda command: pytest.fail("SUMO opens a port"))
        net = convert(osm(tmp_path / "x.osm"), tmp_path / "x.net.xml", "x")
        (tmp_path / "x.sumocfg").write_text('<configuration><net-file value="x.net.xml"/></configuration>')
        before = ports()
        for file in (net, tmp_path / "x.sumocfg"):
            drive(town(file, mobility={"origin_deg": MIDDLE, "start_s": 0.0}), tmp_path / file.suffix)
        assert ports() == before

    def test_traci_closes_it_once_connected(self, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        command, popen = list[str](), subprocess.Popen
        monkeypatch.setattr(subprocess, "Popen", lambda args, **rest: command.extend(args) or popen(args, **rest))
        before = ports()
        with process.running("traci", ("--net-file", str(net))):
            assert ports() == before
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", int(command[command.index("--remote-port") + 1])))

    def test_an_input_that_crashes_sumo(self, net: Path, tmp_path: Path) -> None:
        """Which can only be tried in another process."""
        (tmp_path / "x.net.xml").write_text(net.read_text().replace("</net>", f"{LANE_DATA}</net>"))
        with pytest.raises(BadInput, match="x: SUMO says: nothing, it crashes"):
            process.require_accepted(("--net-file", str(tmp_path / "x.net.xml")), "x")


class TestTrajectory:
    def test_one_that_has_changed(self, net: Path, tmp_path: Path) -> None:
        """After a checkpoint a changed trajectory is refused; before the first one SUMO simulates it again."""
        with pytest.raises(Kill):
            simulate(town(net), out=tmp_path, watcher=Killer(2))
        run = only(tmp_path)
        path, noted = run.path / "traffic" / COMPLETE, run.path / "traffic" / "sumo.json"
        whole = path.read_bytes()
        assert json.loads(noted.read_text())["trajectory"]["bytes"] == len(whole)
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(NotResumable, match=r"trajectory.parquet has changed since it was written"):
            resume(run)
        rmtree(run.path / "checkpoints")
        rmtree(run.path / "parts")
        assert resume(run).is_done
        assert path.read_bytes() == whole

    def test_the_version_of_sumo_is_noted(self, net: Path) -> None:
        packages = Identity(town(net)).versions["packages"]
        assert packages["eclipse-sumo"] == packages["libsumo"] == version("eclipse-sumo")
