"""Facts of the 5G-NR frame (TS 38.211): subcarriers, symbols, overhead."""

SUBCARRIERS_PER_PRB = 12
SYMBOLS_PER_SLOT = 14


def subcarrier_spacing_hz(numerology: int) -> float:
    """15 kHz · 2^n̄."""
    return 15e3 * (1 << numerology)


def prb_bandwidth_hz(numerology: int) -> float:
    """Bandwidth of one physical resource block: 12 subcarriers."""
    return SUBCARRIERS_PER_PRB * subcarrier_spacing_hz(numerology)


def overhead(flexible_symbol_uplink: bool) -> float:
    """υ: the symbols of a slot that carry no uplink data (downlink control, and perhaps the flexible one)."""
    return (1 if flexible_symbol_uplink else 2) / SYMBOLS_PER_SLOT
