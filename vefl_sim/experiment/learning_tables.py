"""The TOML tables of machine learning: [data], [model], [learning], [update] and [adversary]."""

from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.experiment.fields import BitCount, Count, Interval, OneOf, PartName, Rate, Share, Table
from vefl_sim.experiment.kinds import CODECS, DATA_SETS, LOSSES, PARTITIONS


class DataTable(Table):
    """The data set and how it is split over the CVs."""

    kind: Annotated[str, OneOf(DATA_SETS)] = "signs"
    """"signs": traffic signs drawn by the program; "mnist", "fashion-mnist", "cifar10", "gtsrb": the public data sets;
    "folder": your own images; "positions": where a CV will be, recorded in the run's own traffic; or
    `module:function`."""
    dir: str = ""
    """Folder with the files of a data set other than "signs" and "positions"; if empty, the folder to which `data get`
    downloads them. "folder": a folder or a .zip of train/<class>/<image> and test/<class>/<image>. A relative path is
    resolved like `mobility.file`."""
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
    horizon_s: Annotated[int, Field(ge=1, le=30)] = 3
    """How far ahead a position is predicted, in whole seconds ("positions")."""
    partition: Annotated[str, OneOf(PARTITIONS, own=False)] = "dirichlet"
    """How the training set is split over CVs: by label ("dirichlet"), at random ("iid"), in shards of one or two
    classes, or as recorded ("own", for data sets that CVs have recorded). Groups (GTSRB: the pictures of one sign) stay
    together."""
    holders: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of CVs that the training set is split over. CVs take the shares in the order in which they first enter
    coverage, and shares that nobody takes stay unused; so a shorter run is the beginning of a longer one. 0: over those
    that enter coverage during the run."""
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
    """FPP, the floating-point precision that the paper's payload counts: 1 + FPP bits per parameter. It changes the
    size of an update, not its numbers; `update.codec` changes both."""
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
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Momentum of the local steps ("sgd"): v ← momentum·v + gradient, ω ← ω − δ·v, from v = 0 for each order."""
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
    every run has; "best": keep the model with the highest accuracy, or without classes the smallest loss, on the
    validation samples."""


class UpdateTable(Table):
    """How an update is coded: its size, and what the server reads of it."""

    codec: Annotated[str, OneOf(CODECS)] = "float32"
    """"float32": as it is, with the paper's number of bits (`model.float_bits`); "float16": 16 bits per parameter;
    "qsgd": rounded at random to few levels; "top-k": only the largest changes; or `module:Class`."""
    levels: Annotated[int, Field(ge=1, le=65_535)] = 15
    """s of "qsgd": levels besides zero; 1 + ⌈log₂(s + 1)⌉ bits per parameter."""
    keep_share: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Share of the parameters that "top-k" sends."""


class AdversaryTable(Table):
    """CVs that harm the model."""

    share: Share = 0.0
    """Probability that a CV is an adversary, whose training labels are flipped (class c becomes classes − 1 − c)."""
