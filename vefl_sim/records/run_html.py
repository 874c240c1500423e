"""A run as it shows itself in a notebook: one line of a table, with everything from the run directory escaped."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from vefl_sim.core.errors import VeflError, first_line, printable
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.metric import metric_of_summary
from vefl_sim.records.totals import energy_text

if TYPE_CHECKING:
    from vefl_sim.records.run_directory import Run

_MAX_CHARACTERS = 200  # of a cell


def run_html(run: "Run") -> str:
    """The key figures of a run as an HTML table; of one that cannot be read, the reason."""
    cells = {"run": run.path.resolve().name, "state": run.state}
    try:
        cells |= _figures(run.experiment, run.summary)
    except (VeflError, OSError, OverflowError) as error:
        cells["problem"] = first_line(error)
    return f"<table><thead>{_row('th', cells)}</thead><tbody>{_row('td', cells.values())}</tbody></table>"


def _figures(experiment: Experiment, summary: dict[str, Any]) -> dict[str, str]:
    """Name and text of each figure; unknown ones are a dash."""
    figure = {name: value for name, value in summary.items() if value is not None}
    delivered, ordered = figure.get("updates_delivered", "–"), figure.get("updates_ordered", "–")
    metric = metric_of_summary(experiment.learning.loss, figure)
    last = metric.of_summary("last", figure)
    return {
        "scheme": experiment.scheme.kind,
        "rounds": f"{figure.get('rounds', 0)} of {experiment.rounds}",
        metric.name: "–" if last is None else metric.text(last),
        "delivered": f"{delivered} of {ordered}",
        "paid": format(figure["cost"], ",.1f") if "cost" in figure else "–",
        "energy": energy_text(figure["energy_j"]) if "energy_j" in figure else "–",
        "content digest": str(figure.get("content_digest", "–"))[:16],
    }


def _row(tag: str, texts: Iterable[str]) -> str:
    cells = (f"<{tag}>{escape(printable(text[:_MAX_CHARACTERS]))}</{tag}>" for text in texts)
    return f"<tr>{''.join(cells)}</tr>"
