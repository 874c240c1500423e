"""Use a user-defined data set: horizontal and vertical stripes in noise, learned by a linear model."""

import numpy as np

import vefl_sim


def stripes(experiment: vefl_sim.Experiment, streams) -> vefl_sim.Dataset:
    """2000 training and 400 test images of 8 × 8 pixels, grey, in two classes."""
    rng = streams.generator("stripes")

    def draw(samples: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(2, size=samples, dtype=np.int32)
        bright = (np.indices((8, 8)) % 2)[labels]  # rows or columns alternate; shape (samples, 8, 8)
        images = rng.integers(0, 128, (samples, 8, 8), dtype=np.uint8) + 64 * bright.astype(np.uint8)
        return images[..., np.newaxis], labels

    return vefl_sim.Dataset("stripes", *draw(2000), *draw(400), classes=2)


if __name__ == "__main__":
    run = vefl_sim.simulate(
        vefl_sim.from_tables(
            {
                "run": {"name": "stripes", "rounds": 3},
                "data": {"kind": "__main__:stripes"},
                "model": {"factory": "vefl_models.logistic:logistic"},
                "learning": {"learning_rate": 0.5},
            }
        )
    )
    samples = run.vehicles.groupby("cv")["samples"].first()
    print(f"{run.summary['updates_delivered']} updates of CVs with {samples.min()} to {samples.max()} samples")
    print("more than 90 % of the test images are classified correctly:", run.summary["last_accuracy"] > 0.9)
