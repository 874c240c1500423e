"""Runs for the tests of report pages, what is in a page, and a run of which every text is an attack."""

import json
import re
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vefl_sim import Run, from_tables
from vefl_sim.core.rng import Streams
from vefl_sim.mobility.grid.traffic import IdmTraffic

RUSH = from_tables(
    {
        "run": {"name": "rush", "rounds": 4},
        "roads": {"signals": "none"},
        "mobility": {"max_speed_mps": 26.82},
        "traffic": {"through_share": 1.0},
        "radio": {"max_tx_power_w": 0.02},
        "vefl": {"budget": 5000.0, "sojourn_weight": 0.0},
        "scheme": {"selected": 40},
        "data": {"train_samples": 2000},
        "learning": {"kind": "none"},
    }
)
"""The first rounds of experiments/rush_hour.toml, in which updates are lost."""

ATTACK = """x"'></script><script>hit=1</script><img src=x onerror=hit=1>javascript:hit=1\u2028&lt;"""


def data_of(page: str) -> Any:
    """The data that the scripts of a page read."""
    packed = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert packed
    return json.loads(zlib.decompress(b64decode(packed[1])))


class Elements(HTMLParser):
    """All elements of a page with their attributes, and its text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._skipped = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._skipped = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skipped = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._skipped else data


def hostile(run: Run, folder: Path) -> Run:
    """A copy of a run with an attack in its name and in every text that a page could show."""
    path = copytree(run.path, folder / ATTACK.replace("/", "|"))
    toml = (path / "resolved.toml").read_text()
    toml = toml.replace('dir = ""', f"dir = {json.dumps(ATTACK)}").replace('kind = "signs"', 'kind = "a.b:c"')
    (path / "resolved.toml").write_text(toml)
    summary = json.loads((path / "summary.json").read_text())
    del summary["table_digests"]
    summary |= {"content_digest": ATTACK, "overruns": {ATTACK: 3}, "plan_breaches": {ATTACK: 2}}
    (path / "summary.json").write_text(json.dumps(summary))
    versions = json.loads((path / "versions.json").read_text())
    versions |= {"set": [ATTACK], "python": ATTACK, "packages": {ATTACK: ATTACK}, "parts": {ATTACK: ATTACK}}
    (path / "versions.json").write_text(json.dumps(versions))
    (path / "confusion.json").write_text(json.dumps({"round": 1, "classes": [ATTACK, "b"], "counts": [[3, 1], [0, 2]]}))
    for name, columns in {"events": ("reason", "actor"), "vehicles": ("reason",), "rounds": ("plan_status",)}.items():
        replace_texts(path / "tables" / f"{name}.parquet", columns)
    replace_texts(path / "tables" / "timings.parquet", ("what",))
    return Run(path)


def replace_texts(file: Path, columns: tuple[str, ...]) -> None:
    """Put the attack in the place of every text in these columns."""
    table = pq.read_table(file)
    for name in columns:
        texts = [None if text is None else ATTACK for text in table[name].to_pylist()]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    pq.write_table(table, file)


def trajectory(seconds: int) -> pd.DataFrame:
    """Every position of the traffic of RUSH, with a row per vehicle and 0.1 s."""
    traffic = IdmTraffic(RUSH, Streams(RUSH.run.seed))
    scenes = [traffic.scene(), *(traffic.advance() for _ in range(10 * seconds))]
    columns = ("vehicle", "x_m", "y_m", "speed_mps", "connected")
    return pd.concat([pd.DataFrame({"time_ns": s.time_ns} | {n: getattr(s, n) for n in columns}) for s in scenes])
