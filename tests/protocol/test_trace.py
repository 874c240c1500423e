from typing import Any

import pandas as pd
import pytest

from vefl_sim.analysis.events import causes_of, rows_of, select
from vefl_sim.protocol.instants import NanosecondEnvironment
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.protocol.trace import (
    CoverageEntered,
    ModelReceived,
    Noted,
    Trace,
    TraceEvent,
    TrainingFinished,
    UploadStarted,
)
from vefl_sim.records.recorder import _columns, event_row


def recorded() -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    order = TrainOrder(
        cv=1, round=1, iterations=1, cpu_hz=1e9, train_ns=1, compute_j=1.0, payload_bits=1, earliest_slot=0,
        deadline_slot=1, worst_j=1.0,
    )  # fmt: skip
    trace = Trace(NanosecondEnvironment())
    trace.on(Noted, lambda noted: rows.append(event_row(noted)))
    received = trace.note(ModelReceived(order, 5.0), time_ns=10)
    finished = trace.note(TrainingFinished(order, 5.0), received, time_ns=20)
    trace.note(CoverageEntered(2, 5.0), time_ns=25)
    trace.note(UploadStarted(order), finished, time_ns=30)
    return pd.DataFrame(rows).convert_dtypes()


def test_every_kind_of_event_has_columns() -> None:
    kinds = [TraceEvent]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__name__.startswith("_") or kind is TraceEvent:
            continue
        with pytest.raises(AttributeError):  # it has no values, but its columns are known
            _columns(kind.__new__(kind))


def test_filters_combine() -> None:
    events = recorded()
    assert select(events, cv=2)["id"].tolist() == [3]
    assert select(events, round=1)["id"].tolist() == [1, 2, 4]
    assert select(events, cv=1, kind="upload_started")["id"].tolist() == [4]
    assert select(events, between_s=(20e-9, 30e-9))["id"].tolist() == [2, 3]
    assert len(select(events)) == 4


def test_a_chain_starts_with_the_first_cause() -> None:
    assert [event["kind"] for event in causes_of({event["id"]: event for event in rows_of(recorded())}, 4)] == [
        "model_received",
        "training_finished",
        "upload_started",
    ]
