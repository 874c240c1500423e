"""The models that a run saves: no part of the content digest.

model.npz      parameters after the last round, as plain arrays, named as in flax: params.Conv_0.kernel
model.json     network, shape and scaling of the inputs, loss, classes
models/*.npz   `learning.keep_models`: parameters after other rounds, by number: 0000010.npz
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import NamedArrays, read_npz, write_npz
from vefl_sim.core.errors import BadInput, RunNotFound, first_line
from vefl_sim.core.files import explain_write_errors
from vefl_sim.core.state import State
from vefl_sim.experiment.plugins import make_part
from vefl_sim.learning.learner import Evaluation
from vefl_sim.learning.model_card import ModelCard
from vefl_sim.records.identity import require_same_parts

if TYPE_CHECKING:
    from vefl_sim.learning.trained_model import TrainedModel

LAST, CARD, FOLDER = "model.npz", "model.json", "models"
Keep = int | Literal["best"] | None
"""Value of `learning.keep_models`."""


class ModelFiles:
    """Writes the models of one run. A resumed run writes the files after its checkpoint again, with the same bytes."""

    def __init__(self, run: Path, keep: Keep, card: ModelCard) -> None:
        self._run, self._keep, self._card = run, keep, card
        self._best = -math.inf  # score of the best model so far

    def keep(self, round: int, evaluation: Evaluation | None, arrays: Callable[[], NamedArrays]) -> None:
        """Keep the model after a round if it is due or, with "best", if it is better than any before."""
        if self._keep == "best":
            if evaluation is None or evaluation.score <= self._best:
                return
            self._best = evaluation.score
        elif self._keep is None or round % self._keep:
            return
        if not (model := arrays()):
            return  # nothing is learnt
        folder, name = self._run / FOLDER, f"{round:07d}.npz"
        with explain_write_errors(folder):
            folder.mkdir(exist_ok=True)
            self._write(folder / name, model)
            if self._keep == "best":
                for other in folder.glob("*.npz"):
                    if other.name != name:
                        other.unlink()

    def finish(self, arrays: NamedArrays) -> None:
        """Write the model after the last round."""
        if arrays:
            self._write(self._run / LAST, arrays)

    def _write(self, file: Path, arrays: NamedArrays) -> None:
        write_npz(file, _plain(arrays))
        if not (self._run / CARD).exists():
            self._card.write(self._run / CARD)

    def state(self) -> State:
        """The best score so far, for a checkpoint."""
        return {"best": self._best}

    def restore(self, state: State) -> None:
        """Restore the best score from a checkpoint."""
        self._best = state["best"]


def _plain(arrays: NamedArrays) -> NamedArrays:
    """Arrays in types that numpy knows: bfloat16 and other types of JAX become float32, which holds each exactly."""

    def plain(array: NDArray[Any]) -> NDArray[Any]:
        return array.astype(np.float32) if array.dtype.kind == "V" else array

    return {name: plain(array) for name, array in arrays.items()}


def kept_rounds(run: Path) -> list[int]:
    """The rounds after which a model was kept, ascending."""
    return sorted(int(file.stem) for file in (run / FOLDER).glob("*.npz") if file.stem.isdecimal())


def saved_model(run: Path, round: int | None) -> "TrainedModel":
    """A run's last model or, with `round`, one that was kept; its network is imported when it is used first."""
    from vefl_sim.learning.trained_model import TrainedModel  # it imports JAX, which listing runs does not need

    card, arrays, file = _read(run, round)

    def network() -> Any:
        require_same_parts(run, ("model.factory", card.architecture))
        return make_part("model.factory", card.architecture, card.outputs)

    return TrainedModel(card, arrays, file, network)


def _read(run: Path, round: int | None) -> tuple[ModelCard, NamedArrays, Path]:
    file = run / LAST if round is None else run / FOLDER / f"{round:07d}.npz"
    if round is not None and not file.exists():
        rounds = ", ".join(map(str, kept_rounds(run))) or "none (learning.keep_models keeps some)"
        raise RunNotFound(f"{run} has kept no model of round {round}; the rounds with a model are: {rounds}.")
    try:
        part = run / CARD
        card = ModelCard.read(part)
        part = file
        return card, read_npz(part), file
    except FileNotFoundError:
        raise RunNotFound(f"{part} is missing: restore it, or run the experiment again with --fresh.") from None
    except BadInput:
        raise
    except (OSError, ValueError) as error:
        fix = "restore it, or run the experiment again with --fresh"
        raise RunNotFound(f"{part} cannot be used ({first_line(error)}): {fix}.") from None
