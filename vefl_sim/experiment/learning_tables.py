"""The TOML tables of machine learning: [data], [model] and [learning]."""

from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.experiment.fields import BitCount, Count, Interval, OneOf, PartName, Rate, Table
from vefl_sim.experiment.kinds import DATA_SETS, LOSSES, PARTITIONS


class DataTable(Table):
    """The data set and how it is split over the CVs."""

    kind: Annotated[str, OneOf(DATA_SETS)] = "signs"
    """"signs": traffic signs drawn by the program; "mnist", "fashion-mnist", "cifar10", "gtsrb": the public data sets;
    "folder": your own images; or `module:function`."""
    dir: str = ""
    """Folder with the files of a data set other than "signs"; if empty, the folder to which `data get` downloads them.
    "folder": a folder or a .zip of train/<class>/<image> and test/<class>/<image>. A relative path is resolved like
    `mobility.file`."""
    train_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Number of training samples over all CVs, drawn at random from the data set; if not given, 12000 ("signs") or
    all."""
    test_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Number of test samples, drawn in the same way; if not given, 2000 ("signs") or all."""
    validation_samples: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of training samples that are held out and used for evaluation instead of the test set, to choose
    parameters; 0: evaluate on the test set."""
    image_px: Annotated[int, Field(ge=16, le=128)] = 28
    """Side length to which images are drawn or resized ("signs", "gtsrb", "folder"); other data sets have a fixed
    size."""
    partition: Annotated[str, OneOf(PARTITIONS, own=False)] = "dirichlet"
    """How the training set is split over CVs: by label ("dirichlet"), at random ("iid"), in shards of one or two
    classes, or as recorded ("own", for data sets that CVs have recorded). Groups (GTSRB: the pictures of one sign) stay
    together."""
    dirichlet_alpha: Annotated[float, Field(ge=1e-6, le=1e9)] = 0.1
    """α of the label distribution over CVs; a small α gives skewed labels ("dirichlet")."""
    shards_per_cv: Annotated[int, Field(ge=1, le=1000)] = 2
    """Number of shards per CV; a shard is a block of consecutive samples of the training set sorted by class
    ("shards")."""
    min_samples: Count = 10
    """Every CV holds at least this many samples."""
    bits_per_value: BitCount = 32
    """Bits per pixel and channel in the data size D_v."""


class ModelTable(Table):
    """The neural network that is trained."""

    factory: PartName = "vefl_models.cnn:cnn"
    """`module:factory` of a Flax model."""
    float_bits: BitCount = 32
    """FPP, the floating-point precision; an update has 1 + FPP bits per parameter."""
    start: str | None = None
    """Initial model ω_0: a file with its parameters, such as the `model.npz` of another run; if not given, they are
    drawn with `run.seed`. A relative path is resolved like `mobility.file`."""


class LearningTable(Table):
    """Local training and evaluation."""

    kind: Literal["jax", "none"] = "jax"
    """"jax" trains the model; "none" simulates all but the training, with the same sample and parameter
    counts."""
    loss: Annotated[str, OneOf(LOSSES)] = "cross-entropy"
    """What training minimises: "cross-entropy" for classes, "mse" (mean squared error) for targets that are numbers,
    or `module:name`, a function of outputs and targets."""
    learning_rate: Rate = 0.05
    """δ, the learning rate of local training."""
    proximal_mu: Annotated[float, Field(ge=0, le=1e6)] = 0.01
    """μ of the proximal term."""
    optimizer: Literal["sgd", "adagrad", "adam", "adamw", "lamb", "lion", "nadam", "radam", "rmsprop", "yogi"] = "sgd"
    """Optimizer of the local steps: "sgd" is plain gradient descent, as in the paper; the others are those of optax,
    with a new optimizer state for each order."""
    batch_size: Count | None = None
    """Samples per local step; if not given, all samples of the CV, as in the paper. An iteration is always one pass
    over all samples of the CV."""
    iterations_per_step: Count = 1
    """n: this many planned iterations are computed as one gradient step of n·δ, to save time in long runs; the last
    step is smaller if n does not divide l. Time, energy and cost still count every iteration. Only with "sgd" on all
    samples."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Number of CVs trained at the same time; if not given, one per core. Does not affect the results; 1 is best for
    sweeps with one process per core."""
    evaluate_every: Interval = 1
    """Rounds between two evaluations; the last round is always evaluated."""
    keep_models: Interval | Literal["best"] | None = None
    """Rounds between two models that are kept in `models/` of the run, besides the last model, `model.npz`, which
    every run has; "best": keep the model with the highest accuracy on the validation samples."""
