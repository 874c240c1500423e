"""Rules between the keys of the radio: contradictions, and keys that another key makes useless."""

from collections.abc import Iterator, Sequence
from math import log10

from vefl_sim.experiment.experiment import Experiment

_BROADCAST_KEYS = ("downlink.rate_floor", "downlink.tx_power_w", "downlink.noise_figure_db")
_OPTIMIZE_POWERS = ("assignment", "large", "sca", "sca-perspective")


def radio_contradictions(e: Experiment) -> Iterator[str]:
    """Yield one sentence for each contradictory combination of keys of the radio."""
    radio, mac = e.radio, e.mac
    if "U" not in mac.tdd:
        yield f'mac.tdd = "{mac.tdd}" has no uplink slot: add a U to the pattern.'
    slots = e.round_ns // e.slots.slot_ns
    delays = {"radio.csi_delay_slots": radio.csi_delay_slots, "mac.grant_delay_slots": mac.grant_delay_slots}
    for key, value in (delays | {"mac.bsr_slots": mac.bsr_slots, "the pattern mac.tdd": len(mac.tdd)}).items():
        if value > slots:
            yield f"{key} has {value} slots, longer than the round of {slots} slots (vefl.round_s): shorten it."
    if e.downlink.kind == "broadcast" and "D" not in mac.tdd and set(mac.tdd) != {"U"}:
        yield f'downlink.kind = "broadcast" needs downlink slots in mac.tdd = "{mac.tdd}": add a D to the pattern.'
    if radio.power == "open-loop" and radio.p0_dbm > (limit_dbm := 10 * log10(radio.max_tx_power_w) + 30):
        yield f"radio.p0_dbm = {radio.p0_dbm:g} is above P_max (radio.max_tx_power_w, {limit_dbm:.1f} dBm): lower it."
    if radio.power == "open-loop" and e.rat.method in _OPTIMIZE_POWERS:
        yield (
            f'rat.method = "{e.rat.method}" optimizes powers, which radio.power = "open-loop" sets: use "auto", '
            '"exact" or a policy.'
        )


def unused_radio_keys(e: Experiment) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield (the setting that makes keys useless, these keys)."""
    if e.radio.fading != "rician":
        yield f'radio.fading = "{e.radio.fading}"', ("radio.rician_k_db",)
    if e.radio.fading == "none":
        yield 'radio.fading = "none"', ("radio.delay_spread_s",)
    if e.radio.power == "optimized":
        yield 'radio.power = "optimized"', ("radio.p0_dbm", "radio.alpha")
    if e.downlink.kind == "ignored":
        yield 'downlink.kind = "ignored"', _BROADCAST_KEYS
    if "S" not in e.mac.tdd:
        yield f'mac.tdd = "{e.mac.tdd}"', ("mac.special_uplink_symbols",)
