"""The report page of one run."""

import json
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.analysis.files import write_file
from vefl_sim.analysis.reasons import REASONS, in_words
from vefl_sim.analysis.report import data
from vefl_sim.analysis.report.document import Document, Section, asset, fold, html, page_top
from vefl_sim.analysis.report.facts import cautions, changed_keys, figures, provenance_html, sentence
from vefl_sim.analysis.report.map import bounds_of, grid_lines_m, tracks_of
from vefl_sim.analysis.report.source import Source
from vefl_sim.analysis.verify.verification import blaming_damage
from vefl_sim.records.run_directory import Run

NAME = "report.html"
_SCRIPTS = (
    *("data.js", "svg.js", "download.js", "terms.js", "states.js", "curves.js", "funnel.js", "cars.js", "clock.js"),
    *("strip.js", "map.js", "panel.js", "timeline.js", "shares.js", "confusion.js", "main.js"),
)
_STORIES = 10  # losses or closest calls
_MAX_TEXTS = 60_000  # explanations on a page; a run of 2000 s has some 6000 to 14,000


def write_report(run: Run, path: Path | None = None) -> Path:
    """Write the page of a run into its directory, or as `path`; returns where it is."""
    return write_file(path or run.path / NAME, report(run).encode())


def report(run: Run) -> str:
    """The page of a run as HTML; RunNotFound if the run is damaged."""
    with blaming_damage(run):
        return _document(Source(run)).render()


def _document(source: Source) -> Document:
    name = source.run.path.name
    return Document(
        title=f"{name}: vefl_sim",
        header=_header(source),
        sections=[*_sections(source)],
        scripts=_SCRIPTS if source.rounds else (),
        data=_data(source) if source.rounds else {},
    )


def _header(source: Source) -> str:
    """The run in a sentence, warnings, key figures and changed keys."""
    tiles = "".join(
        f"<div class='tile'><span class='label'>{html(label)}</span><span class='value'>{html(value)}</span>"
        f"<span class='note'>{html(note)}</span></div>"
        for label, value, note in figures(source)
    )
    keys = [*changed_keys(source.experiment)]
    listed = "".join(
        f"<li><code>{html(key)}</code> = <b>{html(value)}</b> <span class='default'>{html(default)}</span></li>"
        for key, value, default in keys
    )
    changed = f"{len(keys)} keys differ from their defaults <span class='quiet'>(defaults in grey)</span>"
    kind = f"<span>{html(source.run.path.name)}</span>"
    top = page_top(kind, source.experiment.run.name, sentence(source), cautions(source))
    folded = fold(changed, f"<ul class=keys>{listed}</ul>", is_open=len(keys) <= 20)
    return f"{top}<div class='tiles'>{tiles}</div>{folded}"


def _sections(source: Source) -> Iterator[Section]:
    if source.rounds:
        unit = source.unit
        lead = f"By {unit}." if source.trains_centrally else f"By {unit}; click on one to see it on the map."
        yield Section("curves", "Curves", asset("curves.html"), lead)
        if not source.trains_centrally:
            yield from _participation(source, unit)
        if confusion := data.confusion_of(source):
            model = f"the model of {unit} {confusion.round}"
            lead = f"Test samples by true class (rows) and predicted class (columns), for {model}."
            yield Section("classes", "Accuracy by class", "<div id='confusion'></div>", lead)
    yield Section("origin", "Origin", provenance_html(source))


def _participation(source: Source, unit: str) -> Iterator[Section]:
    orders = " Ordered and delivered count orders, of which a CV may have several." if source.without_rounds else ""
    lead = f"From the CVs in coverage to the updates that arrived, in the whole run and by {unit}.{orders}"
    yield Section("funnel", "Who took part", "<div id='funnel-total'></div><div id='funnel-rounds'></div>", lead)
    notes = "".join(f"<p class='quiet'>{html(note)}</p>" for note in _notes(source))
    yield Section("replay", "Replay", f"{asset('replay.html')}<div class='notes'>{notes}</div>")
    yield _stories(source)
    lead = "How decisions about CVs ended, by how much data the CV holds, and by its distance from the gNB."
    yield Section("shares", "Participation", asset("shares.html"), lead)


