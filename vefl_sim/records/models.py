"""What a run saves of its models: no part of the content digest.

model.npz       parameters after the last round, as plain arrays, named as in flax: params.Conv_0.kernel
model.json      network, shape and scaling of the inputs, loss, classes
confusion.json  confusion matrix at the last evaluation
models/*.npz    `learning.keep_models`: parameters after other rounds, by number: 0000010.npz
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter

from vefl_sim.core.arrays import NamedArrays, read_npz, write_npz
from vefl_sim.core.errors import RunNotFound, first_line
from vefl_sim.core.files import explain_write_errors, read_file, write_text
from vefl_sim.core.state import SavedAttributes
from vefl_sim.experiment.plugins import make_part
from vefl_sim.learning.learner import Evaluation
from vefl_sim.learning.model_card import ModelCard
from vefl_sim.records.identity import require_same_parts

if TYPE_CHECKING:
    from vefl_sim.learning.trained_model import TrainedModel

CARD, CONFUSION, FOLDER = "model.json", "confusion.json", "models"
_MAX_CLASSES = 256  # the matrix of more classes could not be read in one piece, and nobody looks at it
_MAX_COUNT = 2**53  # whole numbers from here on are not exact in every reader of JSON
T = TypeVar("T")


class ModelFiles(SavedAttributes):
    """Writes the models of one run. A resumed run writes the files after its checkpoint again, with the same bytes."""

    saved = ("best",)

    def __init__(self, run: Path, keep: int | Literal["best"] | None, card: ModelCard) -> None:
        self._run, self._keep, self._card = run, keep, card
        self.best = -math.inf  # score of the best model so far

    def keep(self, round: int, evaluation: Evaluation | None, arrays: Callable[[], NamedArrays]) -> None:
        """Keep the model after a round if it is due or, with "best", if it is better than any before."""
        if self._keep == "best":
            if evaluation is None or evaluation.score <= self.best:
                return
            self.best = evaluation.score
        elif self._keep is None or round % self._keep:
            return
        if not (model := arrays()):
            return  # nothing is learnt
        file = _file(self._run, round)
        with explain_write_errors(file.parent):
            file.parent.mkdir(exist_ok=True)
            self._write(file, model)
            for other in file.parent.glob("*.npz") if self._keep == "best" else ():
                if other != file:
                    other.unlink()

    def finish(self, arrays: NamedArrays) -> None:
        """Write the model after the last round."""
        if arrays:
            self._write(_file(self._run), arrays)

    def _write(self, file: Path, arrays: NamedArrays) -> None:
        """Write arrays; bfloat16 and other types of JAX, unknown to numpy, become float32, which holds each exactly."""
        known = {name: array.astype(np.float32) if array.dtype.kind == "V" else array for name, array in arrays.items()}
        write_npz(file, known)
        if not (self._run / CARD).exists():
            self._card.write(self._run / CARD)


def _file(run: Path, round: int | None = None) -> Path:
    """The file of the last model or of the one after a round."""
    return run / "model.npz" if round is None else run / FOLDER / f"{round:07d}.npz"


def kept_rounds(run: Path) -> list[int]:
    """The rounds after which a model was kept, ascending."""
    return sorted(int(file.stem) for file in (run / FOLDER).glob("*.npz") if file.stem.isdecimal())


def saved_model(run: Path, round: int | None) -> "TrainedModel":
    """A run's last model or, with `round`, one that was kept; its network is imported when it is used first."""
    from vefl_sim.learning.trained_model import TrainedModel  # it imports JAX, which listing runs does not need

    file = _file(run, round)
    if round is not None and not file.exists():
        rounds = ", ".join(map(str, kept_rounds(run))) or "none (learning.keep_models keeps some)"
        raise RunNotFound(f"{run} has kept no model of round {round}; the rounds with a model are: {rounds}.")
    card = _usable(ModelCard.read, run / CARD)

    def network() -> Any:
        require_same_parts(run, ("model.factory", card.architecture))
        return make_part("model.factory", card.architecture, card.outputs)

    return TrainedModel(card, _usable(read_npz, file), file, network)


def _usable(read: Callable[[Path], T], file: Path) -> T:
    """What a file of a model holds; RunNotFound if it cannot be read."""
    fix = "restore it, or run the experiment again with --fresh"
    try:
        return read(file)
    except FileNotFoundError:
        raise RunNotFound(f"{file} is missing: {fix}.") from None
    except (OSError, ValueError) as error:
        raise RunNotFound(f"{file} cannot be used ({first_line(error)}): {fix}.") from None


@dataclass(frozen=True)
class ConfusionMatrix:
    """Number of test samples by true and by predicted class, at the last evaluation of a run."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # of a file that is read

    round: int  # of the evaluation
    classes: list[str] | None  # names of the classes; None if the data set has none
    counts: Annotated[  # a row for each true class, a column for each predicted one
        list[list[Annotated[int, Field(ge=0, lt=_MAX_COUNT)]]], Field(min_length=1, max_length=_MAX_CLASSES)
    ]

    @classmethod
    def of(cls, round: int, evaluation: Evaluation, names: tuple[str, ...] | None) -> Self | None:
        """The matrix of an evaluation; None if its learner does not count, or if there are more than 256 classes."""
        if evaluation.counts is None or len(evaluation.counts) > _MAX_CLASSES:
            return None
        return cls(round, None if names is None else list(names), evaluation.counts.tolist())

    def write(self, run: Path) -> None:
        """Write the file into a run directory."""
        write_text(run / CONFUSION, json.dumps(asdict(self), separators=(",", ":")) + "\n")


def read_confusion(run: Path) -> ConfusionMatrix | None:
    """The matrix of a run directory, which may come from a stranger; None if it has none."""
    try:
        matrix = TypeAdapter(ConfusionMatrix).validate_json(read_file(run / CONFUSION))
        names = matrix.counts if matrix.classes is None else matrix.classes
        if {len(matrix.counts), len(names)} == {*map(len, matrix.counts)}:
            return matrix
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        pass
    raise RunNotFound(f"{run / CONFUSION} is damaged: delete it, or run the experiment again with --fresh.")
