"""What goes wrong around SUMO: what it drove stays, and somebody hears in one sentence what happened."""

import os
import signal
from pathlib import Path

import pytest

from tests.mobility.towns import grid_net, town
from tests.resumable import only
from vefl_sim import BadInput, RunFailed, simulate
from vefl_sim.mobility.sumo import process
from vefl_sim.mobility.trajectory import COMPLETE


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grid_net(tmp_path_factory.mktemp("net"))


class TestRunDirectory:
    def test_what_was_driven_outlives_bad_input(self, net: Path, tmp_path: Path) -> None:
        """There are fewer samples than CVs, and only SUMO can tell how many come."""
        with pytest.raises(BadInput):
            simulate(town(net, data={"train_samples": 43, "min_samples": 43}), out=tmp_path)
        assert (only(tmp_path).path / "traffic" / COMPLETE).exists()

    def test_what_can_be_known_before_is_said_before(
        self, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("vefl_sim.mobility.sumo.traffic.drive", lambda *_: pytest.fail("SUMO drives"))
        for tables in ({"model": {"factory": "math:sin"}}, {"scheme": {"kind": "math:sin"}}):
            with pytest.raises(BadInput):
                simulate(town(net, **tables), out=tmp_path)
        assert not list(tmp_path.iterdir())

    def test_sumo_that_dies_at_its_start(self, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        connected = process._connected

        def dying(command, log):
            sumo, connection = connected(command, log)
            os.kill(sumo.pid, signal.SIGKILL)
            sumo.wait()
            return sumo, connection

        monkeypatch.setattr(process, "_connected", dying)
        with pytest.raises(RunFailed, match="SUMO stopped at its start"):
            simulate(town(net, sumo={"client": "traci"}), out=tmp_path)
        assert only(tmp_path).state == "failed"

    def test_a_bug_of_ours_is_not_bad_input(self, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_):
            raise KeyError("ours")

        monkeypatch.setattr("vefl_sim.mobility.sumo.traffic.drive", broken)
        with pytest.raises(RunFailed, match="KeyError: 'ours'"):
            simulate(town(net, model={"factory": "vefl_models.logistic:logistic"}), out=tmp_path)
        assert only(tmp_path).state == "failed"
