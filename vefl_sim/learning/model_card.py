"""What one must know to use the arrays of a trained model, in `model.json` beside them. This file needs no JAX."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from vefl_sim.core.files import read_json, write_text
from vefl_sim.experiment.fields import PartName
from vefl_sim.learning.datasets.dataset import Dataset

_FORMAT = 2
_OF_STRANGERS = ConfigDict(strict=True, extra="forbid")

Number = Annotated[float, Field(gt=-3e38, lt=3e38)]
"""Of a scaling, which is computed in floats of 32 bits."""
Size = Annotated[int, Field(gt=0, lt=1 << 31)]

InputType = Literal[
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"
]


@dataclass(frozen=True)
class Scaling:
    """How the numbers of a sample become inputs of the network: (x / divisor − mean) / deviation."""

    __pydantic_config__ = _OF_STRANGERS

    divisor: Number
    mean: Number
    deviation: Number

    def __call__(self, values: Any) -> Any:
        """Scale an array of floats."""
        return (values / self.divisor - self.mean) / self.deviation


PIXELS = Scaling(divisor=255.0, mean=0.5, deviation=0.25)
"""8-bit pixels become floats of about zero mean and unit variance."""


@dataclass(frozen=True)
class ModelCard:
    """The network of a trained model, its inputs and its outputs."""

    __pydantic_config__ = _OF_STRANGERS

    architecture: PartName  # module:factory of the flax network; it is called with the number of outputs
    input_shape: Annotated[tuple[Size, ...], Field(min_length=1, max_length=32)]  # of one sample, as in numpy
    input_type: InputType  # type of the inputs in numpy, such as uint8 for pixels
    scaling: Scaling | None  # of 8-bit pixels; None: inputs are used as they are
    outputs: Size  # number of outputs of the network
    loss: Literal["cross-entropy", "mse"] | PartName  # `learning.loss`, which the network was trained for
    classes: int | None  # None: the outputs are predicted numbers
    class_names: tuple[str, ...] | None

    @classmethod
    def of(cls, architecture: str, loss: str, dataset: Dataset) -> Self:
        """The card of a network that was trained on a data set."""
        input_type: Any = str(dataset.train_inputs.dtype)
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
        content = read_json(path)
        if not isinstance(content, dict):
            raise ValueError("it holds no keys")
        if content.pop("format", None) != _FORMAT:
            raise ValueError("it was written by another version of vefl_sim")
        try:
            card = TypeAdapter(cls).validate_json(json.dumps(content))
        except ValidationError as error:
            raise ValueError(f"it has a missing or wrong key {'.'.join(map(str, error.errors()[0]['loc']))}") from None
        names, scaling = card.class_names, card.scaling
        if (
            card.classes not in (None, card.outputs)
            or (names is not None and len(names) != card.classes)
            or (scaling is None) != (card.input_type != "uint8")
            or (scaling and 0 in (scaling.divisor, scaling.deviation))
        ):
            raise ValueError("it has values that contradict each other")
        return card
