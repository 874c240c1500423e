"""A few runs of three scripted cars that together contain every kind of event, for tests of the reference pages."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tests.protocol.test_asynchronous import THREE
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Run, from_tables, simulate

VARIANTS = {
    "selection": EXPERIMENT | {"scheme": {"selected": 1}},
    "trip": EXPERIMENT | {"mobility": EXPERIMENT["mobility"] | {"kind": "tests.scripted:OneArrives"}},
    "no-money": EXPERIMENT | {"vefl": EXPERIMENT["vefl"] | {"budget": 1.0}, "scheme": {"kind": "fedavg"}},
    "unconstrained": EXPERIMENT | {"rat": {}, "scheme": {"constrained": False, "selected": 1}, "trace": {}},
    "change": EXPERIMENT | {"change": [{"from_round": 2, "aggregation": {"p_suc": "history"}}]},
    "broadcast": EXPERIMENT | {"downlink": {"kind": "broadcast"}},
    "old-csi": EXPERIMENT | {
        "radio": EXPERIMENT["radio"] | {"fading": "rayleigh", "csi_delay_slots": 4},
        "vefl": EXPERIMENT["vefl"] | {"upload_margin": 0.6},  # so that an update is lost with its grants
    },
    "learning": EXPERIMENT | {"learning": {"kind": "jax", "threads": 1}},
    "numbers": EXPERIMENT | {
        "learning": {"kind": "jax", "threads": 1, "loss": "mse"},
        "data": EXPERIMENT["data"] | {"kind": "tests.scripted:sixty_numbers", "partition": "iid"},
    },
    "no-rounds": THREE | {"learning": {"kind": "jax", "threads": 1}},
}  # fmt: skip


@cache
def small_run(name: str) -> Run:
    """The run of a variant; made once per process."""
    return simulate(from_tables(VARIANTS[name]), out=Path(mkdtemp()))
