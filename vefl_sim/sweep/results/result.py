"""A stored result: the measurements of one finished run in one small file, `….json.xz`.

    import json, lzma
    result = json.load(lzma.open("experiments/paper/results/fdpc-fashion-mnist-s1-0123456789.json.xz"))

`rounds` has a list per column. Of the CVs there are two distributions, `sojourn_s` and `p_suc`, as pairs of a value and
how many CVs have it. Values are rounded down: sojourn bounds to 0.01 s below 10 s, to 0.1 s below 100 s and to 1 s
above; p_suc to 0.0001. So shares of CVs above a mark are exact if the mark is a multiple of these.
Anybody may have written such a file: it is read as plain data, up to a size, and every value is checked.
"""

import json
import lzma
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput
from vefl_sim.core.files import whole
from vefl_sim.sweep.results.keys import flat, key_digest, toml_of
from vefl_sim.sweep.results.measurements import SELECTING, MeasuredFrom, Measurements, floats

SUFFIX = ".json.xz"
_MOST_PACKED, _MOST_BYTES = 2_000_000, 50_000_000
_STEPS_S = ((10.0, 0.01), (100.0, 0.1), (np.inf, 1.0))  # below, step of the sojourn bounds
_P_SUC_STEP = 1e-4
_DIGITS = {"cost": 7, "energy_j": 6, "loss": 5, "p_suc": 7}  # significant; other columns are exact
_COLUMNS = (
    "end_ns", "in_coverage", "eligible", "ordered", "delivered", "p_suc", "steps", "cost", "energy_j", "accuracy",
    "loss",
)  # fmt: skip
_Count = Annotated[int, Field(ge=0, le=10**12)]
_Nanoseconds = Annotated[int, Field(ge=0, lt=2**63)]
_Some = Annotated[float, Field(allow_inf_nan=False)] | None
_Fraction = Annotated[float, Field(ge=0, le=1)]
_Amount = Annotated[float, Field(ge=0)]


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Rounds(_Plain):
    """One value per round in every list."""

    end_ns: list[_Nanoseconds] = Field(min_length=1, max_length=1_000_000)
    in_coverage: list[_Count]
    eligible: list[_Count]
    ordered: list[_Count]
    delivered: list[_Count]
    p_suc: list[_Fraction | None]
    steps: list[_Count]
    cost: list[_Amount]
    energy_j: list[_Amount]
    accuracy: list[_Fraction | None]
    loss: list[_Some]

    @model_validator(mode="after")
    def _equally_long(self) -> "_Rounds":
        if len({len(getattr(self, name)) for name in _COLUMNS}) != 1:
            raise ValueError("the columns are not equally long")
        return self


class _Counted(_Plain):
    """A distribution: values, and how many cases have each."""

    values: list[_Amount] = Field(max_length=1_000_000)
    counts: list[Annotated[int, Field(ge=1, le=10**7)]]

    @model_validator(mode="after")
    def _bounded(self) -> "_Counted":
        if len(self.values) != len(self.counts) or sum(self.counts) > 10**7:
            raise ValueError("values and counts do not go together")
        return self

    def expanded(self) -> Floats:
        return np.repeat(np.asarray(self.values, np.float64), self.counts)


class _Fractions(_Counted):
    """Of values up to 1."""

    values: list[_Fraction] = Field(max_length=1_000_000)


class _File(_Plain):
    """Everything in a file."""

    format: Literal[1]
    toml: str
    inputs: dict[str, str]
    version: str
    source: str
    content: str
    wall_s: Annotated[float, Field(ge=0, le=1e9)]  # 30 years
    ineligible: _Count
    rounds: _Rounds
    sojourn_s: _Counted
    p_suc: _Fractions


