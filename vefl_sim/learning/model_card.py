"""What one must know to use the arrays of a trained model, in `model.json` beside them. This file needs no JAX."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from vefl_sim.core.files import read_json, write_text
from vefl_sim.experiment.fields import PART_NAME
from vefl_sim.experiment.kinds import LOSSES
from vefl_sim.learning.datasets.dataset import Dataset

_FORMAT = 2
_TYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("uint", "int") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
)
_LARGEST = 3e38  # of a scaling, which is computed in floats of 32 bits
_MOST_AXES = 33  # of an input, as in numpy, and the number of outputs


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
    """The network of a trained model, its inputs and its outputs."""

    architecture: str  # module:factory of the flax network; it is called with the number of outputs
    input_shape: tuple[int, ...]  # of one sample: height, width and channels of an image
    input_type: str  # type of the inputs in numpy, such as uint8 for pixels
    scaling: Scaling | None  # of 8-bit pixels; None: inputs are used as they are
    outputs: int  # number of outputs of the network
    loss: str  # `learning.loss`, which the network was trained for
    classes: int | None  # None: the outputs are predicted numbers
    class_names: tuple[str, ...] | None

    @classmethod
    def of(cls, architecture: str, loss: str, dataset: Dataset) -> Self:
        """The card of a network that was trained on a data set."""
        input_type = str(dataset.train_inputs.dtype)
        return cls(
            architecture, dataset.input_shape, input_type, PIXELS if input_type == "uint8" else None, dataset.outputs,
            loss, dataset.classes, dataset.class_names,
        )  # fmt: skip

    def write(self, path: Path) -> None:
        """Write the card as JSON, for the folder of its model."""
        write_text(path, json.dumps({"format": _FORMAT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a model.json, which may come from a stranger; OSError or ValueError if it cannot be used."""
        try:
            content = _newest_form(read_json(path))
            if content.pop("format") != _FORMAT:
                raise ValueError("it was written by another version of vefl_sim")
            content["scaling"] = None if content["scaling"] is None else Scaling(**content["scaling"])
            for key in ("input_shape", "class_names"):
                content[key] = None if content[key] is None else tuple(content[key])
            card = cls(**content)
        except (TypeError, AttributeError, KeyError):
            raise ValueError("it lacks keys, or has others") from None
        if not card._has_valid_types():
            raise ValueError("it has values of other types")
        return card

    def _has_valid_types(self) -> bool:
        sizes, names = (*(self.input_shape or ()), self.outputs), self.class_names
        scaling = {} if self.scaling is None else vars(self.scaling)
        return (
            isinstance(self.architecture, str)
            and re.fullmatch(PART_NAME, self.architecture) is not None
            and 2 <= len(sizes) <= _MOST_AXES
            and all(type(size) is int and 0 < size < 1 << 31 for size in sizes)
            and all(type(number) in (int, float) and abs(number) < _LARGEST for number in scaling.values())
            and (self.scaling is None or 0 not in (self.scaling.divisor, self.scaling.deviation))
            and self.input_type in _TYPES
            and isinstance(self.loss, str)
            and (self.loss in LOSSES or re.fullmatch(PART_NAME, self.loss) is not None)
            and (self.classes is None or (type(self.classes) is int and self.classes == self.outputs))
            and (self.scaling is None) == (self.input_type != "uint8")
            and (names is None or (len(names) == self.classes and all(isinstance(name, str) for name in names)))
        )


def _newest_form(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a card of format 1, which had images and classes only, in the current format."""
    if content.get("format") != 1:
        return content
    shape = content.pop("image_shape")
    added = {"input_shape": shape, "input_type": "uint8", "outputs": content["classes"], "loss": "cross-entropy"}
    return content | added | {"format": _FORMAT}
