from typing import Any

import pandas as pd

from vefl_sim.analysis.events import causes_of, rows_of, select
from vefl_sim.protocol.trace import Trace


def recorded() -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    trace = Trace(rows.append)
    order = trace.note(10, "training_ordered", "server", cv=1, round=1)
    finished = trace.note(20, "training_finished", "cv 1", cause=order, cv=1, round=1)
    trace.note(25, "coverage_entered", "streets", cv=2)
    trace.note(30, "upload_received", "cv 1", cause=finished, cv=1, round=1)
    return pd.DataFrame(rows).convert_dtypes()


def test_numbers_ascend_from_one() -> None:
    assert recorded()["id"].tolist() == [1, 2, 3, 4]


def test_filters_combine() -> None:
    events = recorded()
    assert select(events, cv=2)["id"].tolist() == [3]
    assert select(events, round=1)["id"].tolist() == [1, 2, 4]
    assert select(events, cv=1, kind="upload_received")["id"].tolist() == [4]
    assert select(events, between_s=(20e-9, 30e-9))["id"].tolist() == [2, 3]
    assert len(select(events)) == 4


def test_a_chain_starts_with_the_first_cause() -> None:
    assert [event["kind"] for event in causes_of({event["id"]: event for event in rows_of(recorded())}, 4)] == [
        "training_ordered",
        "training_finished",
        "upload_received",
    ]
