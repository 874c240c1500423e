"""Double-entry bookkeeping of the bits, the energy and the money of every order.

An `Account` belongs to one CV and one round. Each amount is booked twice, on the account and in the totals
of the other side (bits at the gNB, energy of all CVs, money of the server), and `Ledger.check` compares them.
What the radio of a CV does is counted in its uplink queue, which the account reads; the totals come from the log of
all slots.
"""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import numpy as np

from vefl_sim.core.errors import LedgerMismatch
from vefl_sim.core.state import NOT_SAVED, State, from_state, state_of
from vefl_sim.optimize.rat.burst_state import QUEUE

_TOLERANCE = 1e-9  # relative; sums of a million doubles stay well inside it
T = TypeVar("T")


class QueueField(Generic[T]):
    """A field of a dataclass whose value is in its `queue`, an entry of dtype QUEUE, where the MAC updates it."""

    def __init__(self, default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> T:
        return self._default if owner is None else cast(T, owner.queue[self._name].item())

    def __set__(self, owner: Any, value: T) -> None:
        owner.queue[self._name] = value


@dataclass
class Account:
    """Bits, energy and money of one order of one CV."""

    queue: np.void = field(init=False, repr=False, metadata=NOT_SAVED, default_factory=lambda: np.zeros(1, QUEUE)[0])
    cv: int
    round: int
    price_per_joule: float
    base_fee: float
    bits_offered: float = 0.0
    bits_drained: QueueField[float] = QueueField(0.0)
    bits_left: QueueField[float] = QueueField(0.0)
    compute_j: float = 0.0
    transmit_j: QueueField[float] = QueueField(0.0)
    paid: float = 0.0
    bits_lost: QueueField[float] = QueueField(0.0)

    @property
    def energy_j(self) -> float:
        """Energy the CV used for training and transmission, in joules."""
        return self.compute_j + self.transmit_j

    @property
    def charge(self) -> float:
        """ξ = φ·e + φ̄, due whether the update is delivered or not."""
        return self.price_per_joule * self.energy_j + self.base_fee


@dataclass
class Totals:
    """Sums over all orders: the other side of every entry."""

    bits_offered: float = 0.0
    bits_drained: float = 0.0
    bits_lost: float = 0.0
    compute_j: float = 0.0
    transmit_j: float = 0.0
    paid: float = 0.0


@dataclass
class Ledger:
    """All accounts of a run, and the totals that they must add up to."""

    totals: Totals = field(default_factory=Totals)
    _open: dict[tuple[int, int], Account] = field(default_factory=dict)
    _settled: Totals = field(default_factory=Totals)

    def open(self, cv: int, round: int, price_per_joule: float, base_fee: float) -> Account:
        """Open the account of a new order."""
        account = Account(cv, round, price_per_joule, base_fee)
        self._open[cv, round] = account
        return account

    def offer(self, account: Account, bits: float) -> None:
        """Book bits that enter the CV's uplink buffer."""
        account.bits_offered += bits
        account.bits_left += bits
        self.totals.bits_offered += bits

    def drain(self, account: Account, bits: float) -> float:
        """Book bits that the gNB has received; the bits that are left."""
        account.bits_drained += bits
        account.bits_left = left = max(0.0, account.bits_left - bits)
        self.totals.bits_drained += bits
        return left

    def compute(self, account: Account, joules: float) -> None:
        """Book energy that the CV's CPU used."""
        account.compute_j += joules
        self.totals.compute_j += joules

    def transmitted(self, bits_drained: float, bits_lost: float, transmit_j: float) -> None:
        """Book bits and energy of all CVs in some slots, by the log of the slots; the MAC counts them in the queues."""
        self.totals.bits_drained += bits_drained
        self.totals.bits_lost += bits_lost
        self.totals.transmit_j += transmit_j

    def settle(self, account: Account) -> None:
        """Pay for an order that has ended, check its account and close it."""
        account.paid = account.charge
        self.totals.paid += account.paid
        _require_equal(f"bits of CV {account.cv}", account.bits_offered, account.bits_drained + account.bits_left)
        _require_not_negative(account)
        for name in vars(self._settled):
            setattr(self._settled, name, getattr(self._settled, name) + getattr(account, name))
        del self._open[account.cv, account.round]

    def check(self) -> None:
        """Compare the sums over all accounts with the totals; raise LedgerMismatch if they differ."""
        for name, total in vars(self.totals).items():
            booked = sum(getattr(account, name) for account in self._open.values())
            _require_equal(name, total, getattr(self._settled, name) + booked)

    def account(self, cv: int, round: int) -> Account:
        """The account of an order that has not ended."""
        return self._open[cv, round]

    def state(self) -> State:
        """The totals, the sums of the settled accounts, and the open accounts."""
        return {
            "totals": state_of(self.totals),
            "settled": state_of(self._settled),
            "open": state_of([*self._open.values()]),
        }

    def restore(self, state: State) -> None:
        """Restore totals and open accounts from a checkpoint."""
        self.totals, self._settled = from_state(Totals, state["totals"]), from_state(Totals, state["settled"])
        self._open = {(account.cv, account.round): account for account in from_state(list[Account], state["open"])}


def _require_equal(what: str, one: float, other: float) -> None:
    if not abs(one - other) <= _TOLERANCE * max(abs(one), abs(other), 1.0):  # written so that NaN fails, too
        raise LedgerMismatch(f"the ledger does not add up: {what}: {one!r} against {other!r}")


def _require_not_negative(account: Account) -> None:
    for name in ("bits_left", *vars(Totals())):
        if not (amount := getattr(account, name)) >= 0:
            raise LedgerMismatch(f"the ledger holds a negative {name} for CV {account.cv}: {amount!r}")
