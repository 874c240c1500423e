"""Compares what the paper's evaluation says with stored results: the rules of `claims.toml`.

A claim is judged in both readings (docs/reproduction.md#two-readings), from the seeds that all its points have.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.analysis.figures.measures import samples
from vefl_sim.analysis.figures.request import request_from
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.points import Point, Sweep, flat
from vefl_sim.sweep.results.result import Measurements, floats

READINGS = ("as in the paper", "fair")
LEAST_SEEDS = {"deviation": 5, "failing seeds": 5}
"""Number of seeds that a measure needs; all others need two."""
THRESHOLD = 0.70
"""Of Fig. 16."""
LATE = 200
"""Deviations over the seeds are averaged from this round on, where curves are flat."""

Find = Callable[[Point], Measurements | None]
Runs = Sequence[Measurements]
"""The runs of one line of a figure, by seed."""


class Verdict(StrEnum):
    """How a claim compares with our results."""

    REPRODUCED = "reproduced"
    TREND = "in the trend only"
    NOT = "not reproduced"
    NOT_RUN = "not yet run"
    SAME = "the same"  # as in the other reading, which has the same lines
    NO_LINE = "–"  # the reading has no such line


def accuracies(run: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """Rounds in which the model was evaluated, and its accuracies."""
    values = floats(run.rounds["accuracy"])
    known = np.isfinite(values)
    return floats(run.rounds["round"])[known], values[known]


def accuracy(runs: Runs, round: float) -> float:
    """Mean accuracy in the evaluated round that is nearest to this one."""
    pairs = (accuracies(run) for run in runs)
    return float(np.mean([values[np.argmin(np.abs(rounds - round))] for rounds, values in pairs]))


def mean_curve(runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """Evaluated rounds, and the mean accuracy in them."""
    return accuracies(runs[0])[0], np.mean([accuracies(run)[1] for run in runs], axis=0)


def deviation(runs: Runs, from_round: float) -> float:
    """Standard deviation of the accuracy over the seeds, averaged over the rounds from this one on."""
    late = accuracies(runs[0])[0] >= from_round
    return float(np.std([accuracies(run)[1][late] for run in runs], axis=0, ddof=1).mean())


def swing(runs: Runs, from_round: float) -> float:
    """Standard deviation of a run's accuracy over its rounds from this one on, mean over the seeds."""
    return float(np.mean([values[rounds >= from_round].std() for rounds, values in map(accuracies, runs)]))


def failures(runs: Runs, after: float) -> float:
    """Share of the seeds and rounds after this one with an accuracy under 70 %."""
    return float(np.mean([values[rounds > after] < THRESHOLD for rounds, values in map(accuracies, runs)]))


def failing(runs: Runs, round: float) -> float:
    """Share of the seeds whose accuracy is under 70 % in the evaluated round that is nearest to this one."""
    return float(np.mean([accuracy([run], round) < THRESHOLD for run in runs]))


def share(values: Callable[[Measurements], np.ndarray], holds: Callable[[Any, float], Any]) -> Callable[..., float]:
    """A measure: in what share of the values of a run the comparison with a limit holds, mean over the seeds."""
    return lambda runs, limit: float(np.mean([holds(values(run), limit).mean() for run in runs]))


P_SUC = request_from({"kind": "p_suc", "count": "paper"})
"""How Fig. 17 counts: p_suc of each round, the mean over C_k."""

MEASURES: dict[str, Callable[[Runs, float], float]] = {
    "accuracy": accuracy,
    "final accuracy": lambda runs, _: float(np.mean([accuracies(run)[1][-1] for run in runs])),
    "late accuracy": lambda runs, at: float(mean_curve(runs)[1][mean_curve(runs)[0] >= at].mean()),
    "best accuracy": lambda runs, _: float(mean_curve(runs)[1].max()),
    "best round": lambda runs, _: float(mean_curve(runs)[0][mean_curve(runs)[1].argmax()]),
    "highest accuracy of a seed": lambda runs, _: max(float(accuracies(run)[1].max()) for run in runs),
    "deviation": deviation,
    "swing": swing,
    "failures after": failures,
    "failing seeds": failing,
    "sojourn below": share(lambda run: run.sojourns_s, np.less),
    "p_suc at least": share(lambda run: samples(run, P_SUC), np.greater_equal),
    "cost below": share(lambda run: floats(run.rounds["cost"]), np.less),
    "total cost": lambda runs, _: float(np.mean([floats(run.rounds["cost"]).sum() for run in runs])),
}
"""By the name in claims.toml: a number of the runs of a line, and the parameter `at` of the claim."""
PLAIN = {"best round": "{:.0f}", "total cost": "{:,.0f}"}
"""Formats of the measures that are no shares; all others are printed in percent."""


