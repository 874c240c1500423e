"""Draw docs/pictures/partition.png: the same data set split over the same CVs in three ways.

python docs/pictures/partition.py
"""

from ending import SMALL

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from vefl_sim import from_tables
from vefl_sim.analysis.data_split import data_split, panels

SPLITS: tuple[dict[str, Any], ...] = (
    {"partition": "dirichlet", "dirichlet_alpha": 0.1},
    {"partition": "shards", "shards_per_cv": 2},
    {"partition": "iid"},
)
TABLES = {"run": {"name": "picture", "duration_s": 10.0 if SMALL else 500.0}}
NAMES = ('partition = "dirichlet", α = 0.1', 'partition = "shards", 2 per CV', 'partition = "iid"')
STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}


def main() -> None:
    """Split the signs data set over the CVs of 500 s of default traffic."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            2, len(SPLITS), figsize=(12, 4.8), layout="constrained", height_ratios=(1, 2.2), sharey="row"
        )
        splits = [data_split(from_tables(TABLES | {"data": data})) for data in SPLITS]
        most = max(split.counts.max() for split in splits)
        for (above, below), split, name in zip(axes.T, splits, NAMES, strict=True):
            mesh = panels(above, below, split.counts, most)
            above.set_title(name, fontsize=10, loc="left")
            print("\n".join(split.lines()))
        for place in axes[:, 1:].flat:
            place.set_ylabel("")
        figure.colorbar(mesh, ax=axes[1], label="samples", format="{x:.0f}", aspect=30, pad=0.01)
        cvs, classes = split.counts.shape
        title = f"{split.counts.sum()} signs of {classes} classes, split over {cvs} CVs"
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
