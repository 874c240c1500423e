"""A check sheet: a table that compares our numbers with reference values."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Check:
    """One line of the sheet: a reference value, and ours."""

    what: str
    source: str
    reference: float
    ours: float
    tolerance: float
    unit: str

    @property
    def difference(self) -> float:
        """Our value minus the reference."""
        return self.ours - self.reference

    @property
    def passed(self) -> bool:
        """Whether both values agree within the precision of the source."""
        return abs(self.difference) <= self.tolerance


def published(model: str) -> dict[str, Any]:
    """The reference values of a model, by name."""
    values: dict[str, Any] = tomllib.loads((files(__package__) / "values.toml").read_text(encoding="utf-8"))[model]
    return values


def check_lines(checks: Sequence[Check]) -> Iterator[str]:
    """The check sheet as printable lines, with the number of checks that agree."""
    yield f"{'what':48}{'source':13}{'reference':>14}{'ours':>16}{'difference':>13}"
    for check in checks:
        mark = "" if check.passed else "  DIFFERS"
        figures = f"{check.reference:14.6f}{check.ours:16.6f}{check.difference:13.1e}"
        yield f"{check.what:48}{check.source:13}{figures} {check.unit}{mark}".rstrip()
    yield f"{sum(check.passed for check in checks)} of {len(checks)} agree within the precision of their source"
