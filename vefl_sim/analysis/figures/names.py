"""Names of keys and values in legends and headings: the symbols of the paper, if it has them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vefl_sim.experiment.kinds import FAMILIES
from vefl_sim.experiment.plugins import declaration

VARIANTS = "variants"
_SYMBOL = re.compile(r"\|C_k\||\bC_k\b|\b([A-Za-z])_([a-z]+)\b|λ\u0304|\b[ZNr](?= = | × | \[|\)|$)")
"""A symbol of Latin letters in plain text, for example u_max, or Z in "Z = 6"; and λ with its bar."""
_FORMULAS = {"|C_k|": r"|\mathcal{C}_k|", "C_k": r"\mathcal{C}_k", "λ\u0304": r"\bar{\lambda}"}
_NAMES = {
    "mobility.max_speed_mps": ("u_max = {} m/s", "highest speed"),
    "traffic.mean_in_coverage": ("{} CVs in coverage", ""),
    "radio.coverage_radius_m": ("r = {} m", "radius of coverage"),
    "radio.prbs": ("Z = {}", "pRBs"),
    "radio.antennas": ("N = {}", "antennas"),
    "radio.max_tx_power_w": ("P_max = {} W", "highest transmit power"),
    "vefl.round_s": ("t_th = {} s", "length of a round"),
    "vefl.budget": ("Ξ = {}", "budget per round"),
    "vefl.max_local_iterations": ("l_max = {}", "most local iterations"),
    "vefl.min_local_iterations": ("l_des = {}", "least local iterations"),
    "vefl.sojourn_weight": ("λ̄ = {}", "weight of sojourns in the plan"),
    "scheme.kind": ("{}", ""),
    "scheme.selected": ("|C_k| = {}", "selected CVs"),
    "aggregation.sojourn_weight": ("λ = {}", "weight of sojourns"),
    "data.kind": ("{}", ""),
    "data.dirichlet_alpha": ("α = {}", "Dirichlet parameter"),
    "learning.learning_rate": ("δ = {}", "learning rate"),
    "learning.proximal_mu": ("μ = {}", "proximal weight"),
}
"""By key: its value in a legend, and what the symbol means, for axes and above legends."""
_HEADINGS = {VARIANTS: "scheme", "scheme.kind": "scheme", "data.kind": "data set"}


def _named(key: str) -> tuple[str, str]:
    return _NAMES.get(key, (f"{key} = {{}}", ""))


def value_label(key: str, value: Any, labels: Mapping[str, str]) -> str:
    """A value with its symbol and unit, for a legend; `labels` are user-defined."""
    return with_symbol(key, plain(key, value), labels)


def with_symbol(key: str, text: str, labels: Mapping[str, str]) -> str:
    """The text of a value with its symbol and unit; loads no user-defined part."""
    return (labels.get(key) or _named(key)[0]).replace("{}", text)


def heading(key: str, labels: Mapping[str, str]) -> str:
    """The symbol and the unit of a key, for the heading of a column."""
    if key in _HEADINGS and key not in labels:
        return _HEADINGS[key]
    before, _, after = (labels.get(key) or _named(key)[0]).partition("{}")
    symbol, unit = before.strip().removesuffix("=").strip(), after.strip()
    return f"{symbol} [{unit}]" if symbol and unit else symbol or unit or key


def axis_name(key: str, labels: Mapping[str, str]) -> str:
    """The meaning of a key in words with its symbol and unit, for example "length of a round (t_th) [s]"."""
    name = heading(key, labels)
    words = "" if key in labels else _named(key)[1]
    symbol, space, unit = name.partition(" ")
    return f"{words} ({symbol}){space}{unit}" if words else name


def legend_title(keys: Iterable[str], labels: Mapping[str, str]) -> str:
    """The meaning of the symbols in a legend, for example "pRBs (Z)"; empty if its labels are words."""
    return ", ".join(axis_name(key, {}).partition(" [")[0] for key in keys if _named(key)[1] and key not in labels)


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
    return text if "$" in text else "".join(f"${piece}$" if math else piece for piece, math in formulas(text))


def formulas(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text in order, with its symbols as TeX formulas, and whether a piece is a formula."""
    end = 0
    for symbol in _SYMBOL.finditer(text):
        yield text[end : symbol.start()], False
        subscripted = f"{symbol[1]}_{{\\mathrm{{{symbol[2]}}}}}" if symbol[1] else symbol[0]
        yield _FORMULAS.get(symbol[0], subscripted), True
        end = symbol.end()
    yield text[end:], False
