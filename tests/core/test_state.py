"""A state that is packed and unpacked is unchanged, whatever types it contains."""

import json
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core.errors import RunFailed
from vefl_sim.core.state import NOT_SAVED, from_state, pack, state_of, unpack

KEYS = st.one_of(st.text(max_size=3), st.sampled_from(["array", "pairs", "tuple", "a/b"]), st.integers())
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3))
ARRAYS = st.lists(st.integers(0, 9), max_size=3).map(np.array)
STATES = st.recursive(
    st.one_of(LEAVES, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3), st.tuples(inner, inner)
    ),
)


def same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@given(STATES)
def test_unpack_is_the_inverse_of_pack(state: object) -> None:
    arrays: dict[str, np.ndarray] = {}
    assert same(unpack(json.loads(json.dumps(pack(state, arrays))), arrays), state)


def test_the_error_names_a_value_that_cannot_be_packed() -> None:
    for bad in ({1}, object(), np.array([None]), np.zeros(2, [("a", object)])):
        with pytest.raises(RunFailed, match="a/b of a checkpoint is a"):
            pack({"a": {"b": bad}}, {})


@dataclass(frozen=True)
class Wheel:
    number: int
    wear: np.ndarray


@dataclass
class Car:
    wheels: list[Wheel]
    spare: Wheel | None
    trips: Counter[str]
    notes: dict[int, str]
    owner: object = field(metadata=NOT_SAVED)
    colour: str = field(default="red", metadata=NOT_SAVED)


@pytest.mark.parametrize("spare", [None, Wheel(5, np.arange(3.0))])
def test_a_dataclass_is_rebuilt_from_its_state(spare: Wheel | None) -> None:
    owner, arrays = object(), {}
    car = Car([Wheel(1, np.ones(2)), Wheel(2, np.zeros(0))], spare, Counter(town=2), {7: "new"}, owner, "blue")
    state = unpack(json.loads(json.dumps(pack(state_of(car), arrays))), arrays)
    assert "owner" not in state
    again = from_state(Car, state, owner=owner)
    assert again.owner is owner
    assert again.colour == "red"  # neither saved nor given: its default
    assert isinstance(again.trips, Counter)
    assert again.trips == car.trips
    assert again.notes == car.notes
    assert same(state_of(again), state_of(car))
    assert [type(wheel) for wheel in again.wheels] == [Wheel, Wheel]
    assert type(again.spare) is type(spare)