def _stories(source: Source) -> Section:
    """The ten lost updates for which most was paid; if none was lost, the ten with the least time to spare.

    Each can be opened to read why, and shown on the map, which opens with the first.
    """
    orders = [order for order in data.orders_of(source) if order["state"] in ("delivered", "lost")]
    if lost := [order for order in orders if order["state"] == "lost"]:
        lost.sort(key=lambda order: (-(order["paid"] or 0.0), order["round"], order["cv"]))
        title, chosen = "Worst losses", lost[:_STORIES]
        lead = f"{len(chosen)} of {len(lost):,} lost updates: those for which most was paid."
    else:
        orders.sort(key=lambda order: (_spare_ms(order), -(order["slots"] or 0), order["round"], order["cv"]))
        title, lead, chosen = "Closest calls", "No update was lost.", orders[:_STORIES]
        lead += " These had the least time left before their deadline." * bool(orders)
    items = "".join(_story(source, order) for order in chosen)
    return Section("losses", title, f"<ol class='losses'>{items}</ol>" if items else "", lead)


def _story(source: Source, order: dict[str, Any]) -> str:
    """How an order ended, with the text of `trace --why`, which is empty for a round that the trace does not have."""
    explanations, cv, round_, spare_ms = source.explanations, order["cv"], order["round"], _spare_ms(order)
    facts = [f"paid {order['paid'] or 0.0:,.2f}", f"{order['joules'] or 0.0:,.2f} J"]
    if order["state"] == "lost":
        outcome, bits = in_words(order["reason"]), (order["bits"] or 0.0) + (order["left"] or 0.0)
        facts.append(f"{min((order['bits'] or 0.0) / bits, 0.999) if bits else 0.0:.1%} sent")
    elif math.isinf(spare_ms):
        outcome = "delivered, without a deadline"
    elif spare_ms < source.experiment.slots.slot_ns / 1e6:
        outcome = "delivered in the last slot before its deadline"
    else:
        outcome = f"delivered {spare_ms:,.1f} ms before its deadline"
    why = explanations.why(cv, round_) if round_ in explanations.started else []
    lines = "".join(f"<p class='why'>{html(line)}</p>" for line in why)
    place = f'data-cv="{html(cv)}" data-time="{round(order["ended"])}" data-round="{html(round_)}"'
    show = f'<button type="button" data-action="jump" {place}>Show on the map</button>'
    who = f"<span class='who'>CV {html(cv)}, {source.unit} {html(round_)}</span>"
    shown = "".join(f"<span>{html(fact)}</span>" for fact in facts)
    return f"<li>{fold(f'{who} <span>{html(outcome)}</span><span class=facts>{shown}</span>', lines + show)}</li>"


def _spare_ms(order: dict[str, Any]) -> float:
    """Time between the end of an upload and its deadline."""
    return math.inf if order["deadline"] is None else float(order["deadline"] - order["ended"])


def _notes(source: Source) -> Iterator[str]:
    """What the replay leaves out, and what is not recorded."""
    every_s = source.experiment.trace.mobility_every_s
    if source.table("mobility") is None:
        yield "The run has no positions of vehicles (table mobility), so the map shows none."
    else:
        yield (
            f"Positions: recorded every {every_s:g} s, shown in steps of 0.1 m. Between them the speed changes evenly, "
            "and on the street grid the way leads over the corner if there is one."
        )
    if source.experiment.scheme.constrained and source.table("slots") is None and source.table("uploads") is None:
        yield (
            'Slots were not recorded (trace.slots = "off"): the rate of an upload is its mean over the slots that it '
            "used, from the events; how many pRBs it had is not known."
        )
    if source.experiment.trace.slots == "sampled":
        yield 'pRBs and rates are those of every 100th slot (trace.slots = "sampled").'
    if (left_out := len(_decided(source)) - _MAX_TEXTS) > 0:
        yield f"{left_out:,} explanations of CVs without an order are left out; trace --why prints them."


