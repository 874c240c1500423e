"""Learn from a Hugging Face data set: is a road rough? Needs `pip install datasets`, but no download."""

import datasets
import numpy as np

import vefl_sim


def from_hugging_face(data: datasets.DatasetDict, inputs: str, label: str) -> vefl_sim.Dataset:
    def arrays(split: str) -> tuple[np.ndarray, np.ndarray]:
        rows = data[split].with_format("numpy")[:]
        return np.stack(rows[inputs]), rows[label]

    names = data["train"].features[label].names  # of a ClassLabel
    train, test = arrays("train"), arrays("test")
    return vefl_sim.Dataset("hugging face", *train, *test, classes=len(names), class_names=tuple(names))


def roads(experiment: vefl_sim.Experiment, streams) -> vefl_sim.Dataset:
    """Vertical accelerations at 32 moments on smooth and rough roads; datasets.load_dataset(…) gives the same type."""
    road_names = datasets.ClassLabel(names=["smooth", "rough"])
    features = datasets.Features({"shocks": datasets.List(datasets.Value("float32")), "road": road_names})
    rng, splits = streams.generator("roads"), {}
    for split, samples in (("train", 2000), ("test", 400)):
        road = rng.integers(2, size=samples)
        noise = rng.normal(0.0, 1.5, (samples, 32)) * road[:, np.newaxis]
        shocks = np.cumsum(rng.normal(0.0, 0.3, (samples, 32)), axis=1) + noise
        splits[split] = datasets.Dataset.from_dict({"shocks": shocks, "road": road}, features=features)
    return from_hugging_face(datasets.DatasetDict(splits), "shocks", "road")


if __name__ == "__main__":
    tables = {"run": {"name": "roads", "rounds": 6}, "data": {"kind": "__main__:roads", "partition": "iid"}}
    tables |= {"model": {"factory": "vefl_models.mlp:mlp"}, "learning": {"learning_rate": 0.1, "batch_size": 16}}
    run = vefl_sim.simulate(vefl_sim.from_tables(tables))
    print("classes:", ", ".join(run.model().card.class_names))
    print("more than 90 % of the test samples are classified correctly:", run.summary["last_accuracy"] > 0.9)