@dataclass(frozen=True)
class Limits:
    """How far a number may be off."""

    value: float  # for "reproduced"
    trend: float  # for "in the trend only"
    reason: str


@dataclass(frozen=True)
class Claim:
    """One statement of the paper."""

    figure: str
    says: str
    rule: str
    measure: str
    limits: Limits
    of: list[str | None] = field(default_factory=lambda: [None])  # schemes; none if the figure has only one
    where: dict[str, Any] = field(default_factory=dict)  # values of swept keys
    along: dict[str, Any] = field(default_factory=dict)  # one swept key, with a line for each of its values
    at: list[float] = field(default_factory=lambda: [float(LATE)])
    paper: list[float] = field(default_factory=list)
    fitted: bool = False  # the world or the reading was chosen by these numbers
    readings: Sequence[str] = READINGS  # in which its lines are run
    leaders: int = 1  # the first lines, which lead ("above") or do not ("no better")

    def lines(self) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """Scheme and swept values of each line."""
        steps = [{key: value} for key, values in flat(self.along).items() for value in values] or [{}]
        return ((scheme, flat(self.where) | step) for scheme in self.of for step in steps)

    def text(self, values: Sequence[float], digits: int = 1) -> str:
        """Numbers as they are printed."""
        form = PLAIN.get(self.measure, f"{{:.{digits}f}}")
        return " / ".join(form.format(value if self.measure in PLAIN else 100 * value) for value in values)


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim in one reading."""

    verdict: Verdict
    values: Sequence[float] = ()
    seeds: int = 0

    @property
    def text(self) -> str:
        """The verdict, with the number of seeds that it is from."""
        return f"{self.verdict} ({self.seeds})" if self.values else str(self.verdict)


def within(off: float, limits: Limits) -> Verdict:
    """The verdict on a number that is off by this much; on the edge of a limit it is still within."""
    if off <= limits.value + 1e-9:
        return Verdict.REPRODUCED
    return Verdict.TREND if off <= limits.trend + 1e-9 else Verdict.NOT


def near(values: np.ndarray, claim: Claim) -> Verdict:
    """Every number is near the paper's."""
    return within(float(np.abs(values - claim.paper).max()), claim.limits)


def at_most(values: np.ndarray, claim: Claim) -> Verdict:
    """No number is above the paper's, or above 0 where it has only words."""
    return within(float((values - (claim.paper or [0.0])).max()), claim.limits)


def at_least(values: np.ndarray, claim: Claim) -> Verdict:
    """No number is below the paper's."""
    return within(float((claim.paper - values).max()), claim.limits)


def alike(values: np.ndarray, claim: Claim) -> Verdict:
    """The lines are near each other."""
    return within(float(np.ptp(values)), claim.limits)


def no_better(values: np.ndarray, claim: Claim) -> Verdict:
    """The first line is above none of the others."""
    return within(float(values[0] - values[1:].min()), claim.limits)


def above(values: np.ndarray, claim: Claim) -> Verdict:
    """Each of the first `leaders` lines is above all others."""
    return leading(float(values[: claim.leaders].min() - values[claim.leaders :].max()), claim)


def best_above(values: np.ndarray, claim: Claim) -> Verdict:
    """The best of the first `leaders` lines is above all others."""
    return leading(float(values[: claim.leaders].max() - values[claim.leaders :].max()), claim)


def leading(lead: float, claim: Claim) -> Verdict:
    """The verdict on a lead: half of the paper's is wanted, or `value` where it names none."""
    wanted = claim.paper[0] / 2 if claim.paper else claim.limits.value
    if lead >= wanted - 1e-9:
        return Verdict.REPRODUCED
    return Verdict.TREND if lead > 0 else Verdict.NOT


def falling(values: np.ndarray, claim: Claim) -> Verdict:
    """The number falls from line to line, each time by more than `value`; in the trend: from the first to the last."""
    least = claim.limits.value
    if (np.diff(values) < -least).all():
        return Verdict.REPRODUCED
    return Verdict.TREND if values[-1] < values[0] - least else Verdict.NOT


RULES: dict[str, Callable[[np.ndarray, Claim], Verdict]] = {
    "near": near,
    "at most": at_most,
    "at least": at_least,
    "alike": alike,
    "no better": no_better,
    "above": above,
    "best above": best_above,
    "falling": falling,
}
"""By the name in claims.toml."""


def judge(claim: Claim, lines: Sequence[Mapping[int, Measurements]]) -> Judgement:
    """Judge a claim by the runs of its lines, each by seed."""
    seeds = sorted(set.intersection(*(set(line) for line in lines)))
    if len(seeds) < LEAST_SEEDS.get(claim.measure, 2):
        return Judgement(Verdict.NOT_RUN, seeds=len(seeds))
    measure = MEASURES[claim.measure]
    values = np.array([measure([line[seed] for seed in seeds], at) for line in lines for at in claim.at])
    return Judgement(RULES[claim.rule](values, claim), values.tolist(), len(seeds))


