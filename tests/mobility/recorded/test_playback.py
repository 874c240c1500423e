from pathlib import Path

import pytest

from tests.mobility.recorded.recordings import (
    DATA,
    TWO_CARS,
    at_s,
    complaint,
    experiment,
    fcd_parquet,
    fcd_xml,
    own_table,
    scenes,
)
from vefl_sim import from_tables, simulate
from vefl_sim.core.rng import Streams
from vefl_sim.records.identity import config_digest
from vefl_sim.simulation.scenario import build_scenario

WRITERS = [own_table, fcd_xml, fcd_parquet]


class TestScenes:
    @pytest.mark.parametrize("write", WRITERS)
    def test_a_recorded_instant_is_the_recorded_one(self, write, tmp_path: Path) -> None:
        found = scenes(write(tmp_path))
        for time_s in (0.0, 1.0, 2.0, 3.0):
            assert at_s(found, time_s) == {row[1]: row[2:] for row in TWO_CARS if row[0] == time_s}

    @pytest.mark.parametrize("write", WRITERS)
    def test_in_between_those_in_both_are_interpolated(self, write, tmp_path: Path) -> None:
        found = scenes(write(tmp_path), step_s=0.25)
        assert at_s(found, 0.25) == {1: (2.5, 0.0, 10.5), 2: (50.0, 0.0, 0.0)}
        assert at_s(found, 1.5) == {1: (16.0, 0.0, 12.0)}
        assert at_s(found, 2.75) == {1: (31.0, 3.0, 12.0)}

    def test_rows_of_one_time_may_come_in_any_order(self, tmp_path: Path) -> None:
        rows = [(0.0, 9, 1.0, 0.0, 0.0), (0.0, 4, 2.0, 0.0, 0.0), (3.0, 4, 2.0, 0.0, 0.0), (3.0, 9, 1.0, 0.0, 0.0)]
        found = scenes(own_table(tmp_path, rows))
        assert [scene.vehicle.tolist() for scene in found] == [[4, 9]] * 8
        assert found[0].x_m.tolist() == [2.0, 1.0]

    def test_origin_and_start(self, tmp_path: Path) -> None:
        keys = {"origin_m": [10, -5], "start_s": 1.5}
        found = scenes(own_table(tmp_path), 1.5, mobility=keys)
        assert found[0].time_ns == 0
        assert at_s(found, 0.0) == {1: (6.0, 5.0, 12.0)}
        assert at_s(found, 1.5) == {1: (24.0, 9.0, 12.0), 3: (-17.0, 13.0, 5.0)}

    def test_sumo_starts_at_its_first_timestep_and_we_at_zero(self, tmp_path: Path) -> None:
        rows = [(time_s + 5.0, *rest) for time_s, *rest in TWO_CARS]
        assert scenes(fcd_xml(tmp_path, rows))[0].vehicle.tolist() == [1, 2]
        found = scenes(own_table(tmp_path, rows), 8.0)
        assert [len(scene.vehicle) for scene in found[:11]] == [0] * 10 + [2]

    def test_who_leaves_and_comes_back_nearby_is_fine(self, tmp_path: Path) -> None:
        rows = [(0.0, 1, 0.0, 0.0, 1.0), (1.0, 2, 0.0, 0.0, 1.0), (3.0, 1, 70.3, 0.0, 1.0)]
        found = scenes(own_table(tmp_path, rows))
        assert [scene.vehicle.tolist() for scene in found[:7]] == [[1], [], [2], [], [], [], [1]]

    def test_the_step_after_the_run_repeats_the_last_scene_and_reads_no_further(self, tmp_path: Path) -> None:
        broken = [*TWO_CARS, (4.0, 1, 9e9, 0.0, 0.0)]
        found = scenes(own_table(tmp_path, broken))
        assert [scene.time_ns for scene in found[-2:]] == [3_000_000_000, 3_500_000_000]
        assert found[-1].x_m.tolist() == found[-2].x_m.tolist()


class TestConnected:
    def test_a_share_of_the_vehicles_by_their_own_streams(self, tmp_path: Path) -> None:
        rows = [(time_s, f"car{n}", float(n), 0.0, 0.0) for time_s in (0.0, 3.0) for n in range(200)]
        wanted = [Streams(1).generator("traffic", number).random() < 0.3 for number in range(1, 201)]
        assert 30 < sum(wanted) < 90
        for write in (fcd_xml, fcd_parquet):
            for scene in scenes(write(tmp_path, rows), traffic={"cv_share": 0.3}):
                assert scene.connected.tolist() == wanted

    def test_our_table_says_it_itself(self, tmp_path: Path) -> None:
        file = own_table(tmp_path, connected=False)
        assert not any(scene.connected.any() for scene in scenes(file))
        message = complaint(lambda: scenes(file, traffic={"cv_share": 0.5}))
        assert message.startswith(f'traffic.cv_share has no effect with mobility.file = "{file}"')


