"""Rules between the keys of the radio: contradictions, and keys that another key makes useless."""

from collections.abc import Iterator, Sequence

from vefl_sim.experiment.experiment import Experiment


def radio_contradictions(e: Experiment) -> Iterator[str]:
    """Yield one sentence for each contradictory combination of keys of the radio."""
    yield from ()


def unused_radio_keys(e: Experiment) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield (the setting that makes keys useless, these keys)."""
    if e.radio.fading != "rician":
        yield f'radio.fading = "{e.radio.fading}"', ("radio.rician_k_db",)
    if e.radio.fading == "none":
        yield 'radio.fading = "none"', ("radio.delay_spread_s",)
