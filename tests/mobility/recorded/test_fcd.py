import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.mobility.recorded.recordings import (
    DATA,
    TWO_CARS,
    at_s,
    complaint,
    fcd_parquet,
    fcd_text,
    fcd_xml,
    own_table,
    scenes,
)
from vefl_sim.core.errors import BadInput
from vefl_sim.core.rng import Streams
from vefl_sim.mobility.recorded import fcd, recording
from vefl_sim.mobility.recorded.playback import recorded_scenes
from vefl_sim.mobility.recorded.recording import VehicleNumbers


def register() -> VehicleNumbers:
    return VehicleNumbers(Streams(1), 1.0)


def written(folder: Path, text: str, name: str = "fcd.xml") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


def test_the_xml_and_the_parquet_of_one_sumo_run() -> None:
    keys = {"origin_m": [150.0, 150.0]}
    xml, parquet = (scenes(DATA / name, 29.5, 0.1, mobility=keys) for name in ("grid_fcd.xml.gz", "grid_fcd.parquet"))
    assert len(xml) == 297
    assert [len(scene.vehicle) for scene in xml[:21:5]] == [0, 0, 1, 2, 3]
    assert xml[-1].vehicle.max() == 20
    for one, other in zip(xml, parquet, strict=True):
        assert one.time_ns == other.time_ns
        assert one.vehicle.tolist() == other.vehicle.tolist()
        for field in ("x_m", "y_m", "speed_mps"):
            assert np.abs(getattr(one, field) - getattr(other, field)).max(initial=0) < 1e-6


def test_numbers_by_first_appearance(tmp_path: Path) -> None:
    names = {1: "zebra", 2: "7", 3: "a b"}
    rows = [(time_s, names[number], *rest) for time_s, number, *rest in TWO_CARS]
    for write in (fcd_xml, fcd_parquet):
        found = scenes(write(tmp_path, rows))
        assert at_s(found, 0.0) == {1: (0.0, 0.0, 10.0), 2: (50.0, 0.0, 0.0)}
        assert at_s(found, 3.0) == {1: (34.0, 4.0, 12.0), 3: (-7.0, 8.0, 5.0)}


def test_an_empty_timestep_is_one(tmp_path: Path) -> None:
    rows = [(0.0, "a", 1.0, 2.0, 0.0), (3.0, "a", 1.0, 2.0, 0.0)]
    found = scenes(fcd_xml(tmp_path, rows, times=(1.0,)))
    assert [len(scene.vehicle) for scene in found[:7]] == [1, 0, 0, 0, 0, 0, 1]
    empty = [*rows[:1], (1.0, None, None, None, None), *rows[1:]]
    found = scenes(fcd_parquet(tmp_path, empty))
    assert [len(scene.vehicle) for scene in found[:7]] == [1, 0, 0, 0, 0, 0, 1]


def test_persons_and_containers_are_no_vehicles(tmp_path: Path) -> None:
    walker = '<person id="p" x="0" y="0" speed="99"/><container id="c"/></timestep>'
    xml = written(tmp_path, fcd_text().replace("</timestep>", walker))
    assert at_s(scenes(xml), 3.0) == {1: (34.0, 4.0, 12.0), 3: (-7.0, 8.0, 5.0)}


@pytest.mark.parametrize("tag", ["vehicle", "person", "container"])
def test_columns_named_after_the_first_object(tag: str, tmp_path: Path) -> None:
    """A walker has an edge but no lane, whatever the columns are called."""
    rows = [(0.0, "p", 5.0, 5.0, 1.0), (0.0, "v", 9.0, 9.0, 2.0), (3.0, "v", 9.0, 9.0, 2.0), (3.0, "p", 5.0, 5.0, 1.0)]
    columns = {f"{tag}_lane": [None, "a_0", "a_0", None], f"{tag}_edge": ["a", None, None, "a"]}
    for scene in scenes(fcd_parquet(tmp_path, rows, tag, **columns)):
        assert (scene.vehicle.tolist(), scene.x_m.tolist()) == ([1], [9.0])


LONG = [(float(tick), 1, 0.0, 0.0, 0.0) for tick in range(3000)]


