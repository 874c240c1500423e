"""The TOML tables of machine learning: [data], [model] and [learning]."""

from typing import Annotated, Literal, Self

from pydantic import Field

from vefl_sim.experiment.fields import Count, NonNegative, PartName, Positive, Table


class DataTable(Table):
    """What is learnt, and who holds it."""

    kind: Literal["signs", "mnist", "fashion-mnist", "cifar10", "gtsrb", "folder"] | PartName = "signs"
    """"signs": traffic signs drawn by the program; "mnist", "fashion-mnist", "cifar10", "gtsrb": the public data sets;
    "folder": images of your own; or `module:function`."""
    dir: str = ""
    """Where the files of other kinds are; if empty, where `data get` puts them. "folder": a folder or a .zip of
    train/<class>/<image> and test/<class>/<image>. It starts where `mobility.file` does."""
    train_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Samples over all CVs, drawn at random from what there is; if not given, 12000 ("signs") or all."""
    test_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Samples of the test set, in the same way; if not given, 2000 ("signs") or all."""
    validation_samples: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """So many of the training samples are held out and evaluated instead of the test set, to choose parameters; 0: the
    test set."""
    image_px: Annotated[int, Field(ge=16, le=128)] = 28
    """Side to which images are drawn or resized ("signs", "gtsrb", "folder"); the others have their own."""
    partition: Literal["dirichlet", "iid", "shards"] = "dirichlet"
    """How the training set is split over CVs: by label, at random, or in shards of one class or two. Groups (GTSRB:
    the pictures of one sign) stay together."""
    dirichlet_alpha: Positive = 0.1
    """α of the label distribution over CVs; small is skewed ("dirichlet")."""
    shards_per_cv: Annotated[int, Field(ge=1, le=1000)] = 2
    """Pieces, each of samples next to each other when sorted by class, that a CV gets ("shards")."""
    min_samples: Count = 10
    """Every CV holds at least this many samples."""
    bits_per_value: Count = 32
    """D_v counts this many bits per pixel and channel."""

    def settled(self) -> Self:
        """The same with the number of `signs` to draw; the files of other kinds say how many there are."""
        if self.kind != "signs":
            return self
        counts = {"train_samples": self.train_samples or 12_000, "test_samples": self.test_samples or 2_000}
        return self.model_copy(update=counts)


class ModelTable(Table):
    """The network that is trained."""

    factory: PartName = "vefl_models.cnn:cnn"
    """`module:factory` of a flax model."""
    float_bits: Count = 32
    """FPP; an update has 1 + FPP bits per parameter."""


class LearningTable(Table):
    """Local training and evaluation."""

    kind: Literal["jax", "none"] = "jax"
    """"none" runs the network side alone, with the same sample and parameter counts."""
    learning_rate: Positive = 0.05
    """δ."""
    proximal_mu: NonNegative = 0.01
    """μ of the proximal term."""
    optimizer: Literal["sgd", "adagrad", "adam", "adamw", "lamb", "lion", "nadam", "radam", "rmsprop", "yogi"] = "sgd"
    """Of the local steps: "sgd", plain gradient descent, is the paper's; or one of optax, starting afresh with each
    order."""
    batch_size: Count | None = None
    """Samples per local step; not given: all that the CV holds, as in the paper. An iteration stays one pass over
    all of them."""
    iterations_per_step: Count = 1
    """n: so many planned iterations are computed as one gradient step of n·δ, to save time in long runs; the last step
    is smaller if n does not divide l. Time, energy and money still count every iteration. Only with "sgd" on all
    samples."""
    threads: Count | None = None
    """CVs trained at the same time; not given: one per core. Results do not depend on it; 1 is best for sweeps with one
    process per core."""
    evaluate_every: Count = 1
    """Rounds between two evaluations; the last round is always evaluated."""
