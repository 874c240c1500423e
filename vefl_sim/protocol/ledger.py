"""Bits, joules and money of every order; they must add up.

An `Account` belongs to one CV and one round. Each movement is booked twice, on the account and in the totals
of the other side (the gNB's bits, the fleet's joules, the server's purse), and `Ledger.check` compares them.
"""

from dataclasses import dataclass, field

from vefl_sim.core.errors import LedgerMismatch
from vefl_sim.core.state import State

_TOLERANCE = 1e-9  # relative; sums of a million doubles stay well inside it


@dataclass
class Account:
    """What one CV did for one order."""

    cv: int
    round: int
    price_per_joule: float
    base_fee: float
    bits_offered: float = 0.0
    bits_drained: float = 0.0
    bits_left: float = 0.0
    compute_j: float = 0.0
    transmit_j: float = 0.0
    paid: float = 0.0

    @property
    def energy_j(self) -> float:
        """All energy the CV really used."""
        return self.compute_j + self.transmit_j

    @property
    def charge(self) -> float:
        """ξ = φ·e + φ̄, delivered or not."""
        return self.price_per_joule * self.energy_j + self.base_fee


@dataclass
class Totals:
    """The other side of every entry."""

    bits_offered: float = 0.0
    bits_drained: float = 0.0
    compute_j: float = 0.0
    transmit_j: float = 0.0
    paid: float = 0.0


@dataclass
class Ledger:
    """All accounts of a run."""

    totals: Totals = field(default_factory=Totals)
    _open: dict[tuple[int, int], Account] = field(default_factory=dict)
    _settled: Totals = field(default_factory=Totals)

    def open(self, cv: int, round: int, price_per_joule: float, base_fee: float) -> Account:
        """An account for an order."""
        account = Account(cv, round, price_per_joule, base_fee)
        self._open[cv, round] = account
        return account

    def offer(self, account: Account, bits: float) -> None:
        """Bits enter the CV's uplink buffer."""
        account.bits_offered += bits
        account.bits_left += bits
        self.totals.bits_offered += bits

    def drain(self, account: Account, bits: float) -> None:
        """Bits reach the gNB."""
        account.bits_drained += bits
        account.bits_left = max(0.0, account.bits_left - bits)
        self.totals.bits_drained += bits

    def compute(self, account: Account, joules: float) -> None:
        """The CV's CPU used energy."""
        account.compute_j += joules
        self.totals.compute_j += joules

    def transmitted(self, account: Account, bits_drained: float, bits_left: float, transmit_j: float) -> None:
        """Book the running totals of the CV's radio, as the MAC keeps them."""
        self.totals.bits_drained += bits_drained - account.bits_drained
        self.totals.transmit_j += transmit_j - account.transmit_j
        account.bits_drained, account.bits_left, account.transmit_j = bits_drained, bits_left, transmit_j

    def settle(self, account: Account) -> None:
        """Pay for an order that has ended, and check its laws."""
        account.paid = account.charge
        self.totals.paid += account.paid
        _same(f"bits of CV {account.cv}", account.bits_offered, account.bits_drained + account.bits_left)
        _not_negative(account)
        for name in vars(self._settled):
            setattr(self._settled, name, getattr(self._settled, name) + getattr(account, name))
        del self._open[account.cv, account.round]

    def check(self) -> None:
        """Compare the accounts with the totals; raise LedgerMismatch if a law is broken."""
        for name, total in vars(self.totals).items():
            booked = sum(getattr(account, name) for account in self._open.values())
            _same(name, total, getattr(self._settled, name) + booked)

    def account(self, cv: int, round: int) -> Account:
        """The open account of an order."""
        return self._open[cv, round]

    def state(self) -> State:
        """Both sides of the books, and what is open."""
        accounts = [dict(vars(account)) for account in self._open.values()]
        return {"totals": dict(vars(self.totals)), "settled": dict(vars(self._settled)), "open": accounts}

    def restore(self, state: State) -> None:
        """Open the books there."""
        self.totals, self._settled = Totals(**state["totals"]), Totals(**state["settled"])
        self._open = {(account["cv"], account["round"]): Account(**account) for account in state["open"]}


def _same(what: str, one: float, other: float) -> None:
    if not abs(one - other) <= _TOLERANCE * max(abs(one), abs(other), 1.0):  # nan is no agreement
        raise LedgerMismatch(f"the ledger does not add up: {what}: {one!r} against {other!r}")


def _not_negative(account: Account) -> None:
    for name, amount in vars(account).items():
        if not amount >= 0:
            raise LedgerMismatch(f"the ledger holds a negative {name} for CV {account.cv}: {amount!r}")
