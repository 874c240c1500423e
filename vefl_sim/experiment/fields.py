"""Types of TOML keys with their allowed ranges, the base class of all TOML tables, and how keys are changed."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from vefl_sim.experiment.kinds import FAMILIES

PART_NAME = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
PartName = Annotated[str, Field(pattern=PART_NAME)]
"""`module:name` of a user-defined part."""


@dataclass(frozen=True)
class OneOf:
    """Restricts a TOML key to the built-in kinds of its family and, with `own`, to user-defined parts."""

    key: str
    own: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        names: Any = Literal[tuple(FAMILIES[self.key])]
        return handler.generate_schema(names | PartName if self.own else names)


# Limits are what physics and double precision can bear, with room on both sides for worlds that are not ours.
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
BitCount = Annotated[int, Field(ge=1, le=1024)]
Seconds = Annotated[float, Field(gt=0, le=1e8)]
"""A simulated time of at most three years; the clock counts nanoseconds in 64 bits."""
Interval = Annotated[int, Field(ge=1, le=1_000_000_000)]
"""Rounds between two events; a large number means never."""
Watts = Annotated[float, Field(ge=1e-9, le=1e4)]
"""A power from a nanowatt, which no coverage circle needs, to that of a whole gNB."""
Hertz = Annotated[float, Field(ge=1, le=1e12)]
"""A CPU frequency, up to a thousand times that of any CPU."""
Joules = Annotated[float, Field(ge=1e-9, le=1e12)]
Money = Annotated[float, Field(ge=0, le=1e9)]
"""What a CV charges, in any currency."""
Rate = Annotated[float, Field(ge=1e-12, le=1e6)]
"""A step size of learning; in single precision smaller steps change no model, and no model survives larger ones."""


def _require_ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"the lower bound {bounds[0]:g} is above the upper bound {bounds[1]:g}")
    return bounds


def _block_counts(value: Any) -> Any:
    """Check both forms here, because the separate messages of the union's alternatives would contradict each other."""
    counts = value if isinstance(value, (list, tuple)) else (value, value)
    if len(counts) != 2 or not all(type(count) is int and 1 <= count <= 50 for count in counts):
        raise ValueError("it must be a whole number from 1 to 50, or two of them as [x, y]")
    return value


def _delay_spread(value: Any) -> Any:
    """Check all forms here, for the same reason; a shell removes the quotes of "38.901"."""
    if value == 38.901:
        return "38.901"
    if value != "38.901" and not (type(value) in (int, float) and 0 <= value <= 1e-3):
        raise ValueError('it must be a time from 0 to 0.001 s, or "38.901"')
    return value


DelaySpread = Annotated[
    Annotated[float, Field(ge=0, le=1e-3)] | Literal["38.901"] | None,
    BeforeValidator(lambda value: None if value is None else _delay_spread(value)),
]
Side = Annotated[int, Field(ge=1, le=50)]
Blocks = Annotated[Side | Annotated[tuple[Side, Side], Field(strict=False)], BeforeValidator(_block_counts)]

JoulesRange = Annotated[tuple[Joules, Joules], Field(strict=False), AfterValidator(_require_ordered)]
HertzRange = Annotated[tuple[Hertz, Hertz], Field(strict=False), AfterValidator(_require_ordered)]
MoneyRange = Annotated[tuple[Money, Money], Field(strict=False), AfterValidator(_require_ordered)]
Cycles = Annotated[float, Field(ge=1e-6, le=1e9)]
CyclesRange = Annotated[tuple[Cycles, Cycles], Field(strict=False), AfterValidator(_require_ordered)]
Metres = Annotated[float, Field(ge=-1e8, le=1e8)]
Point = Annotated[tuple[Metres, Metres], Field(strict=False, json_schema_extra={"format": "point"})]
"""A point in the coordinates of a map, which may be those of a whole continent."""
Degrees = Annotated[float, Field(ge=-180, le=180)]
Place = Annotated[tuple[Degrees, Degrees], Field(strict=False, json_schema_extra={"format": "point"})]


def _require_plain(value: Any) -> Any:
    """Refuse what a run directory could not store as it is: dates, and numbers that are not finite."""
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _require_plain(entry)
    if not isinstance(value, (dict, list, bool, int, float, str)) or value in (math.inf, -math.inf) or value != value:
        raise ValueError(f"it may hold numbers, texts, lists and tables, not {value}")
    return value


Arguments = Annotated[dict[str, Any], AfterValidator(_require_plain)]
"""Arguments of a part by name."""


class Table(BaseModel):
    """Base class of all tables: frozen and strictly typed, without unknown keys, NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a key, and name the function that makes a changed copy."""
        raise AttributeError(
            "An experiment cannot be changed. Make a changed copy, for example vefl_sim.with_settings(experiment, "
            '{"radio.prbs": 5}).'
        )


Settings = Sequence[str] | Mapping[str, Any]
"""Keys to change: texts `table.key=value`, as after --set, or a mapping such as {"radio.prbs": 5}; None removes a key.
"""


def setting_texts(settings: Settings) -> Sequence[str]:
    """Settings as `table.key=value` texts."""
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, Mapping):
        return [f"{key}={'' if value is None else _toml_value(value)}" for key, value in settings.items()]
    return settings


def _toml_value(value: Any) -> str:
    """A Python value in the syntax of TOML, which is that of JSON for all that a key can hold but a table."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_toml_value(str(key))} = {_toml_value(one)}' for key, one in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False, default=lambda other: getattr(other, "item", other.__str__)())