class TestBadRecordings:
    def test_too_short(self, tmp_path: Path) -> None:
        file = own_table(tmp_path)
        assert complaint(lambda: scenes(file, 10.0)) == (
            f'mobility.file = "{file}": the recording ends at 3 s, 3 s after the start of the run, which lasts '
            "10 s: shorten the run, or record longer."
        )

    @pytest.mark.parametrize("write", WRITERS)
    def test_start_outside(self, write, tmp_path: Path) -> None:
        rows = [(time_s + 5.0, *rest) for time_s, *rest in TWO_CARS]
        file = write(tmp_path, rows)
        first = "0" if write is own_table else "5"
        assert complaint(lambda: scenes(file, mobility={"start_s": -1.0})) == (
            f"mobility.start_s = -1: the recording begins at {first} s: start there or later."
        )
        assert complaint(lambda: scenes(file, mobility={"start_s": 8.1})) == (
            "mobility.start_s = 8.1: the recording ends at 8 s: start earlier."
        )

    def test_no_such_file(self, tmp_path: Path) -> None:
        for call in (scenes, lambda file: config_digest(experiment(file))):
            message = complaint(lambda call=call: call(tmp_path / "x.xml"))
            assert message == (
                f'mobility.file = "{tmp_path}/x.xml": there is no such file; '
                "relative paths start at the folder of the experiment's file, or where you start the run."
            )

    def test_nobody_comes_near_the_gnb(self) -> None:
        message = complaint(
            lambda: build_scenario(experiment(DATA / "grid_fcd.parquet", 5.0, mobility={"origin_m": [1e6, 0.0]}))
        )
        assert "no CV comes within radio.coverage_radius_m = 500 of the gNB in 5 s: give the position" in message

    def test_a_file_is_needed(self) -> None:
        message = complaint(lambda: from_tables({"run": {"name": "x"}, "mobility": {"kind": "playback"}}))
        assert message == 'mobility.kind = "playback" needs mobility.file: name a run directory or a recording.'

    def test_unknown_format(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").touch()
        message = complaint(lambda: scenes(tmp_path / "x.csv"))
        assert message.endswith("has an unknown format: it must be .parquet, .xml or .xml.gz.")

    @pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that fails when it is read")
    @pytest.mark.parametrize("name", ["x.xml", "x.xml.gz", "x.parquet"])
    def test_a_disk_that_fails(self, name: str, tmp_path: Path) -> None:
        (tmp_path / name).symlink_to("/proc/self/mem")
        assert "cannot be read" in complaint(lambda: scenes(tmp_path / name))
        assert "cannot be read" in complaint(lambda: config_digest(experiment(tmp_path / name)))

    @pytest.mark.parametrize("write", WRITERS)
    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ((3.0, 1, 34.0, 4.0, 12.0), "it appears twice: keep one of the two."),
            ((3.0, 4, float("nan"), 4.0, 12.0), "x = nan is not a finite number: correct it, or drop the vehicle."),
            ((3.0, 4, 0.0, float("inf"), 12.0), "y = inf is not a finite number: correct it, or drop the vehicle."),
            ((3.0, 4, 0.0, 0.0, -3.0), "speed = -3 m/s is negative: write it as 0 or more."),
            ((3.0, 4, 0.0, 0.0, float("nan")), "speed = nan is not a finite number: correct it, or drop the vehicle."),
            (
                (3.0, 2, 50.0, 50.25, 12.0),
                "it is 50.2 m from where it was 2 s before, farther than mobility.max_speed_mps = 20.12 "
                "allows: use traffic without jumps and teleports.",
            ),
            (
                (3.0, 4, 0.0, 0.0, 20.1301),
                "speed = 20.1301 m/s is above mobility.max_speed_mps = 20.12: raise mobility.max_speed_mps to at least "
                "20.14, because the sojourn bound relies on it.",
            ),
        ],
    )
    def test_a_bad_row(self, write, row, message: str, tmp_path: Path) -> None:
        file = write(tmp_path, [*TWO_CARS, row])
        assert complaint(lambda: scenes(file)) == f"{file}, vehicle {row[1]} at 3 s: {message}"

    def test_tolerances(self, tmp_path: Path) -> None:
        rows = [*TWO_CARS, (3.0, 2, 50.0, 50.23, 20.1299)]
        assert at_s(scenes(own_table(tmp_path, rows)), 3.0)[2] == (50.0, 50.23, 20.1299)

    def test_the_fastest_of_all_is_named(self, tmp_path: Path) -> None:
        rows = [(0.0, 1, 0.0, 0.0, 25.0), (1.0, 1, 25.0, 0.0, 31.5), (2.0, 1, 50.0, 0.0, 26.0)]
        assert "to at least 31.5, because" in complaint(lambda: scenes(own_table(tmp_path, rows)))

    def test_a_vehicle_that_reappears_elsewhere(self, tmp_path: Path) -> None:
        rows = [(0.0, 1, 0.0, 0.0, 1.0), (1.0, 2, 0.0, 0.0, 1.0), (2.0, 2, 0.0, 0.0, 1.0), (3.0, 1, 70.4, 0.0, 1.0)]
        message = complaint(lambda: scenes(own_table(tmp_path, rows)))
        assert "vehicle 1 at 3 s: it is 70.4 m from where it was 3 s before" in message


def test_a_recorded_run_repeats_to_the_last_bit(tmp_path: Path) -> None:
    """Also from empty streets, when the first scenes have no vehicles."""
    tables = {
        "run": {"name": "cold", "rounds": 15},
        "vefl": {"round_s": 2.0},
        "data": {"train_samples": 800, "test_samples": 10, "image_px": 16},
        "learning": {"kind": "none"},
        "trace": {"mobility_every_s": 0.1},
    }
    cold = {"roads": {"blocks": 8}, "traffic": {"warm_start": False, "arrivals_per_s": 0.8, "cv_share": 0.7}}
    recorded = simulate(from_tables(tables | cold), out=tmp_path)
    again = simulate(from_tables(tables | {"mobility": {"kind": "playback", "file": str(recorded.path)}}), out=tmp_path)
    assert again.path != recorded.path
    assert len(again.vehicles) > 0
    assert again.content_digest() == recorded.content_digest()
