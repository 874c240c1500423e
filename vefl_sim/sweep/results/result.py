"""The measurements of a finished run that figures are drawn from, read from its directory or from a stored result.

A stored result is one small file, `….json.xz`:

    import json, lzma
    result = json.load(lzma.open("experiments/paper/results/fdpc-fashion-mnist-s1-0123456789.json.xz"))

`rounds` has a list per column. `sojourn_s` and `p_suc` are distributions over the CVs: values, and how many CVs have
each value. Values are rounded down: sojourn bounds to 0.01 s below 10 s, to 0.1 s below 100 s and to 1 s above; p_suc
to 0.0001. So shares of CVs above a threshold are exact if the threshold is a multiple of these steps.
Such a file may come from an untrusted source: it is read as plain data of limited size, and every value is checked.
"""

import json
import lzma
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput, first_line
from vefl_sim.core.files import atomic_file, read_file
from vefl_sim.experiment.plugins import declaration
from vefl_sim.learning.metric import Metric, metric_of
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import flat
from vefl_sim.sweep.results.keys import key_digest

T = TypeVar("T", bound=float)
MeasuredFrom = Literal["run", "result"]
SUFFIX = ".json.xz"
_MAX_PACKED_BYTES, _MAX_BYTES = 2_000_000, 50_000_000
_STEPS_S = ((10.0, 0.01), (100.0, 0.1), (np.inf, 1.0))  # (upper limit, step) of the sojourn bounds
_P_SUC_STEP = 1e-4
_DIGITS = {"cost": 7, "energy_j": 6, "loss": 5, "p_suc": 7}  # significant digits; other columns are exact
_Count = Annotated[int, Field(ge=0, le=10**12)]
_Nanoseconds = Annotated[int, Field(ge=0, lt=2**63)]
_OptionalFloat = Annotated[float, Field(allow_inf_nan=False)] | None
_Fraction = Annotated[float, Field(ge=0, le=1)]
_Amount = Annotated[float, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Rounds(_Strict):
    """The columns of the rounds; each list has one value per round."""

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
    loss: list[_OptionalFloat]


_COLUMNS = tuple(_Rounds.model_fields)


class _Distribution(_Strict, Generic[T]):
    """Values, and how many CVs have each."""

    values: list[T] = Field(max_length=1_000_000)
    counts: list[Annotated[int, Field(ge=1, le=10**7)]]

    @model_validator(mode="after")
    def _check_counts(self) -> "_Distribution[T]":
        if len(self.values) != len(self.counts) or sum(self.counts) > 10**7:
            raise ValueError("values and counts do not match")
        return self

    def expanded(self) -> Floats:
        """Each value as often as CVs have it."""
        return np.repeat(np.asarray(self.values, np.float64), self.counts)


class _File(_Strict):
    """The content of a result file."""

    format: Literal[1]
    toml: str
    inputs: dict[str, str]  # digests of recordings and of user-defined parts
    version: str
    source: str  # digest of our sources, from which its probe gives the generation
    content: str  # digest of all tables of the run
    wall_s: Annotated[float, Field(ge=0, le=1e9)]  # 30 years
    cpu_s: Annotated[float, Field(ge=0, le=1e9)] | None = None  # missing in results of version 0.2.0 and before
    ineligible: _Count
    rounds: _Rounds
    sojourn_s: _Distribution[_Amount]
    p_suc: _Distribution[_Fraction]


@dataclass(frozen=True)
class RunMeasurements:
    """The measurements of a run directory, whose tables are read when they are first used."""

    run: Run
    selects: bool = False  # whether the scheme selects CVs
    source: MeasuredFrom = "run"
    stale: bool = False  # a run of other sources is not found, because its name differs

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """The table `rounds` of the run."""
        return self.run.rounds

    @cached_property
    def metric(self) -> Metric:
        """The metric of the run."""
        return metric_of(self.run.experiment.learning.loss, has_accuracy=bool(self.rounds["accuracy"].notna().any()))

    @cached_property
    def vehicles(self) -> pd.DataFrame:
        """The table `vehicles` of the run."""
        return self.run.vehicles

    @property
    def sojourns_s(self) -> Floats:
        """Sojourn bounds of the CVs in coverage, over all rounds."""
        return floats(self.vehicles["sojourn_ns"].dropna()) / 1e9

    @property
    def delays_s(self) -> Floats:
        """Time from the order until the update was received, of all delivered updates."""
        delivered = self.vehicles["state"] == "delivered"
        return floats(self.vehicles["delay_ns"][delivered].dropna()) / 1e9

    @property
    def delivered_fractions(self) -> Floats:
        """p_suc of the CVs that had an order, over all rounds."""
        return floats(self.vehicles["delivered_fraction"].dropna())

    @property
    def ineligible(self) -> int:
        """Number of CVs that could not do one iteration, summed over the rounds."""
        return int((self.vehicles["state"] == "ineligible").sum())


@dataclass(frozen=True)
class Result:
    """One stored result, with its keys and origin."""

    file: _File
    path: Path | None = None
    stale: bool = False  # whether the code has changed since then in a way that changes it
    source: MeasuredFrom = "result"

    @cached_property
    def keys(self) -> dict[str, Any]:
        """The keys of the experiment that can change results."""
        return flat(tomllib.loads(self.file.toml))

    @property
    def name(self) -> str:
        """Name of the file: scheme, data set and seed, and a digest that differs for different keys."""
        words = [str(self.keys.get(key, "")).rpartition(":")[2] for key in ("scheme.kind", "data.kind")]
        kind = "" if self.keys.get("learning.kind") == "jax" else "-network"
        return f"{'-'.join(words)}{kind}-s{self.keys.get('run.seed')}-{key_digest(self.keys)}{SUFFIX}"

    @property
    def selects(self) -> bool:
        """Whether the scheme selects CVs."""
        return bool(declaration("scheme.kind", self.keys["scheme.kind"], "selects", False))

    @property
    def learns(self) -> bool:
        """Whether the result contains accuracies or losses."""
        return bool(self.rounds[["accuracy", "loss"]].notna().any(axis=None))

    @property
    def metric(self) -> Metric:
        """The metric of the run."""
        loss = str(self.keys.get("learning.loss", "cross-entropy"))
        return metric_of(loss, has_accuracy=bool(self.rounds["accuracy"].notna().any()))

    def without_learning(self) -> "Result":
        """The result without accuracies and losses."""
        missing: list[float | None] = [None] * len(self.file.rounds.accuracy)
        rounds = self.file.rounds.model_copy(update={"accuracy": missing, "loss": missing})
        return replace(self, file=self.file.model_copy(update={"rounds": rounds}))

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per round: the stored columns, and those computed from them."""
        table = pd.DataFrame(self.file.rounds.model_dump())
        table = table.astype(dict.fromkeys(("p_suc", "accuracy", "loss"), "Float64"))
        table.insert(0, "round", np.arange(1, len(table) + 1))
        ineligible = table["in_coverage"] - table["eligible"]
        counted = table["ordered"] + ineligible
        fractions = (table["p_suc"].fillna(0.0) * table["ordered"] / counted.where(counted > 0)).astype("Float64")
        return table.assign(p_suc_with_ineligible=fractions)

    @property
    def sojourns_s(self) -> Floats:
        """Sojourn bounds of the CVs in coverage: the middle of the step that each was rounded down to."""
        rounded_down = self.file.sojourn_s.expanded()
        return rounded_down + _steps_s(rounded_down) / 2

    @property
    def delays_s(self) -> Floats:
        """None: delays are not stored."""
        return np.zeros(0)

    @property
    def delivered_fractions(self) -> Floats:
        """p_suc of the CVs that had an order, rounded down."""
        return self.file.p_suc.expanded()

    @property
    def ineligible(self) -> int:
        """Number of CVs that could not do one iteration, summed over the rounds."""
        return self.file.ineligible


Measurements = RunMeasurements | Result


def floats(column: "pd.Series[Any]") -> Floats:
    """The values of a column as floats; missing values are NaN."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def result_from(measured: RunMeasurements, **origin: Any) -> Result:
    """The result that stores the measurements of a run, rounded as the file has them.

    `origin`: what it was made from and with, the fields of a file from `toml` to `cpu_s`.
    """
    stored = {
        "rounds": {name: _listed(measured.rounds[name], _DIGITS.get(name)) for name in _COLUMNS},
        "sojourn_s": _distribution(_floor(measured.sojourns_s, _steps_s(measured.sojourns_s))),
        "p_suc": _distribution(_floor(measured.delivered_fractions, _P_SUC_STEP)),
    }
    return Result(_File.model_validate({"format": 1, **origin, "ineligible": measured.ineligible, **stored}))


def write_result(result: Result, folder: Path) -> Path:
    """Write a result under its name into a folder; the file is never seen incomplete."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / result.name
    text = json.dumps(result.file.model_dump(mode="json"), separators=(",", ":"))
    with atomic_file(path) as partial:
        partial.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return path


def read_result(path: Path) -> Result:
    """Read a result file; raises BadInput with one sentence about what is wrong with it."""
    try:
        result = Result(_File.model_validate(json.loads(_unpacked(path))), path)
        _ = result.keys, result.rounds  # TOML that cannot be parsed, and columns of different lengths, are errors
        return result
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, EOFError, ValueError, RecursionError, lzma.LZMAError) as error:
        reason = first_line(error)
    raise BadInput(f"{path} is not a stored result ({reason}): remove it, and run its point again.") from None


def _unpacked(path: Path) -> bytes:
    decompressor = lzma.LZMADecompressor(memlimit=200_000_000)
    text = decompressor.decompress(read_file(path, _MAX_PACKED_BYTES), max_length=_MAX_BYTES)
    if not decompressor.eof:
        raise ValueError("it is cut off, or too large")
    return text


def _listed(column: "pd.Series[Any]", digits: int | None) -> list[Any]:
    """The values of a column as plain numbers; None for a missing or infinite value."""
    if column.dtype.kind in "iu":
        return [int(value) for value in column]
    rounded = (float(f"{value:.{digits}g}") if digits else float(value) for value in floats(column))
    return [value if np.isfinite(value) else None for value in rounded]


def _distribution(values: Floats) -> dict[str, Sequence[float]]:
    unique, counts = np.unique(values, return_counts=True)
    return {"values": unique.tolist(), "counts": counts.tolist()}


def _steps_s(values_s: Floats) -> Floats:
    """The step to which each sojourn bound is rounded down."""
    return np.select([values_s < below for below, _ in _STEPS_S], [step for _, step in _STEPS_S], 1.0)


def _floor(values: Floats, step: Floats | float) -> Floats:
    """Round down to a multiple of a step, as the float nearest to the decimal number: 0.29 stays 0.29."""
    per_unit = np.round(1 / step)
    return np.asarray(np.floor(values * per_unit + 1e-7) / per_unit)
