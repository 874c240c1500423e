"""Urban macro (UMa) path loss and line-of-sight probability of 3GPP TR 38.901, tables 7.4.1-1 and 7.4.2-1."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

SPEED_OF_LIGHT_MPS = 299_792_458.0
MIN_DISTANCE_M = 10.0  # the model is not defined below; nearer CVs are treated as being at this distance
MAX_DISTANCE_M = 5000.0
_EFFECTIVE_ENVIRONMENT_M = 1.0  # h_E, which is not random for terminals up to 13 m


def pathloss_db(
    d2d_m: ArrayLike, *, los: ArrayLike, carrier_ghz: float, h_bs_m: float = 25.0, h_ut_m: float = 1.5
) -> NDArray[np.float64]:
    """Path loss in dB at horizontal distances `d2d_m`; `los` (bool) selects the formula for each entry.

    LOS:  28 + 22·lg d₃ + 20·lg f up to the breakpoint, with 40·lg d₃ beyond it.
    NLOS: the larger of LOS and 13.54 + 39.08·lg d₃ + 20·lg f − 0.6·(h_UT − 1.5).
    Distances under 10 m count as 10 m; above 5 km the model is not defined.
    """
    if not (0.5 <= carrier_ghz <= 100 and 1.5 <= h_ut_m <= 22.5 and 10 <= h_bs_m <= 150):
        raise ValueError("the UMa model needs carrier_ghz in 0.5 to 100, h_ut_m in 1.5 to 22.5 and h_bs_m in 10 to 150")
    d2d = _checked(d2d_m)
    height = h_bs_m - h_ut_m
    d3d = np.hypot(d2d, height)
    breakpoint_m = (
        4 * (h_bs_m - _EFFECTIVE_ENVIRONMENT_M) * (h_ut_m - _EFFECTIVE_ENVIRONMENT_M)
        * carrier_ghz * 1e9 / SPEED_OF_LIGHT_MPS
    )  # fmt: skip
    base = 28.0 + 20 * np.log10(carrier_ghz)
    near = base + 22 * np.log10(d3d)
    far = base + 40 * np.log10(d3d) - 9 * np.log10(breakpoint_m**2 + height**2)
    los_db = np.where(d2d <= breakpoint_m, near, far)
    nlos_db = 13.54 + 39.08 * np.log10(d3d) + 20 * np.log10(carrier_ghz) - 0.6 * (h_ut_m - 1.5)
    loss: NDArray[np.float64] = np.where(los, los_db, np.maximum(los_db, nlos_db))
    return loss


def los_probability(d2d_m: ArrayLike, *, h_ut_m: float = 1.5) -> NDArray[np.float64]:
    """Probability of line of sight at horizontal distances `d2d_m`: 1 up to 18 m, falling beyond."""
    if not 1.5 <= h_ut_m <= 23:
        raise ValueError("the UMa model needs h_ut_m in 1.5 to 23")
    near = _checked(d2d_m) <= 18.0
    d2d = np.maximum(_checked(d2d_m), 18.0)
    ground: NDArray[np.float64] = 18 / d2d + np.exp(-d2d / 63) * (1 - 18 / d2d)
    tall: float = max(0.0, (h_ut_m - 13) / 10) ** 1.5
    return np.where(near, 1.0, ground * (1 + tall * 1.25 * (d2d / 100) ** 3 * np.exp(-d2d / 150)))


def _checked(d2d_m: ArrayLike) -> NDArray[np.float64]:
    d2d = np.asarray(d2d_m, dtype=np.float64)
    if not np.all((d2d >= 0) & (d2d <= MAX_DISTANCE_M)):
        raise ValueError(f"d2d_m must be between 0 and {MAX_DISTANCE_M:g} m")
    return np.maximum(d2d, MIN_DISTANCE_M)
