"""Names of keys and values in legends and headings: the symbols of the paper, if it has them."""

import re
from collections.abc import Mapping
from typing import Any

from vefl_sim.experiment.kinds import FAMILIES
from vefl_sim.experiment.plugins import declaration

VARIANTS = "variants"
SUBSCRIPT = re.compile(r"\b([A-Za-z])_([a-z]+)\b")
"""A symbol with a subscript in plain text, for example u_max."""
_LABELS = {
    "mobility.max_speed_mps": "u_max = {} m/s",
    "traffic.mean_in_coverage": "{} CVs in coverage",
    "radio.coverage_radius_m": "r = {} m",
    "radio.prbs": "Z = {}",
    "radio.antennas": "N = {}",
    "radio.max_tx_power_w": "P_max = {} W",
    "vefl.round_s": "t_th = {} s",
    "vefl.budget": "Ξ = {}",
    "vefl.max_local_iterations": "l_max = {}",
    "vefl.min_local_iterations": "l_des = {}",
    "vefl.sojourn_weight": "λ̄ = {}",
    "scheme.kind": "{}",
    "scheme.selected": "|C_k| = {}",
    "aggregation.sojourn_weight": "λ = {}",
    "data.kind": "{}",
    "data.dirichlet_alpha": "α = {}",
    "learning.learning_rate": "δ = {}",
    "learning.proximal_mu": "μ = {}",
}
_HEADINGS = {VARIANTS: "scheme", "scheme.kind": "scheme", "data.kind": "data set"}


def value_label(key: str, value: Any, labels: Mapping[str, str]) -> str:
    """A value with its symbol and unit, for a legend; `labels` are user-defined."""
    return with_symbol(key, plain(key, value), labels)


def with_symbol(key: str, text: str, labels: Mapping[str, str]) -> str:
    """The text of a value with its symbol and unit; loads no user-defined part."""
    return _template(key, labels).replace("{}", text)


def heading(key: str, labels: Mapping[str, str]) -> str:
    """The symbol and the unit of a key, for an axis or the heading of a column."""
    if key in _HEADINGS and key not in labels:
        return _HEADINGS[key]
    before, _, after = _template(key, labels).partition("{}")
    symbol, unit = before.strip().removesuffix("=").strip(), after.strip()
    return f"{symbol} [{unit}]" if symbol and unit else symbol or unit or key


def plain(key: str, value: Any) -> str:
    """A value without symbol and unit."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    return declaration(key, value, "label", None) or value if key in FAMILIES else str(value)


def with_symbols(text: str) -> str:
    """Write symbols as formulas; a dollar sign that does not begin a valid formula is escaped."""
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except ValueError:
        text = text.replace("$", r"\$")
    if "$" in text:
        return text
    return SUBSCRIPT.sub(r"$\1_{\\mathrm{\2}}$", text).replace("λ\u0304", r"$\bar{\lambda}$")


def _template(key: str, labels: Mapping[str, str]) -> str:
    return labels.get(key) or _LABELS.get(key) or f"{key} = {{}}"