def lines_of(claim: Claim, sweep: Sweep, reading: str, find: Find) -> list[dict[int, Measurements]] | None:
    """The runs of the lines that a claim names, in a reading; None if the reading has no such line."""
    lines = []
    for scheme, values in claim.lines():
        label = label_of(scheme, reading, sweep.labels)
        points = [p for p in sweep.points if p.label == label and values.items() <= p.values.items()]
        if not points:
            return None
        lines.append({point.seed: run for point in points if (run := find(point)) and not run.stale})
    return lines


def label_of(scheme: str | None, reading: str, labels: Sequence[str]) -> str | None:
    """The label of a line in a reading: "FDPC, fair", or "fair", or "PDPC", which is the same in both readings."""
    wanted = f"{scheme}, {reading}" if scheme else reading
    return wanted if wanted in labels else scheme


def differ(claim: Claim, labels: Sequence[str]) -> bool:
    """Whether a claim has other lines in the second reading than in the first."""
    return any(label_of(scheme, READINGS[0], labels) != label_of(scheme, READINGS[1], labels) for scheme in claim.of)


def claim_of(entry: dict[str, Any], limits: Mapping[str, Limits]) -> Claim:
    """The claim of a [[claim]] table, whose `judged` holds rule, measure and the name of a tolerance."""
    rule = dict(entry.pop("judged"))
    return Claim(limits=limits[rule.pop("tolerance")], **entry, **rule)


def read_claims(file: Path) -> list[Claim]:
    """The claims of a file, in which tolerances with their reasons are named."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        limits = {name: Limits(**entry) for name, entry in tables["tolerance"].items()}
        claims = [claim_of(entry, limits) for entry in tables["claim"]]
        unknown = {claim.rule for claim in claims} - {*RULES} | {claim.measure for claim in claims} - {*MEASURES}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{file} cannot be read ({type(error).__name__}: {error}): restore it.") from None
    if unknown:
        raise BadInput(f"{file} names {', '.join(sorted(unknown))}, which is no rule or measure: correct it.")
    for claim in claims:
        if claim.rule in ("near", "at least") and len(claim.paper) != len([*claim.lines()]) * len(claim.at):
            raise BadInput(f'{file}: "{claim.says}" needs a number of the paper for each line and round: add them.')
    return claims


def judged(claims: Sequence[Claim], sweeps: Mapping[str, Sweep], find: Find) -> Iterator[tuple[Claim, list[Judgement]]]:
    """Each claim with its judgement in both readings."""
    for claim in claims:
        sweep = sweeps[claim.figure]
        lines = [lines_of(claim, sweep, reading, find) if reading in claim.readings else None for reading in READINGS]
        if lines[0] is None:
            raise BadInput(f'claims.toml: "{claim.says}" names a line that {claim.figure} does not have: correct it.')
        first, second = (Judgement(Verdict.NO_LINE) if own is None else judge(claim, own) for own in lines)
        is_same = lines[1] is not None and not differ(claim, sweep.labels)
        yield claim, [first, Judgement(Verdict.SAME) if is_same else second]


def table(rows: Sequence[tuple[Claim, Sequence[Judgement]]]) -> str:
    """All claims and verdicts as a Markdown table."""
    lines = [
        "| | the paper says | paper | as in the paper | verdict (seeds) | fair | verdict (seeds) |",
        "|---" * 7 + "|",
    ]
    for claim, judgements in rows:
        says = f"{claim.says} (fitted)" if claim.fitted else claim.says
        cells = [cell for one in judgements for cell in (claim.text(one.values), one.text)]
        lines.append("| " + " | ".join([claim.figure, says, claim.text(claim.paper, digits=2), *cells]) + " |")
    return "\n".join(lines)


def summary(rows: Sequence[tuple[Claim, Sequence[Judgement]]]) -> str:
    """How many statements have which verdict in each reading; those that were fitted are counted apart."""
    free = [judgements for claim, judgements in rows if not claim.fitted]
    parts = []
    for number, reading in enumerate(READINGS):
        verdicts = [js[0].verdict if js[number].verdict == Verdict.SAME else js[number].verdict for js in free]
        counts = [f"{verdicts.count(v)} {v}" for v in Verdict if verdicts.count(v) and v != Verdict.NO_LINE]
        parts.append(f'read "{reading}": {", ".join(counts)}')
    fitted = sum(claim.fitted for claim, _ in rows)
    return (
        f"Of {len(rows)} statements of the paper's evaluation, {fitted} were used to choose our world or the reading. "
        f"Of the other {len(free)}, {'; '.join(parts)}."
    )