def before_the_end(path: Path) -> tuple[int, str]:
    """Number of frames before the error, and its message."""
    found, count = recorded_scenes(path, register()), 0
    try:
        for _ in found:
            count += 1
    except BadInput as error:
        return count, str(error)
    return count, ""


class TestStreaming:
    def test_frames_come_before_the_end_that_is_missing(self, tmp_path: Path) -> None:
        path = written(tmp_path, fcd_text(LONG)[:-60])
        count, message = before_the_end(path)
        assert count == 2999
        assert "it is incomplete" in message

    def test_frames_come_before_the_line_that_is_wrong(self, tmp_path: Path) -> None:
        for bad in ('x="west"', "x=-7.0"):
            assert before_the_end(written(tmp_path, fcd_text().replace('x="-7.0"', bad)))[0] == 3

    def test_a_damaged_gzip_gives_what_came_before(self, tmp_path: Path) -> None:
        path = written(tmp_path, fcd_text(LONG), "fcd.xml.gz")
        path.write_bytes(path.read_bytes()[:-200])
        count, message = before_the_end(path)
        assert count > 100
        assert re.search(r"line \d{3,}: the file cannot be read any further .*: write it again\.$", message)

    def test_an_instant_may_span_batches(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("vefl_sim.core.parquet._ROWS_PER_BATCH", 3)
        file = own_table(tmp_path, [(time_s, n, 0.0, 0.0, 0.0) for time_s in (0.0, 3.0) for n in range(1, 8)])
        found = list(recorded_scenes(file, register()))
        assert [scene.vehicle.tolist() for scene in found] == [[*range(1, 8)]] * 2


class TestBadXml:
    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("fcd-export", "netstate", "line 1: the file begins with <netstate>"),
            ('<vehicle id="3"', "<vehicle id=3", "line 15: the file is not XML, or it is incomplete"),
            ('id="3"', "", "line 15: <vehicle> has no id"),
            ('speed="5.0"', "", "line 15: <vehicle> has no speed"),
            ('time="3.0"', "", "line 13: <timestep> has no time"),
            ('x="-7.0"', 'x="west"', 'line 15: x = "west" is not a number'),
            ('time="3.0"', 'time="00:00:03"', 'line 13: time = "00:00:03" is not a number'),
            ('time="3.0"', 'time="nan"', "line 13: time = nan is not a time in seconds"),
            ('time="3.0"', 'time="1e300"', "line 13: time = 1e+300 is not a time in seconds"),
            ("<fcd-export", '<?xml version="1.0" encoding="klingon"?><fcd-export', "line 1: the file has an unknown"),
            ("<fcd-export", '<?xml version="1.0" encoding="gbk"?><fcd-export', "line 1: the file has an unknown"),
            ("<fcd-export>", "PAR1\0\0", "line 1: the file is not XML"),
        ],
    )
    def test_names_the_line_and_what_is_wrong(self, old: str, new: str, message: str, tmp_path: Path) -> None:
        path = written(tmp_path, fcd_text().replace(old, new))
        assert complaint(lambda: scenes(path)).startswith(f"{path}, {message}")

    def test_truncated(self, tmp_path: Path) -> None:
        path = written(tmp_path, fcd_text().replace("</fcd-export>\n", ""))
        assert len(scenes(path, 3.0)) == 8  # the run is over before
        assert complaint(lambda: scenes(path, 4.0)) == (
            f"{path}, line 17: the file is not XML, or it is incomplete (no element found): write it again."
        )

    def test_whether_it_is_packed_shows_in_the_content(self, tmp_path: Path) -> None:
        plain, packed = tmp_path / "plain.xml.gz", tmp_path / "packed.xml"
        plain.write_text(fcd_text())
        packed.write_bytes(gzip.compress(fcd_text().encode()))
        assert at_s(scenes(plain), 1.0) == at_s(scenes(packed), 1.0) == at_s(scenes(fcd_xml(tmp_path)), 1.0)

    @pytest.mark.parametrize(
        ("old", "new", "sentence"),
        [
            ('speed="', 'speed="1e308" old="', "speed = 1e+308 is beyond 1e+09: correct it, or drop the vehicle."),
            ('x="', 'x="-1e300" old="', "x = -1e+300 is beyond 1e+09: correct it, or drop the vehicle."),
            ('speed="', f'speed="{"9" * 5000}" old="', "speed has 5000 characters: shorten it to 200."),
            ('id="', f'id="{"x" * 300}" old="', "id has 300 characters: shorten it to 200."),
            ("<timestep", f"<!-- {'x' * (6 << 20)} --><timestep", "has a tag or a comment of more than 4 MB: write it"),
            ('id="', f'id="{"x" * (6 << 20)}" old="', "the file has a tag or a comment of more than 4 MB: write it"),
            ("<timestep", "<a>" * 70 + "<timestep", "the file has more than 64 elements in each other"),
            ("<fcd-export", "<!DOCTYPE fcd-export><fcd-export", "the file has a document type (<!DOCTYPE>)"),
        ],
    )  # fmt: skip
    def test_absurd(self, tmp_path: Path, old: str, new: str, sentence: str) -> None:
        path = written(tmp_path, fcd_text().replace(old, new, 1), "fcd.xml.gz")
        assert sentence in complaint(lambda: scenes(path))

    def test_too_many_vehicles(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """At one time and in all, in every format; at one time, before they are kept."""
        rows = [(0.0, f"a{i}", float(i), 0.0, 0.0) for i in range(20)]
        own = own_table(tmp_path, [(time_s, i, *rest) for i, (time_s, _, *rest) in enumerate(rows, 1)])
        for module in (fcd, recording):
            monkeypatch.setattr(module, "MAX_VEHICLES", 10)
        for path in (fcd_xml(tmp_path, rows), fcd_parquet(tmp_path, rows), own):
            assert "there are more than 10 vehicles: cut the recording." in complaint(lambda path=path: scenes(path))
        rows = [(i / 2, f"a{i}", 0.0, 0.0, 0.0) for i in range(20)]
        assert "There are more than 10 vehicles" in complaint(lambda: scenes(fcd_xml(tmp_path, rows), 9.0))
        own = own_table(tmp_path, [(time_s, i, *rest) for i, (time_s, _, *rest) in enumerate(rows, 1)])
        assert "there are more than 10 vehicles: cut" in complaint(lambda: scenes(own, 9.0))


class TestBadParquet:
    @pytest.mark.parametrize(
        ("write", "name"), [(own_table, "vehicle"), (own_table, "connected"), (fcd_parquet, "vehicle_speed")]
    )
    def test_a_column_is_missing(self, write, name: str, tmp_path: Path) -> None:
        path = write(tmp_path)
        pd.read_parquet(path).drop(columns=name).to_parquet(path)
        assert complaint(lambda: scenes(path)).startswith(f"{path} has no column {name}: it needs time")

    def test_a_value_that_is_missing(self, tmp_path: Path) -> None:
        path = own_table(tmp_path)
        table = pd.read_parquet(path).astype({"vehicle": "Int64"})
        table.loc[4, "vehicle"] = pd.NA
        table.to_parquet(path)
        assert complaint(lambda: scenes(path)) == (
            f"{path}, row 5: column vehicle has no value: fill it in, or drop the row."
        )
        rows = [*TWO_CARS[:4], (2.0, None, 22.0, 0.0, 12.0)]
        path = fcd_parquet(tmp_path, rows)
        assert complaint(lambda: scenes(path)) == f"{path}, row 5: the vehicle has no id: fill it in, or drop the row."
        path = fcd_parquet(tmp_path, [*TWO_CARS[:4], (2.0, 1, None, 0.0, 12.0)])
        assert complaint(lambda: scenes(path)).startswith(f"{path}, vehicle 1 at 2 s: x = nan is not a finite number")

    @pytest.mark.parametrize(
        ("time_s", "message"), [(1.0, ": time 1 s follows 2 s"), (float("nan"), ", row 6: time = nan is not")]
    )
    def test_time(self, time_s: float, message: str, tmp_path: Path) -> None:
        path = fcd_parquet(tmp_path, [*TWO_CARS[:5], (time_s, 1, 34.0, 4.0, 12.0)])
        assert complaint(lambda: scenes(path)).startswith(f"{path}{message}")

    def test_empty(self, tmp_path: Path) -> None:
        for path in (own_table(tmp_path, []), fcd_parquet(tmp_path, [])):
            assert complaint(lambda path=path: scenes(path)).endswith("the recording is empty: choose another one.")
