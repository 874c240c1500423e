"""What one must know to use the arrays of a trained model, in `model.json` beside them. This file needs no JAX."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from vefl_sim.core.files import read_json, write_text
from vefl_sim.experiment.fields import PART_NAME
from vefl_sim.learning.datasets.dataset import Dataset

_FORMAT = 1


@dataclass(frozen=True)
class Scaling:
    """How the numbers of a sample become inputs of the network: (x / divisor − mean) / deviation."""

    divisor: float
    mean: float
    deviation: float

    def __call__(self, values: Any) -> Any:
        """Scale an array of floats."""
        return (values / self.divisor - self.mean) / self.deviation


PIXELS = Scaling(divisor=255.0, mean=0.5, deviation=0.25)
"""8-bit pixels become floats of about zero mean and unit variance."""


@dataclass(frozen=True)
class ModelCard:
    """The network of a trained model, its inputs and its classes."""

    architecture: str  # module:factory of the flax network; it is called with the number of classes
    image_shape: tuple[int, int, int]  # height, width, channels
    scaling: Scaling
    classes: int
    class_names: tuple[str, ...] | None

    @classmethod
    def of(cls, architecture: str, dataset: Dataset) -> Self:
        """The card of a network that was trained on a data set."""
        return cls(architecture, dataset.image_shape, PIXELS, dataset.classes, dataset.class_names)

    def write(self, path: Path) -> None:
        """Write the card as JSON, for the folder of its model."""
        write_text(path, json.dumps({"format": _FORMAT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a model.json, which may come from a stranger; OSError or ValueError if it cannot be used."""
        try:
            content = read_json(path)
            if content.pop("format") != _FORMAT:
                raise ValueError("it was written by another version of vefl_sim")
            content["scaling"] = Scaling(**content["scaling"])
            for key in ("image_shape", "class_names"):
                content[key] = None if content[key] is None else tuple(content[key])
            card = cls(**content)
        except (TypeError, AttributeError, KeyError):
            raise ValueError("it lacks keys, or has others") from None
        if not card._has_valid_types():
            raise ValueError("it has values of other types")
        return card

    def _has_valid_types(self) -> bool:
        sizes, names = (*(self.image_shape or ()), self.classes), self.class_names
        return (
            isinstance(self.architecture, str)
            and re.fullmatch(PART_NAME, self.architecture) is not None
            and len(sizes) == 4
            and all(type(size) is int and 0 < size < 1 << 31 for size in sizes)
            and all(type(number) in (int, float) for number in vars(self.scaling).values())
            and (names is None or (len(names) == self.classes and all(isinstance(name, str) for name in names)))
        )
