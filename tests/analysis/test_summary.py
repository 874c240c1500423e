"""The lines that a run prints at its end."""

from pathlib import Path

import pytest

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Run, from_tables, simulate, with_settings
from vefl_sim.analysis.summary import summary_lines
from vefl_sim.records.totals import energy_text

GOLDEN = from_tables(EXPERIMENT)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            "sla.energy_budget_j=[1e-5, 1e-5]",
            "nobody was eligible, every time because a single iteration would have exceeded the energy budget "
            "(sla.energy_budget_j)",
        ),
        ("vefl.budget=0.5", "the budget did not pay for a single CV (vefl.budget)"),
    ],
)
def test_an_empty_run_names_the_constraint_that_binds_most(tmp_path, setting: str, words: str) -> None:
    lines = [*summary_lines(simulate(with_settings(GOLDEN, setting), out=tmp_path))]
    assert f"{'warning':16}no CV got an order: most often {words}" in lines


def test_a_run_with_orders_has_no_warning_and_a_readable_energy(golden: Run) -> None:
    lines = [*summary_lines(golden)]
    assert f"{'energy':16}{energy_text(golden.summary['energy_j'])}" in lines
    assert not any(line.startswith(("warning", "grants")) for line in lines)  # it cannot lose grants


def test_lost_grants_are_given_with_their_total(tmp_path: Path) -> None:
    run = simulate(with_settings(GOLDEN, "radio.csi_delay_slots=4", "radio.fading=rayleigh"), out=tmp_path / "some")
    lost, used = run.summary["grants_lost"], len(run.table("slots"))
    assert 10 < lost < used
    assert any(
        line.startswith(f"{'grants':16}{lost} of {used} lost ({lost / used:.1%})") for line in summary_lines(run)
    )
    run = simulate(with_settings(GOLDEN, "radio.csi_delay_slots=2"), out=tmp_path / "none")
    assert f"{'grants':16}none of {len(run.table('slots'))} lost" in [*summary_lines(run)]
    (run.path / "tables" / "outages.parquet").unlink()
    assert not any(line.startswith("grants") for line in summary_lines(run))


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        *((0.0, "0.00 J"), (0.00001, "0.01 mJ"), (0.0123, "12.3 mJ"), (0.9994, "999.4 mJ"), (1.0, "1.00 J")),
        *((60.93, "60.9 J"), (921.04, "921.0 J"), (1234.5, "1.23 kJ"), (98_765.0, "98.8 kJ"), (2.5e6, "2.50 MJ")),
    ],
)
def test_energies_have_a_readable_unit(joules: float, text: str) -> None:
    assert energy_text(joules) == text
