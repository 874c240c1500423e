"""Small recordings in all supported formats, and helpers to play them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from vefl_sim import BadInput, Experiment, Scene, from_tables
from vefl_sim.core.rng import Streams
from vefl_sim.core.tables import TableWriter
from vefl_sim.mobility.recorded.playback import Playback
from vefl_sim.mobility.scene import SCENE_SCHEMA

Row = tuple[float, Any, float, float, float]  # time_s, vehicle, x_m, y_m, speed_mps
DATA = Path(__file__).parent / "data"
TWO_CARS: list[Row] = [
    (0.0, 1, 0.0, 0.0, 10.0),
    (0.0, 2, 50.0, 0.0, 0.0),
    (1.0, 1, 10.0, 0.0, 12.0),
    (1.0, 2, 50.0, 0.0, 0.0),
    (2.0, 1, 22.0, 0.0, 12.0),
    (3.0, 1, 34.0, 4.0, 12.0),
    (3.0, 3, -7.0, 8.0, 5.0),
]


def own_table(folder: Path, rows: Sequence[Row] = TWO_CARS, connected: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    writer = TableWriter(folder / "mobility.parquet", SCENE_SCHEMA)
    for time_s, vehicle, x_m, y_m, speed_mps in rows:
        row = {"time_ns": round(time_s * 1e9), "vehicle": vehicle, "x_m": x_m, "y_m": y_m, "speed_mps": speed_mps}
        writer.append(row | {"connected": connected})
    writer.close()
    return writer.path


def fcd_text(rows: Sequence[Row] = TWO_CARS, times: Sequence[float] = ()) -> str:
    """FCD in the XML format of SUMO; `times` adds timesteps that may be empty."""
    lines, steps = ["<fcd-export>"], {time_s: [] for time_s in sorted({row[0] for row in rows} | set(times))}
    for time_s, vehicle, x, y, speed in rows:
        steps[time_s].append(f'        <vehicle id="{vehicle}" x="{x!r}" y="{y!r}" speed="{speed!r}" lane="a_0"/>')
    for time_s, vehicles in steps.items():
        lines += [f'    <timestep time="{time_s!r}">', *vehicles, "    </timestep>"]
    return "\n".join([*lines, "</fcd-export>", ""])


def fcd_xml(folder: Path, rows: Sequence[Row] = TWO_CARS, times: Sequence[float] = ()) -> Path:
    path = folder / "fcd.xml"
    path.write_text(fcd_text(rows, times))
    return path


def fcd_parquet(folder: Path, rows: Sequence[Row] = TWO_CARS, tag: str = "vehicle", **more: Sequence[Any]) -> Path:
    """FCD in the Parquet format of SUMO; `more` adds columns or replaces their values."""
    names = ["timestep_time", *(f"{tag}_{name}" for name in ("id", "x", "y", "speed"))]
    frame = pd.DataFrame(rows, columns=names).astype({f"{tag}_id": "string"})
    path = folder / "fcd.parquet"
    frame.assign(**{name: pd.Series(values) for name, values in more.items()}).to_parquet(path)
    return path


FEW_SAMPLES = {"train_samples": 400, "test_samples": 10, "image_px": 16}


def experiment(file: Path, seconds: float = 3.0, step_s: float = 0.5, **tables: Mapping[str, Any]) -> Experiment:
    mobility = {"kind": "playback", "file": str(file), "step_s": step_s, **tables.pop("mobility", {})}
    run = {"name": "replay", "duration_s": seconds, **tables.pop("run", {})}
    return from_tables({"run": run, "mobility": mobility, "vefl": {"round_s": 0.5}, "data": FEW_SAMPLES, **tables})


def scenes(file: Path, seconds: float = 3.0, step_s: float = 0.5, **tables: Mapping[str, Any]) -> list[Scene]:
    """All scenes of a run, and the one after its end, which the coverage process needs."""
    playback = Playback(experiment(file, seconds, step_s, **tables), Streams(1))
    played = [playback.scene()]
    while played[-1].time_ns <= seconds * 1e9:
        played.append(playback.advance())
    return played


def at_s(played: list[Scene], time_s: float) -> dict[int, tuple[float, float, float]]:
    """{vehicle number: (x, y, speed)} of the scene at a time."""
    [scene] = [scene for scene in played if scene.time_ns == round(time_s * 1e9)]
    values = zip(scene.x_m.tolist(), scene.y_m.tolist(), scene.speed_mps.tolist(), strict=True)
    return dict(zip(scene.vehicle.tolist(), values, strict=True))


def complaint(call: Callable[[], object]) -> str:
    """The single error message that a call raises."""
    with pytest.raises(BadInput) as caught:
        call()
    [sentence] = caught.value.problems
    return sentence
