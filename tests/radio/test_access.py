"""TDD patterns by counting symbols one by one, and the wait for a report and a grant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim import from_tables
from vefl_sim.optimize.rat.burst import uplink_slots
from vefl_sim.radio.access import ALL_UPLINK, Access, TddPattern

PATTERNS = st.text("UDS", min_size=1, max_size=7).filter(lambda text: "U" in text)


def pattern_of(text: str, special: int = 4) -> TddPattern:
    return TddPattern(tuple({"U": 13, "S": special, "D": 0}[letter] for letter in text), 13)


def counted(pattern: TddPattern, first: int, end: int) -> int:
    """Uplink symbols from one slot up to another, one slot after the other; negative backwards."""
    if end < first:
        return -counted(pattern, end, first)
    return sum(pattern.symbols[slot % len(pattern.symbols)] for slot in range(first, end))


@given(PATTERNS, st.integers(0, 12), st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 30))
def test_slots_are_counted_by_their_symbols(text: str, special: int, first: int, end: int, slots: int) -> None:
    pattern = pattern_of(text, special)
    assert pattern.slots_between(first, end) == counted(pattern, first, end) // 13
    assert uplink_slots(pattern.before, 13, first, end) == counted(pattern, first, end) // 13
    start = int(pattern.latest_start(end, slots))
    assert counted(pattern, start, end) >= 13 * slots > counted(pattern, start + 1, end)
    last = int(pattern.end(first, slots)) if slots else first
    assert counted(pattern, first, last) >= 13 * slots
    assert not slots or counted(pattern, first, last - 1) < 13 * slots


@given(PATTERNS, st.integers(1, 12), st.integers(0, 20), st.integers(0, 9))
def test_the_most_slots_that_carry_an_upload(text: str, special: int, slots: int, first: int) -> None:
    """No upload that begins somewhere in the pattern needs more slots; all uplink slots are as many as planned."""
    pattern = pattern_of(text, special)
    last = int(pattern.end(first, slots)) if slots else first
    used = sum(pattern.symbols[slot % len(text)] > 0 for slot in range(first, last))
    assert used <= pattern.most_slots(slots)
    assert ALL_UPLINK.most_slots(slots) == slots


@given(st.integers(0, 10**6), st.integers(0, 9), st.integers(1, 12))
def test_an_update_waits_for_a_report_and_a_grant(slot: int, grant: int, report: int) -> None:
    access = Access(ALL_UPLINK, grant, report)
    reported = next(s for s in range(slot, slot + report) if s % report == 0)
    assert access.first_slot(slot) == reported + grant <= slot + access.wait_slots


@given(PATTERNS, st.integers(0, 9), st.integers(1, 12), st.integers(200, 300), st.integers(1, 20), st.integers(0, 9))
def test_an_update_that_is_offered_in_time_is_sent_in_time(
    text: str, grant: int, report: int, deadline: int, slots: int, early: int
) -> None:
    access = Access(pattern_of(text), grant, report)
    offer = int(access.latest_offer(deadline, slots)) - early
    assert access.end_slot(offer, slots) <= deadline


def test_the_pattern_of_an_experiment() -> None:
    experiment = from_tables({"run": {"name": "x"}, "mac": {"tdd": "DDDSU", "special_uplink_symbols": 2}})
    assert TddPattern.of(experiment) == TddPattern((0, 0, 0, 2, 13), 13)
    without = from_tables({"run": {"name": "x"}, "radio": {"flexible_symbol_uplink": False}})
    assert TddPattern.of(without) == TddPattern((12,), 12)
    assert pattern_of("DDSU").shares(2, 3) == pytest.approx([4 / 13, 1.0, 0.0])
