"""What plans count on where channel knowledge is old, as a share of the mean rate of the worst pRB in its slot.

    python benchmarks/arriving_share.py

Rows are numbers of pRBs Z, correlations of the measured with the present channel, and margins in dB; columns are SNRs
of one antenna with all power on one pRB. Four antennas, independent pRBs.
"""

import script  # noqa: F401 (how it ends)

import numpy as np

from vefl_sim.radio.worst_prb import GainLaw, arriving_share

ANTENNAS = 4
SNRS_DB = (-10.0, 0.0, 10.0)


def main() -> None:
    print("|  Z | correlation | margin, dB |" + "".join(f" {snr_db:+.0f} dB |" for snr_db in SNRS_DB))
    print("|---:|---:|---:|" + "---:|" * len(SNRS_DB))
    for prbs in (10, 50):
        for correlation in (0.0, 0.87):
            law = GainLaw(prbs, ANTENNAS, correlation=correlation)
            for margin_db in (0, 3, 6):
                shares = arriving_share(law, 10 ** (-margin_db / 10), 10 ** (np.array(SNRS_DB) / 10))
                print(f"| {prbs} | {correlation} | {margin_db} |" + "".join(f" {share:.3f} |" for share in shares))


if __name__ == "__main__":
    main()
