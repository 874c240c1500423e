"""Draw docs/pictures/overview.png from a finished quickstart run, as `figure` does: positions, accuracy and cost.

python -m vefl_sim experiments/quickstart.toml && python docs/pictures/overview.py
"""

import ending  # noqa: F401

import sys
import tempfile
from pathlib import Path
from shutil import copyfile

from vefl_sim.analysis.overview import draw_overview
from vefl_sim.analysis.runs import find_run


def main() -> None:
    """Draw the overview of the run, and keep its PNG."""
    run = find_run(sys.argv[1] if len(sys.argv) > 1 else "quickstart")
    with tempfile.TemporaryDirectory() as folder:
        [picture] = (file for file in draw_overview(run, Path(folder), round=10) if file.suffix == ".png")
        copyfile(picture, Path(__file__).with_suffix(".png"))


if __name__ == "__main__":
    main()