def _map(source: Source) -> dict[str, Any]:
    """Positions of vehicles, streets (null if they are not a grid: where vehicles drove) and the borders of the map."""
    experiment, mobility, roads = source.experiment, source.table("mobility"), source.experiment.roads
    is_grid, tracks = experiment.mobility.kind == "idm", list[list[int]]()
    places_m = np.vstack(grid_lines_m(experiment)) if is_grid else np.zeros((0, 2))
    if mobility is not None:
        tracks = tracks_of(mobility, experiment.trace.mobility_every_s)
        places_m = places_m if is_grid else mobility[["x_m", "y_m"]].to_numpy(float)
    return {
        "tracks": tracks,
        "streets": [line.ravel().tolist() for line in grid_lines_m(experiment)] if is_grid else None,
        "grid": {"block": roads.block_m, "blocks": roads.blocks_xy} if is_grid else None,
        "bounds": bounds_of(places_m, experiment.radio.coverage_radius_m),
    }


def _data(source: Source) -> dict[str, Any]:
    """Everything that the scripts read."""
    experiment = source.experiment
    limited = experiment.scheme.constrained and not source.trains_centrally
    budgets = [change for change in experiment.change if "vefl.budget" in change.keys]
    return {
        "terms": json.loads(asset("terms.json")),  # rows of docs/glossary.md, each with the words that it explains
        "unit": source.unit,
        "slot_ms": experiment.slots.slot_ns / 1e6,
        "radius": experiment.radio.coverage_radius_m,
        "prbs": experiment.radio.prbs,
        "budget": experiment.vefl.budget if limited and not budgets else None,
        "changes": data.changes_of(source),
        "constrained": experiment.scheme.constrained,
        "end": source.end_s * 1e3,
        "reasons": REASONS,
        "states": data.STATES,
        "curves": data.CURVES[:2] if source.trains_centrally else data.CURVES,
        "metric": {"name": source.metric.name, "share": source.metric.is_share, "loss": source.metric.loss_note},
        "rounds": data.rounds_of(source),
        "decisions": data.decisions_of(source),
        "orders": data.columns(data.orders_of(source)),
        "refusals": data.refusals_of(source),
        "visits": data.visits_of(source),
        "why": _texts(source),
        **_map(source),
        "uploads": data.uploads_of(source),
        "shares": data.shares_of(source),
        "confusion": asdict(confusion) if (confusion := data.confusion_of(source)) else None,
    }


def _arrivals(source: Source) -> Iterator[tuple[int, int]]:
    """CV and round in which it entered coverage, which explains why nothing was decided about it."""
    starts = [row["start_ns"] for row in source.rounds]
    for cv, events in source.explanations.by_cv.items():
        for event in events:
            place = bisect_left(starts, event["time_ns"]) - 1
            if event["kind"] == "coverage_entered" and place >= 0:
                yield cv, source.rounds[place]["round"]


def _decided(source: Source) -> list[tuple[int, int]]:
    """All CVs and rounds that have an event of their own."""
    return [pair for pair in source.explanations.by_pair if pair[1] in source.explanations.started]


def _texts(source: Source) -> list[tuple[int, int, str]]:
    """CV, round and the sentences of `trace --why`, for all decisions; too many are cut, orders are kept first."""
    explanations = source.explanations
    ordered = {(row["cv"], row["round"]) for row in source.vehicles if row["ordered_ns"] is not None}
    decided = sorted(_decided(source), key=lambda pair: pair not in ordered)
    pairs = [*dict.fromkeys([*decided, *_arrivals(source)])][:_MAX_TEXTS]
    return [(cv, round_, "\n".join(explanations.why(cv, round_))) for cv, round_ in pairs]