@dataclass(frozen=True)
class Result:
    """One stored result, with what it was made with."""

    file: _File
    path: Path | None = None
    stale: bool = False  # whether the code has changed such results since
    source: MeasuredFrom = "result"

    @cached_property
    def keys(self) -> dict[str, Any]:
        """The keys of its experiment that can change results."""
        return flat(tomllib.loads(self.file.toml))

    @property
    def name(self) -> str:
        """Of its file: for people, and different for different keys."""
        words = [str(self.keys.get(key, "")).rpartition(":")[2] for key in ("scheme.kind", "data.kind")]
        kind = "" if self.keys.get("learning.kind") == "jax" else "-network"
        return f"{'-'.join(words)}{kind}-s{self.keys.get('run.seed')}-{key_digest(self.keys)}{SUFFIX}"

    @property
    def selects(self) -> bool:
        """Whether its scheme selects CVs."""
        return self.keys.get("scheme.kind") in SELECTING

    @property
    def learns(self) -> bool:
        """Whether it has accuracies."""
        return any(value is not None for value in self.file.rounds.accuracy)

    def without_learning(self) -> "Result":
        """As if nothing had been learnt in it."""
        nothing: list[float | None] = [None] * len(self.file.rounds.accuracy)
        rounds = self.file.rounds.model_copy(update={"accuracy": nothing, "loss": nothing})
        return replace(self, file=self.file.model_copy(update={"rounds": rounds}))

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """The stored columns, and those that follow from them."""
        stored = self.file.rounds
        some = {name: pd.array(getattr(stored, name), dtype="Float64") for name in ("p_suc", "accuracy", "loss")}
        columns = {name: some.get(name, np.asarray(getattr(stored, name))) for name in _COLUMNS}
        table = pd.DataFrame({"round": np.arange(1, len(stored.end_ns) + 1), **columns})
        unable = table["in_coverage"] - table["eligible"]
        counted = table["ordered"] + unable
        fractions = (table["p_suc"].fillna(0.0) * table["ordered"] / counted.where(counted > 0)).astype("Float64")
        return table.assign(p_suc_with_ineligible=fractions)

    @property
    def sojourns_s(self) -> Floats:
        """The middle of the step that each bound was rounded down to."""
        down = self.file.sojourn_s.expanded()
        return down + _steps_s(down) / 2

    @property
    def delivered_fractions(self) -> Floats:
        """Rounded down."""
        return self.file.p_suc.expanded()

    @property
    def ineligible(self) -> int:
        """As stored."""
        return self.file.ineligible


@dataclass(frozen=True)
class Origin:
    """Where a result comes from."""

    keys: Mapping[str, Any]
    inputs: Mapping[str, str]  # digests of recordings and of parts of the user's own
    version: str
    source: str  # digest of our sources, by which its probe is found
    content: str  # digest of all tables of the run
    wall_s: float


def result_from(measured: Measurements, origin: Origin) -> Result:
    """Reduce the measurements of a run to what a file keeps."""
    rounds = measured.rounds
    columns = {name: _listed(rounds[name], _DIGITS.get(name)) for name in _COLUMNS}
    file = _File.model_validate(
        {
            "format": 1,
            "toml": toml_of(origin.keys),
            "inputs": dict(origin.inputs),
            "version": origin.version,
            "source": origin.source,
            "content": origin.content,
            "wall_s": round(origin.wall_s, 1),
            "ineligible": measured.ineligible,
            "rounds": columns,
            "sojourn_s": _counted(_rounded_down(measured.sojourns_s)),
            "p_suc": _counted(_floor(measured.delivered_fractions, _P_SUC_STEP)),
        }
    )
    return Result(file)


def write_result(result: Result, folder: Path) -> Path:
    """Write a result under its name into a folder; the file appears whole."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / result.name
    text = json.dumps(result.file.model_dump(mode="json"), separators=(",", ":"))
    with whole(path) as partial:
        partial.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return path


def read_result(path: Path) -> Result:
    """Read a file, or raise BadInput with one sentence on what is wrong with it."""
    try:
        result = Result(_File.model_validate(json.loads(_unpacked(path))), path)
        _ = result.keys
        return result
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, EOFError, ValueError, RecursionError, lzma.LZMAError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    raise BadInput(f"{path} is not a stored result ({reason}): remove it, and run its point again.") from None


def _unpacked(path: Path) -> bytes:
    if path.stat().st_size > _MOST_PACKED:
        raise ValueError(f"it is larger than {_MOST_PACKED} bytes")
    unpacking = lzma.LZMADecompressor(memlimit=200_000_000)
    text = unpacking.decompress(path.read_bytes(), max_length=_MOST_BYTES)
    if not unpacking.eof:
        raise ValueError("it is cut off, or too large")
    return text


def _listed(column: "pd.Series[Any]", digits: int | None) -> list[Any]:
    """Plain values; None where there is none, and for a loss that is not finite."""
    if column.dtype.kind in "iu":
        return [int(value) for value in column]
    return [None if not np.isfinite(value) else _short(float(value), digits) for value in floats(column)]


def _short(value: float, digits: int | None) -> float:
    return float(f"{value:.{digits}g}") if digits else value


def _counted(values: Floats) -> dict[str, Sequence[float]]:
    found, counts = np.unique(values, return_counts=True)
    return {"values": found.tolist(), "counts": counts.tolist()}


def _rounded_down(values_s: Floats) -> Floats:
    found = np.empty_like(values_s)
    steps = _steps_s(values_s)
    for _, step in _STEPS_S:
        found[steps == step] = _floor(values_s[steps == step], step)
    return found


def _steps_s(values_s: Floats) -> Floats:
    """The step of each sojourn bound."""
    return np.select([values_s < below for below, _ in _STEPS_S], [step for _, step in _STEPS_S], 1.0)


def _floor(values: Floats, step: float) -> Floats:
    """Down to a multiple of a step, as the nearest float of the decimal number; 0.29 stays 0.29."""
    per_unit = round(1 / step)
    return np.floor(values * per_unit + 1e-7) / per_unit
