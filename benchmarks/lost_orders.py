"""Why orders of PDPC are lost because the round ends, although plans assume a worst case.

    python benchmarks/lost_orders.py [--rounds 200] [TABLE.KEY=VALUE ...]

Runs PDPC without learning, with data of the size of Fashion-MNIST, in two kinds of traffic, and prints how much
worse the channel of an order was during its upload than at the start of the round, from which t̄_tx is computed. Then
it repeats each run with one thing changed. Runs with the same plans as the first (the same world, the same orders, the
same t̄_tx) are compared with it order by order: a loss that does not occur again was due to what was changed.
Settings given on the command line change all runs.
"""

import harness  # noqa: F401 (one thread)
from script import SMALL

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import vefl_sim
from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.channel import UmaChannel, uma
from vefl_sim.radio.shadowing import LargeScale, LossParts

TRAFFIC = {
    "35 CVs that wander (the default)": [],
    "18 CVs that pass through": ["traffic.through_share=1", "traffic.mean_in_coverage=18"],
}
UNCHANGED = ["radio.channel=__main__:nothing_held"]
CHANGES = {
    "distance, LOS and shadowing stay as at the start of the round": ["radio.large_scale=round"],
    "only line of sight stays": ["radio.channel=__main__:sight_held"],
    "only shadowing stays": ["radio.channel=__main__:shadowing_held"],
    "only the distance stays": ["radio.channel=__main__:distance_held"],
    "no price for power (rat.efficiency_weight = 0)": ["rat.efficiency_weight=0"],
    "the same, and everything stays": ["rat.efficiency_weight=0", "radio.large_scale=round"],
    'served when trained (mac.start = "ready")': ["mac.start=ready"],
    'rat.method = "equal"': ["rat.method=equal"],
    'rat.method = "max-snr"': ["rat.method=max-snr"],
    'radio.fading = "none"': ["radio.fading=none"],
    'radio.shadowing = "none"': ["radio.shadowing=none"],
    'radio.los = "always"': ["radio.los=always"],
    'radio.los = "never"': ["radio.los=never"],
}


def fashion_sized(experiment: vefl_sim.Experiment, streams: Any) -> Dataset:
    """60,000 images of 28 × 28 × 1 in ten classes; all are black, because none is used."""
    labels = streams.generator("data").integers(10, size=60_000).astype(np.int32)
    images = np.zeros((60_000, 28, 28, 1), np.uint8)
    return Dataset("fashion-sized", images, labels, images[:10], labels[:10], 10)


class PartlyHeld(LargeScale):
    """The large-scale channel of the same world, of which only the `held` parts stay as at the start of the round."""

    scenes: ClassVar[list[tuple[int, pd.DataFrame]]] = []  # of the last run: time, channel of each vehicle

    def __init__(self, radio: RadioTable, rng: np.random.Generator, held: tuple[str, ...]) -> None:
        super().__init__(radio.model_copy(update={"large_scale": "round"}), rng)
        self._held_parts = held

    def move(self, scene: Scene) -> None:
        """Update as usual, and record path loss and line of sight."""
        super().move(scene)
        columns = {"loss_db": self.loss_db(scene.vehicle), "sight": self.line_of_sight(scene.vehicle)}
        self.scenes.append((scene.time_ns, pd.DataFrame(columns, index=scene.vehicle)))

    def _parts(self) -> LossParts:
        """The parts of now, except for those that are held."""
        held = super()._parts()._asdict()
        now = LossParts.of(self._track, self._radio)
        return now._replace(**{name: held[name] for name in self._held_parts})


def _channel(experiment: vefl_sim.Experiment, streams: Any, *held: str) -> UmaChannel:
    large_scale = PartlyHeld(experiment.radio, streams.generator("shadowing"), held)
    return replace(uma(experiment, streams), large_scale=large_scale)


def nothing_held(experiment: vefl_sim.Experiment, streams: Any) -> UmaChannel:
    """The usual channel, which records its scenes."""
    return _channel(experiment, streams)


def sight_held(experiment: vefl_sim.Experiment, streams: Any) -> UmaChannel:
    """Only the line of sight stays as at the start of the round."""
    return _channel(experiment, streams, "los")


def shadowing_held(experiment: vefl_sim.Experiment, streams: Any) -> UmaChannel:
    """Only the shadowing stays as at the start of the round."""
    return _channel(experiment, streams, "shadowing_db")


def distance_held(experiment: vefl_sim.Experiment, streams: Any) -> UmaChannel:
    """Only the distance in the path loss stays as at the start of the round."""
    return _channel(experiment, streams, "distance_m")


