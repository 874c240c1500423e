"""Double-entry bookkeeping of the bits, the energy and the money of every order.

An `Account` belongs to one CV and one round. Each amount is booked twice, on the account and in the totals
of the other side (bits at the gNB, energy of all CVs, money of the server), and `Ledger.check` compares them.
"""

from dataclasses import dataclass, field

from vefl_sim.core.errors import LedgerMismatch
from vefl_sim.core.state import State, from_state, state_of

_TOLERANCE = 1e-9  # relative; sums of a million doubles stay well inside it


@dataclass
class Account:
    """Bits, energy and money of one order of one CV."""

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
    bits_lost: float = 0.0  # of grants above the capacity of their slot; they stay in bits_left, and are sent again

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
    gnb_j: float = 0.0  # energy of the gNB for broadcasts, which no CV is paid for
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

    def drain(self, account: Account, bits: float) -> None:
        """Book bits that the gNB has received."""
        account.bits_drained += bits
        account.bits_left = max(0.0, account.bits_left - bits)
        self.totals.bits_drained += bits

    def compute(self, account: Account, joules: float) -> None:
        """Book energy that the CV's CPU used."""
        account.compute_j += joules
        self.totals.compute_j += joules

    def broadcast(self, joules: float) -> None:
        """Book energy that the gNB used to send the model."""
        self.gnb_j += joules

    def transmitted(self, account: Account, bits_drained: float, bits_left: float, transmit_j: float) -> None:
        """Book what the CV's radio did so far; the arguments are totals since the order, as the MAC counts them."""
        self.totals.bits_drained += bits_drained - account.bits_drained
        self.totals.transmit_j += transmit_j - account.transmit_j
        account.bits_drained, account.bits_left, account.transmit_j = bits_drained, bits_left, transmit_j

    def lost(self, account: Account, bits_lost: float) -> None:
        """Book bits of lost grants; the argument is the total since the order."""
        self.totals.bits_lost += bits_lost - account.bits_lost
        account.bits_lost = bits_lost

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
            "gnb_j": self.gnb_j,
            "settled": state_of(self._settled),
            "open": state_of([*self._open.values()]),
        }

    def restore(self, state: State) -> None:
        """Restore totals and open accounts from a checkpoint."""
        self.gnb_j = state["gnb_j"]
        self.totals, self._settled = from_state(Totals, state["totals"]), from_state(Totals, state["settled"])
        self._open = {(account.cv, account.round): account for account in from_state(list[Account], state["open"])}


def _require_equal(what: str, one: float, other: float) -> None:
    if not abs(one - other) <= _TOLERANCE * max(abs(one), abs(other), 1.0):  # written so that NaN fails, too
        raise LedgerMismatch(f"the ledger does not add up: {what}: {one!r} against {other!r}")


def _require_not_negative(account: Account) -> None:
    for name, amount in vars(account).items():
        if not amount >= 0:
            raise LedgerMismatch(f"the ledger holds a negative {name} for CV {account.cv}: {amount!r}")
