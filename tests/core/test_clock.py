import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core.clock import NS_PER_S, SlotGrid, to_ns, to_s


@pytest.mark.parametrize(
    ("numerology", "slot_ns"), [(0, 1_000_000), (1, 500_000), (2, 250_000), (3, 125_000), (4, 62_500)]
)
def test_slots_of_every_numerology_divide_the_millisecond(numerology: int, slot_ns: int) -> None:
    grid = SlotGrid.of_numerology(numerology)
    assert grid.slot_ns == slot_ns
    assert 1_000_000 % slot_ns == 0


def test_ten_thousand_half_milliseconds_are_five_seconds() -> None:
    grid = SlotGrid.of_numerology(1)
    assert grid.start_ns(10_000) == 5 * NS_PER_S
    assert sum([0.0005] * 10_000) != 5.0  # floating-point sums are not exact


@given(st.integers(0, 10**13), st.integers(0, 4))
def test_floor_and_ceil_enclose_the_instant(time_ns: int, numerology: int) -> None:
    grid = SlotGrid.of_numerology(numerology)
    assert grid.start_ns(grid.floor(time_ns)) <= time_ns < grid.start_ns(grid.floor(time_ns) + 1)
    assert grid.start_ns(grid.ceil(time_ns)) >= time_ns > grid.start_ns(grid.ceil(time_ns) - 1)


@given(st.integers(0, 10**13))
def test_seconds_convert_back_to_the_same_nanoseconds(time_ns: int) -> None:
    assert to_ns(to_s(time_ns)) == time_ns