def orders(rounds: int, settings: list[str]) -> pd.DataFrame:
    """Simulate a run and return its orders: one row each, indexed by round and CV."""
    tables = {
        "run": {"name": "lost-orders", "rounds": rounds},
        "data": {"kind": "__main__:fashion_sized"},
        "learning": {"kind": "none"},
    }
    experiment = vefl_sim.from_tables(tables)
    experiment = vefl_sim.with_settings(experiment, *settings) if settings else experiment
    with tempfile.TemporaryDirectory() as folder:
        vehicles = vefl_sim.simulate(experiment, out=folder).vehicles
    return vehicles[vehicles["state"].isin(["delivered", "lost"])].set_index(["round", "cv"])


def lost_in(run_orders: pd.DataFrame) -> pd.Index:
    """Round and CV of the orders that were lost because the round ended."""
    return run_orders.query("reason == 'round_ended'").index


def line(run_orders: pd.DataFrame, first: pd.DataFrame) -> str:
    """How many orders of a run are lost, and how many of them are lost in the first run, too."""
    lost, lost_first = lost_in(run_orders), lost_in(first)
    planned = ["worst_slots", "iterations", "train_ns"]
    same_plans = run_orders.index.equals(first.index) and run_orders[planned].equals(first[planned])
    of_first = f"{len(lost.intersection(lost_first)):5} of {len(lost_first)}" if same_plans else "  other plans"
    return f"{len(lost):6} of {len(run_orders)} ({len(lost) / len(run_orders):.2%}) {of_first:>13}"


def with_channel(run_orders: pd.DataFrame) -> pd.DataFrame:
    """Add to each order how many dB worse its channel was during the upload than at the start, and if LOS was lost."""
    times, channels = zip(*PartlyHeld.scenes, strict=True)
    sent = run_orders[["train_ns", "delay_ns"]].astype("int64") + run_orders[["ordered_ns"]].astype("int64").to_numpy()
    spans = np.searchsorted(times, sent, side="right") - 1
    start = np.searchsorted(times, run_orders["ordered_ns"].astype("int64"))
    rows = []
    for (_, cv), at, (first, last) in zip(run_orders.index, start, spans, strict=True):
        before = channels[at].loc[cv]
        during = [channels[i].loc[cv] for i in range(first, last + 1) if cv in channels[i].index]
        worse_db = np.mean([now["loss_db"] for now in during]) - before["loss_db"]
        rows.append((worse_db, before["sight"] and not all(now["sight"] for now in during)))
    return run_orders.assign(**dict(zip(("worse_db", "sight_lost"), zip(*rows, strict=True), strict=True)))


def channel_lines(run_orders: pd.DataFrame) -> Iterator[str]:
    """Lines on how the channel changed for the lost orders and for the delivered ones."""
    for name in ("lost", "delivered"):
        group = run_orders[run_orders["state"] == name]
        if len(group):
            low, middle, high = np.quantile(group["worse_db"].to_numpy(float), (0.05, 0.5, 0.95))
            yield (
                f"  {name}: {len(group)} orders; channel worse by {middle:.1f} dB (median; 5 to 95 %: {low:.1f} to "
                f"{high:.1f}); {group['sight_lost'].sum()} lost line of sight"
            )
    for limit_db in (0, 3, 6, 10):
        group = run_orders[run_orders["worse_db"] > limit_db]
        lost = len(lost_in(group))
        share = lost / max(1, len(group))
        yield f"  worse by more than {limit_db} dB: {len(group)} orders, {lost} ({share:.1%}) of them lost"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only-channel", action="store_true", help="do not repeat the runs with one thing changed")
    parser.add_argument("settings", nargs="*", metavar="TABLE.KEY=VALUE")
    options = parser.parse_args()
    for name, traffic in [*TRAFFIC.items()][: 1 if SMALL else None]:
        PartlyHeld.scenes.clear()
        first = orders(options.rounds, [*traffic, *UNCHANGED, *options.settings])
        print(f"{name}, {options.rounds} rounds", *channel_lines(with_channel(first)), sep="\n")
        print(
            f"  {'orders lost because the round ended; of them, in the first run':64}{line(first, first)}", flush=True
        )
        for change, settings in () if options.only_channel else CHANGES.items():
            run_orders = orders(options.rounds, [*traffic, *settings, *options.settings])
            print(f"  {change:64}{line(run_orders, first)}", flush=True)


if __name__ == "__main__":
    main()
