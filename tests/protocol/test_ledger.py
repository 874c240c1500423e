import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core.errors import LedgerMismatch
from vefl_sim.protocol.ledger import Ledger

amount = st.floats(0, 1e6)


@given(st.lists(st.tuples(amount, st.lists(st.floats(0, 1), max_size=5), amount, amount), max_size=6))
def test_bits_joules_and_money_add_up(orders: list[tuple[float, list[float], float, float]]) -> None:
    ledger = Ledger()
    paid = 0.0
    for cv, (bits, shares, compute_j, transmit_j) in enumerate(orders):
        account = ledger.open(cv, 1, price_per_joule=5.0, base_fee=10.0)
        ledger.offer(account, bits)
        for share in shares:
            ledger.drain(account, share * account.bits_left)
        ledger.compute(account, compute_j)
        account.queue["transmit_j"] += transmit_j
        ledger.transmitted(0.0, 0.0, transmit_j)
        ledger.check()  # holds at any moment, not only at the end
        ledger.settle(account)
        paid += account.paid
        assert account.paid == pytest.approx(5.0 * (compute_j + transmit_j) + 10.0)
        assert account.bits_offered == pytest.approx(account.bits_drained + account.bits_left)
    ledger.check()
    assert ledger.totals.paid == pytest.approx(paid)


def test_drained_bits_that_were_never_offered_are_caught() -> None:
    ledger = Ledger()
    account = ledger.open(1, 1, 1.0, 1.0)
    ledger.offer(account, 100.0)
    ledger.drain(account, 150.0)
    with pytest.raises(LedgerMismatch, match="bits of CV 1"):
        ledger.settle(account)


@pytest.mark.parametrize("name", ["bits_drained", "bits_lost", "transmit_j"])
@pytest.mark.parametrize("side", ["queue", "log"])
def test_what_only_one_side_counts_is_caught(side: str, name: str) -> None:
    ledger, amounts = Ledger(), dict.fromkeys(("bits_drained", "bits_lost", "transmit_j"), 0.0)
    account = ledger.open(1, 1, 1.0, 1.0)
    if side == "queue":
        account.queue[name] += 0.5
    else:
        ledger.transmitted(**amounts | {name: 0.5})
    with pytest.raises(LedgerMismatch, match=name):
        ledger.check()


@pytest.mark.parametrize(("entry", "amount"), [("drain", float("nan")), ("compute", float("nan")), ("compute", -1.0)])
def test_nan_and_negative_energy_are_caught(entry: str, amount: float) -> None:
    ledger = Ledger()
    account = ledger.open(1, 1, 1.0, 1.0)
    ledger.offer(account, 100.0)
    getattr(ledger, entry)(account, amount)
    with pytest.raises(LedgerMismatch):
        ledger.settle(account)
