"""Evaluates the saved model of a run on its own samples, or on another data set."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vefl_sim.core.errors import BadInput
from vefl_sim.core.memory import cores
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import DataTable, Experiment
from vefl_sim.experiment.kinds import DATA_SETS
from vefl_sim.experiment.plugins import declaration, is_part, load_part
from vefl_sim.learning.datasets.dataset import Dataset, Targets
from vefl_sim.learning.datasets.kinds import rule_mse
from vefl_sim.learning.jax_learner import configure_jax
from vefl_sim.learning.learner import Evaluation
from vefl_sim.learning.losses import Loss
from vefl_sim.learning.metric import metric_of
from vefl_sim.learning.model_card import PIXELS, ModelCard
from vefl_sim.learning.objective import Evaluator, Objective
from vefl_sim.learning.trained_model import TrainedModel
from vefl_sim.records.identity import package_digest, recorded_versions, require_same_parts
from vefl_sim.records.run_directory import Run
from vefl_sim.simulation.scenario import data_of

_MAX_CLASSES = 1000  # whose accuracies are printed one by one


@dataclass(frozen=True)
class Score:
    """Accuracy and loss of a model on some samples."""

    samples: str  # what they are
    size: int  # how many
    classes: tuple[str, ...]  # names, or numbers if there are none; empty without classes
    evaluation: Evaluation
    loss: str = "cross-entropy"  # `learning.loss`
    rule_note: str = ""  # how good a rule without learning is on the same samples

    def lines(self) -> Iterator[str]:
        """The score, then the accuracy of each class, as printable lines."""
        yield f"{'data':16}{self.samples}"
        if (accuracy := self.evaluation.accuracy) is not None:
            yield f"{'accuracy':16}{accuracy:.4f} ({round(accuracy * self.size)} of {self.size} samples)"
            yield f"{'loss':16}{self.evaluation.loss:.4f}"
        else:
            metric = metric_of(self.loss, has_accuracy=False)
            yield f"{'loss':16}{self.evaluation.loss:#.4g}{metric.loss_note}"
            if metric.is_root:
                yield f"{metric.name:16}{metric.text(metric.of_column(self.evaluation.loss))}{self.rule_note}"
        if (counts := self.evaluation.counts) is None:
            return
        width = max(map(len, self.classes))
        for name, row, hit in zip(self.classes, counts.sum(axis=1), np.diagonal(counts), strict=True):
            share = f"{hit / row:.4f}" if row else "–"
            yield f"{'':16}{name:{width}}  {share:>6} ({hit} of {row})"


def parts_of(run: Run, model: TrainedModel, data: str | None) -> list[tuple[str, str]]:
    """The user-defined parts, as (TOML key, `module:name`), that evaluating a model of a run imports."""
    named = [("model.factory", model.card.architecture), ("data.kind", data or run.experiment.data.kind)]
    named.append(("learning.loss", model.card.loss))
    return [(key, name) for key, name in named if is_part(name)]


def version_note(run: Run) -> str | None:
    """A note if the run was made with other sources of vefl_sim than these."""
    if recorded_versions(run.path).get("vefl_sim source") == package_digest():
        return None
    return "the run was made with another version of vefl_sim: the figures may differ from those of the run"


def evaluate(run: Run, model: TrainedModel, data: str | None = None, folder: Path | None = None) -> list[Score]:
    """Evaluate a model of a run.

    Without `data`, on the samples on which the run has evaluated it; if these were held out for validation, also on
    the test set. `data`: on the test set of another kind of data, whose files are in `folder`, or of a folder or zip.
    """
    experiment = run.experiment
    configure_jax(experiment.learning.threads or cores())
    _ = model.module  # if it does not fit, no data need be read
    if model.card.loss != experiment.learning.loss:
        raise BadInput(
            f"{run.path / 'model.json'} names the loss {model.card.loss}, and the run has {experiment.learning.loss}: "
            "restore the file."
        )
    of_the_run = ("learning.loss", "data.kind") if data is None else ("learning.loss",)
    require_same_parts(run.path, *(part for part in parts_of(run, model, data) if part[0] in of_the_run))
    if data is not None:
        return [_score(model, "test", data_of(_with_data(experiment, model.card, data, folder), Streams(1)), data)]
    streams, traffic = Streams(experiment.run.seed), _traffic_of(run)
    splits = [("test", experiment)]
    if experiment.data.validation_samples:
        table = experiment.data.model_copy(update={"validation_samples": 0})
        splits = [("validation", experiment), ("test", experiment.model_copy(update={"data": table}))]
    datasets = ((split, data_of(of_split, streams, traffic)) for split, of_split in splits)
    return [_score(model, split, ds, rule_note=_rule_note(experiment.data, ds)) for split, ds in datasets]


def _rule_note(data: DataTable, dataset: Dataset) -> str:
    """The error of the rule that the data set declares, on the same samples; empty if there is none."""
    mse = rule_mse(data, dataset)
    return f" ({mse[0]}: {math.sqrt(mse[1]):#.4g})" if mse else ""


def _traffic_of(run: Run) -> Path | None:
    """The folder with the traffic of the run, if it has been driven ahead and is intact."""
    fault = declaration("mobility.kind", run.experiment.mobility.kind, "fault", None)
    return run.path / "traffic" if fault and not fault(run.path / "traffic") else None


def _with_data(experiment: Experiment, card: ModelCard, data: str, folder: Path | None) -> Experiment:
    """The experiment with another data set, whose images get the size that the model takes if they have no other."""
    is_kind = data in DATA_SETS or is_part(data)
    if not is_kind and not Path(data).exists():
        kinds = ", ".join(DATA_SETS)
        raise BadInput(f"--data {data}: there is no such data set, folder or zip: the data sets are {kinds}.")
    table = DataTable.model_construct(
        kind=data if is_kind else "folder",
        dir=str(folder or "") if is_kind else data,
        image_px=card.input_shape[0] if len(card.input_shape) == 3 else DataTable().image_px,
        horizon_s=experiment.data.horizon_s,
        train_samples=10 if data == "signs" else None,  # training samples are drawn for nothing
    )
    return experiment.model_copy(update={"data": table})


def _score(model: TrainedModel, split: str, dataset: Dataset, name: str | None = None, rule_note: str = "") -> Score:
    card = model.card
    shapes = [" × ".join(map(str, shape)) for shape in (dataset.input_shape, card.input_shape)]
    if shapes[0] != shapes[1]:
        raise _misfit(name or dataset.name, f"inputs of {shapes[0]}", shapes[1])
    if (dataset.train_inputs.dtype == np.uint8) != (card.input_type == "uint8"):
        kinds = ("pixels", "other numbers") if card.scaling is None else ("no pixels", "pixels")
        raise _misfit(name or dataset.name, *kinds)
    targets, note = _targets(dataset, card, name or dataset.name)
    loss: Loss = load_part("learning.loss", card.loss)
    inputs, counts = dataset.test_inputs, (card.classes or 0) <= _MAX_CLASSES
    if card.scaling and card.scaling != PIXELS:  # that of another version
        inputs = card.scaling(inputs.astype(np.float32))
    evaluator = Evaluator(Objective(model.module, loss), (inputs, targets), card.classes, counts=counts)
    evaluation = evaluator.evaluate(model.model)
    names = card.class_names or tuple(map(str, range(card.classes or 0)))
    described = f"{name or dataset.name}, {len(targets)} {split} samples{note}"
    return Score(described, len(targets), names, evaluation, card.loss, rule_note)


def _misfit(name: str, has: str, takes: str) -> BadInput:
    """The error about a data set that does not fit a model."""
    return BadInput(f"{name} has {has}, and the model takes {takes}: name a data set that fits the model.")


def _targets(dataset: Dataset, card: ModelCard, name: str) -> tuple[Targets, str]:
    """The targets; labels as the model numbers its classes, found by their names if it has them, and a note if not."""
    if card.classes is None:
        if dataset.classes is None and dataset.outputs == card.outputs:
            return dataset.test_targets, ""
        what = "numbers per target" if dataset.classes is None else "classes"
        raise _misfit(name, f"{dataset.outputs} {what}", f"{card.outputs} numbers per target")
    own, known = dataset.class_names, card.class_names
    if own and known and set(own) <= set(known):
        numbers = np.array([known.index(one) for one in own], np.int32)
        return numbers[dataset.test_targets], ""
    if dataset.classes != card.classes:
        raise _misfit(name, f"{dataset.classes or 'no'} classes", f"{card.classes}, or some of them by their names")
    return dataset.test_targets, "" if own == known else "; its classes have other names, and are taken by number"
