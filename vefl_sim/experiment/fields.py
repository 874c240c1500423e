"""Types of TOML keys with their allowed ranges, and the base class of all TOML tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

PartName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
"""`module:name` of a user-defined part."""


@dataclass(frozen=True)
class OneOf:
    """Restricts a key to the names of a family of kinds or, with `own`, to these and user-defined parts."""

    family: Mapping[str, str]
    own: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        names: Any = Literal[tuple(self.family)]
        return handler.generate_schema(names | PartName if self.own else names)


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


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


Side = Annotated[int, Field(ge=1, le=50)]
Blocks = Annotated[Side | Annotated[tuple[Side, Side], Field(strict=False)], BeforeValidator(_block_counts)]

PositiveRange = Annotated[tuple[Positive, Positive], Field(strict=False), AfterValidator(_require_ordered)]
NonNegativeRange = Annotated[tuple[NonNegative, NonNegative], Field(strict=False), AfterValidator(_require_ordered)]
Pair = Annotated[tuple[float, float], Field(strict=False, json_schema_extra={"format": "point"})]


class Table(BaseModel):
    """Base class of all tables: frozen and strictly typed, without unknown keys, NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )
