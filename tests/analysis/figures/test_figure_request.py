"""The keys of [figure], the default layout, and the error messages."""

from pathlib import Path

import pytest

from tests.analysis.figures.invented_runs import sweep
from vefl_sim.analysis.figures.layout import layout, require_drawable
from vefl_sim.analysis.figures.measures import decimals
from vefl_sim.analysis.figures.names import axis_name, heading, legend_title, value_label
from vefl_sim.analysis.figures.request import Request, request_from
from vefl_sim.core.errors import ExperimentError

TWO_AXES = "[sweep]\nradio.prbs = [6, 12]\nvefl.round_s = [3.0, 5.0]\n"
VARIANTS = '[[compare]]\nlabel = "A"\n[[compare]]\nlabel = "B"\nscheme.kind = "fdpc"\n'


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ('knd = "cost"', "figure.knd is not a known key of [figure]; the nearest is figure.kind."),
        ('kind = "costs"', "figure.kind = \"costs\": it must be 'accuracy', 'loss', 'failure-rate'"),
        ('kind = "cost"\nthreshold = 0.5', 'figure.threshold has no effect with figure.kind = "cost"'),
        ('kind = "failure-rate"\nthreshold = 70', "figure.threshold = 70: it must be at most 1."),
        ('x = "rounds"', 'figure.x = "rounds": it is not varied in this sweep: choose from round, time, radio.prbs'),
        ('x = "radio.prbs"\nlines = "radio.prbs"', "figure: radio.prbs is used twice"),
        ('kind = "delay"\nx = "round"', 'figure.x has no effect with figure.kind = "delay"'),
        ('kind = "delay"\nx = "rounds"', "it is not varied in this sweep: choose from radio.prbs, vefl.round_s"),
        ('x_scale = "log"', 'figure.x_scale has no effect with figure.kind = "accuracy"'),
        ('kind = "total-energy"\nx_range = [1, 2]', "figure.x_range has no effect with"),
        ("x_range = [3, 3]", "the lower end 3 must be below the upper end 3"),
        ('kind = "sojourn"\nx_scale = "log"\nx_range = [0, 3]', "figure.x_range must begin above 0"),
        ('lines = "radio.prb"', 'figure.lines = "radio.prb": it is not varied in this sweep: choose from radio.prbs, '),
        ('lines = "variants"', 'figure.lines = "variants": it is not varied'),
        ('labels = { radio = { prbs = "Z" } }', "the label of radio.prbs needs one {} for the value"),
        ('labels = { radio = { antennas = "N {}" } }', 'figure.labels = "radio.antennas": it is not varied'),
        ("marks = 3", "figure.marks = 3:"),
        ('band = "ci"', "figure.band = \"ci\": it must be 'ci95', 'sd', 'minmax' or 'none'"),
        ('kind = "failure-rate"\nband = "ci95"', "figure.band has no effect with"),
        ('compare_to = "Z = 7"', "figure.compare_to: 'Z = 7' is not a line of this figure: did you mean 'Z = 6'?"),
        ("detect = 0", "figure.detect = 0: it must be greater than 0."),
        ('measure = "cost"', 'figure.measure has no effect with figure.kind = "accuracy"'),
        ('kind = "effects"\nlines = "radio.prbs"', 'figure.lines has no effect with figure.kind = "effects"'),
        ('kind = "effects"\nmeasure = "table"', 'figure.measure = "table": it must be'),
        ('marks = [1]\npanels = []\nlines = "radio.prbs"\nreference = { "Z = 7" = [0.5] }', "did you mean 'Z = 6"),
        ('marks = [1, 2]\nreference = { "Z = 6" = [0.5] }', "'Z = 6' has 1 values, but figure.marks has 2"),
        ('kind = "table"\nreference = { "Z = 6" = [0.5] }', "figure.reference has no effect"),
        ('kind = "total-cost"\nmarks = [1]\nreference = { "" = [0.5] }', "figure.reference has no effect with"),
        ('marks = [1]\nreference = { "Z = 6" = 0.5 }', "figure.reference"),
    ],
)
def test_bad_figures_get_one_sentence(tmp_path: Path, figure: str, message: str) -> None:
    loaded = sweep(tmp_path, f"{TWO_AXES}[figure]\n{figure}\n")
    with pytest.raises(ExperimentError) as error:
        require_drawable(loaded)
    assert message in str(error.value)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ('x = "variants"\nx_range = [0, 2]', "figure.x_range: variants is not varied in numbers"),
        ('x = "vefl.sojourn_weight"\nx_scale = "log"', "vefl.sojourn_weight is not varied in numbers above 0"),
    ],
)
def test_an_axis_of_text_has_no_scale(tmp_path: Path, figure: str, message: str) -> None:
    loaded = sweep(tmp_path, f"[sweep]\nvefl.sojourn_weight = [0.0, 1.0]\n[figure]\n{figure}\n{VARIANTS}")
    with pytest.raises(ExperimentError, match=message):
        require_drawable(loaded)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[sweep]\nradio.prbs = [6, 12]\n", (["radio.prbs"], [], None)),
        (TWO_AXES, (["radio.prbs"], ["vefl.round_s"], None)),
        (TWO_AXES + VARIANTS, (["variants", "radio.prbs", "vefl.round_s"], [], None)),
        ("[sweep]\nradio.prbs = [6, 7, 8, 9, 10]\n" + VARIANTS, (["variants", "radio.prbs"], [], None)),
        ("[sweep]\nradio.prbs = [6, 7]\n" + VARIANTS, (["variants"], ["radio.prbs"], None)),
        (TWO_AXES + '[figure]\nlines = "vefl.round_s"\n', (["vefl.round_s"], ["radio.prbs"], None)),
        (TWO_AXES + '[figure]\nkind = "total-cost"\n', (["vefl.round_s"], [], "radio.prbs")),
        ("[sweep]\nradio.prbs = [6, 7]\n[figure]\nkind = 'total-cost'\nx = 'time'\n", (["radio.prbs"], [], None)),
        (TWO_AXES + "[figure]\nx = 'vefl.round_s'\n", (["radio.prbs"], [], "vefl.round_s")),
        (TWO_AXES + "[figure]\nkind = 'table'\n" + VARIANTS, (["variants"], ["radio.prbs", "vefl.round_s"], None)),
    ],
)
def test_the_default_layout(tmp_path: Path, text: str, expected: tuple[list[str], list[str], str | None]) -> None:
    loaded = sweep(tmp_path, text)
    plan = layout(loaded, request_from(loaded.figure))
    names = [d.key for d in plan.lines], [d.key for d in plan.panels], plan.x.key if plan.x else None
    assert names == expected


def test_zipped_keys_are_named_by_the_keys_that_distinguish_them(tmp_path: Path) -> None:
    text = "[sweep]\n[[sweep.zip]]\nvefl.round_s = [3.0, 3.0]\nvefl.budget = [300, 500]\n"
    loaded = sweep(tmp_path, text)
    (line,) = layout(loaded, request_from({})).lines
    assert [line.label(point, {}) for point in loaded.points] == ["t_th = 3 s, Ξ = 300", "t_th = 3 s, Ξ = 500"]
    (line,) = layout(loaded, request_from({"lines": "vefl.budget"})).lines
    assert [line.label(point, {}) for point in loaded.points] == ["Ξ = 300", "Ξ = 500"]


def test_names() -> None:
    assert value_label("mobility.max_speed_mps", 0.45, {}) == "u_max = 0.45 m/s"
    assert value_label("data.kind", "cifar10", {}) == "CIFAR-10"
    assert value_label("server.early_close", True, {}) == "server.early_close = true"
    assert value_label("radio.prbs", 6, {"radio.prbs": "{} pRBs"}) == "6 pRBs"
    assert heading("vefl.round_s", {}) == "t_th [s]"
    assert heading("data.dirichlet_alpha", {}) == "α"
    assert heading("server.early_close", {}) == "server.early_close"
    assert heading("radio.prbs", {"radio.prbs": "{} pRBs"}) == "pRBs"


def test_axes_and_legends_have_words() -> None:
    assert axis_name("radio.prbs", {}) == "pRBs (Z)"
    assert axis_name("vefl.round_s", {}) == "length of a round (t_th) [s]"
    assert axis_name("radio.prbs", {"radio.prbs": "{} blocks"}) == "blocks"
    assert axis_name("server.early_close", {}) == "server.early_close"
    assert axis_name("variants", {}) == "scheme"
    assert legend_title(["variants", "vefl.round_s", "radio.prbs"], {}) == "length of a round (t_th), pRBs (Z)"
    assert legend_title(["radio.prbs"], {"radio.prbs": "{} pRBs"}) == ""


def test_small_numbers_have_significant_digits() -> None:
    assert decimals([0.0123, 0.2], 1) == 3
    assert decimals([12.3, 0.0], 1) == 1
    assert decimals([1e-9, 5.0], 2) == 2  # as good as zero
    assert decimals([float("nan")], 2) == 2


def test_effects_need_two_factors(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="needs two or more swept keys"):
        require_drawable(sweep(tmp_path, '[sweep]\nradio.prbs = [6, 7]\n[figure]\nkind = "effects"\n'))
    require_drawable(sweep(tmp_path, f'[sweep]\nradio.prbs = [6, 7]\n[figure]\nkind = "effects"\n{VARIANTS}'))


def test_every_key_of_the_table_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "figures.md").read_text()
    described = page[page.index("## The [figure] table") : page.index("## What is written")]
    assert [key for key in Request.model_fields if f"`{key}`" not in described] == []
