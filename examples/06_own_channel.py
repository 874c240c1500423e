"""Use a user-defined channel: free-space path loss, and a fade of up to 10 dB that differs from pRB to pRB."""

import numpy as np

import vefl_sim


class FreeSpace:
    """Free space between the antennas; the pRBs have constant gains from −10 dB to 0 dB."""

    def __init__(self, experiment: vefl_sim.Experiment, streams) -> None:
        self.link = vefl_sim.Link.of(experiment.radio)
        self.wavelength_m = 0.299792458 / experiment.radio.carrier_ghz
        self.gain = np.logspace(-1, 0, self.link.prbs)

    def move(self, scene: vefl_sim.Scene) -> None:
        self.vehicle = scene.vehicle
        self.distance_m = np.sqrt(scene.x_m**2 + scene.y_m**2 + 23.5**2)

    def mean_snr_per_watt(self, cvs: np.ndarray) -> np.ndarray:
        distance_m = self.distance_m[np.searchsorted(self.vehicle, cvs)]
        return self.link.snr_per_watt(20 * np.log10(4 * np.pi * distance_m / self.wavelength_m))

    def fading_gains(self, slot: int, slots: int, cvs: np.ndarray) -> np.ndarray:
        return np.tile(self.gain, (slots, len(cvs), 1))

    def worst_case_rate_bps(self, cvs: np.ndarray) -> np.ndarray:
        return self.link.rate_bps(self.link.max_power_w * self.mean_snr_per_watt(cvs) * self.gain.min())


if __name__ == "__main__":
    tables = {"run": {"name": "channels", "rounds": 3}, "data": {"train_samples": 4000}, "learning": {"kind": "none"}}
    for channel in ("uma", "__main__:FreeSpace"):
        run = vefl_sim.simulate(vefl_sim.from_tables(tables | {"radio": {"channel": channel}}))
        eligible, delivered = run.rounds["eligible"].sum(), run.vehicles.query("state == 'delivered'")
        planned, used = delivered["worst_slots"].mean(), delivered["tx_slots"].mean()
        print(f"{channel:18s} {eligible} CVs eligible; slots of an upload: {planned:.1f} planned, {used:.1f} used")
