"""Write what the stored results of the paper say into docs/reproduction.md and README.md: verdicts, tables, pictures.

    python docs/paper_results.py        # after new results (experiments/paper/run.py --next, --add)

Each place in a page is between two comments, `<!-- results of NAME -->` and `<!-- end of results -->`.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.drawing import Drawing, NothingToDraw, draw_figure
from vefl_sim.sweep.points import load_sweep
from vefl_sim.sweep.results.store import Store

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "experiments" / "paper"
FIGURES = ("fig07", "fig08", "fig09", "fig10", "fig11", "fig12", "fig14", "fig15")
"""Figures whose accuracies at the marks are a table in the page, and which have a picture."""
PICTURES = ("fig05", "fig13", "fig16", "fig17", "fig18")
"""Figures of which only the picture is written."""
END = "<!-- end of results -->"


def replaced(text: str, name: str, new: str) -> str:
    """The text with new content in the place of this name."""
    place = re.compile(rf"(<!-- results of {name} -->\n).*?({re.escape(END)})", re.DOTALL)
    if len(place.findall(text)) != 1:
        raise SystemExit(f"<!-- results of {name} --> … {END} must be in the page once")
    return place.sub(lambda found: f"{found[1]}{new}\n{found[2]}", text)


def verdicts() -> tuple[str, str]:
    """The summary of all verdicts, and their table."""
    command = [sys.executable, str(PAPER / "run.py"), "--claims"]
    summary, _, table = subprocess.run(command, check=True, text=True, capture_output=True).stdout.partition("\n\n")
    return summary, table.strip()


def drawn(name: str, folder: Path) -> Drawing | None:
    """The figure from the stored results; None if there are none yet."""
    try:
        return draw_figure(
            load_sweep(PAPER / f"{name}.toml"), folder / "no runs", folder / name, Store(PAPER / "results")
        )
    except NothingToDraw:
        return None


def marks_table(marks: pd.DataFrame) -> str:
    """Accuracies in % at the marks of a figure, a row per line: mean ± standard deviation over the seeds."""
    marks = marks.dropna(subset="mean")
    xs = sorted(marks["x"].unique())
    has_panels, has_reference = (
        marks["panel"].astype(bool).any(),
        "reference" in marks and marks["reference"].notna().any(),
    )
    heads = [
        *(["reading"] if has_panels else []),
        "",
        *(f"{x:g}" for x in xs),
        *(["the paper"] if has_reference else []),
    ]
    rows = ["| " + " | ".join([*heads, "seeds"]) + " |", "|---" * (len(heads) + 1) + "|"]
    for (panel, line), own in marks.groupby(["panel", "line"], sort=False):
        at = own.set_index("x")
        cells = [f"{100 * at['mean'][x]:.1f} ± {100 * at['std'][x]:.1f}" if x in at.index else "" for x in xs]
        paper = [", ".join(f"{100 * value:.2f}" for value in own["reference"].dropna())] if has_reference else []
        cells = [*([panel] if has_panels else []), line, *cells, *paper, f"{own['seeds'].min():.0f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows).replace("± nan", "")


def main() -> None:
    """Write everything."""
    summary, table = verdicts()
    page = replaced((ROOT / "docs/reproduction.md").read_text(), "claims", f"{summary}\n\n{table}")
    with tempfile.TemporaryDirectory() as scratch:
        for name in (*FIGURES, *PICTURES, "table1"):
            drawing = drawn(name, Path(scratch))
            if drawing is None:
                continue
            if name == "table1":
                page = replaced(page, name, drawing.text.strip())
                continue
            if name in FIGURES:
                page = replaced(page, name, marks_table(drawing.chart.marks))
            [picture] = (file for file in drawing.files if file.suffix == ".png")
            (ROOT / "docs" / "pictures" / f"{name}.png").write_bytes(picture.read_bytes())
    (ROOT / "docs/reproduction.md").write_text(page)
    readme = ROOT / "README.md"
    readme.write_text(replaced(readme.read_text(), "claims", summary))


if __name__ == "__main__":
    main()
