"""Learn from a torchvision data set, or any other sequence of pictures with their class numbers."""

from collections.abc import Iterable

import numpy as np
from PIL import Image, ImageDraw

import vefl_sim


def from_pairs(train: Iterable, test: Iterable, classes: int, side_px: int = 20) -> vefl_sim.Dataset:
    def arrays(pairs: Iterable) -> tuple[np.ndarray, np.ndarray]:
        resized = [(picture.convert("RGB").resize((side_px, side_px)), label) for picture, label in pairs]
        return np.stack([np.asarray(picture) for picture, _ in resized]), np.array([label for _, label in resized])

    return vefl_sim.Dataset("pictures", *arrays(train), *arrays(test), classes=classes)


def shapes(experiment: vefl_sim.Experiment, streams) -> vefl_sim.Dataset:
    """Discs and squares; torchvision.datasets.FakeData(…) or CIFAR100(…, train=True) give pairs of the same kind."""
    rng = streams.generator("shapes")

    def draw(label: int) -> tuple[Image.Image, int]:
        picture = Image.fromarray(rng.integers(0, 160, (32, 32), dtype=np.uint8))
        x, y = (int(place) for place in rng.integers(2, 10, size=2))
        (ImageDraw.Draw(picture).ellipse if label else ImageDraw.Draw(picture).rectangle)((x, y, x + 20, y + 20), 230)
        return picture, label

    return from_pairs([draw(n % 2) for n in range(1500)], [draw(n % 2) for n in range(300)], classes=2)


if __name__ == "__main__":
    tables = {"run": {"name": "shapes", "rounds": 4}, "data": {"kind": "__main__:shapes"}}
    run = vefl_sim.simulate(vefl_sim.from_tables(tables | {"learning": {"learning_rate": 0.1}}))
    print("pictures of", " × ".join(map(str, run.model().card.input_shape)))
    print("more than 90 % of the test pictures are classified correctly:", run.summary["last_accuracy"] > 0.9)
