from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core.clock import SlotGrid, to_ns, to_s


@given(st.integers(0, 10**13), st.integers(0, 4))
def test_floor_and_ceil_enclose_the_instant(time_ns: int, numerology: int) -> None:
    grid = SlotGrid.of_numerology(numerology)
    assert grid.slot_ns * 2**numerology == 1_000_000
    assert grid.start_ns(grid.floor(time_ns)) <= time_ns < grid.start_ns(grid.floor(time_ns) + 1)
    assert grid.start_ns(grid.ceil(time_ns)) >= time_ns > grid.start_ns(grid.ceil(time_ns) - 1)


@given(st.integers(0, 10**13))
def test_seconds_convert_back_to_the_same_nanoseconds(time_ns: int) -> None:
    assert to_ns(to_s(time_ns)) == time_ns
