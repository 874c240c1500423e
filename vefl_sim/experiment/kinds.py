"""The built-in kinds of each family, by the name that the TOML uses: a new kind is its own file and one line here.

A kind is a part like a user-defined one: `module:name` of a class or function, loaded by `plugins.load_part` when it is
needed. What distinguishes it from others of its family it declares itself, beside its code (docs/parts.md).
"""

SCHEMES = {
    "pdpc": "vefl_sim.schemes.pdpc:Pdpc",
    "fdpc": "vefl_sim.schemes.pdpc:Fdpc",
    "fedprox": "vefl_sim.schemes.fedprox:FedProx",
    "fedavg": "vefl_sim.schemes.fedprox:FedAvg",
    "random": "vefl_sim.schemes.selection:RandomSelection",
    "afa-cd": "vefl_sim.schemes.asynchronous:AfaCd",
    "fedbuff": "vefl_sim.schemes.asynchronous:FedBuff",
    "fednova": "vefl_sim.schemes.baselines:FedNova",
    "fedadam": "vefl_sim.schemes.baselines:FedAdam",
    "fedyogi": "vefl_sim.schemes.baselines:FedYogi",
    "scaffold": "vefl_sim.schemes.baselines:Scaffold",
    "feddyn": "vefl_sim.schemes.baselines:FedDyn",
    "oort": "vefl_sim.schemes.selection:Oort",
    "median": "vefl_sim.schemes.baselines:Median",
    "trimmed-mean": "vefl_sim.schemes.baselines:TrimmedMean",
    "krum": "vefl_sim.schemes.baselines:Krum",
    "fedasync": "vefl_sim.schemes.asynchronous:FedAsync",
    "centralized": "vefl_sim.schemes.centralized:Centralized",
}
MOBILITY = {
    "idm": "vefl_sim.mobility.sources:IDM",
    "playback": "vefl_sim.mobility.sources:PLAYBACK",
    "sumo": "vefl_sim.mobility.sources:SUMO",
}
DATA_SETS = {
    "signs": "vefl_sim.learning.datasets.signs:SIGNS",
    "mnist": "vefl_sim.learning.datasets.mnist:MNIST",
    "fashion-mnist": "vefl_sim.learning.datasets.mnist:FASHION_MNIST",
    "cifar10": "vefl_sim.learning.datasets.cifar10:CIFAR10",
    "gtsrb": "vefl_sim.learning.datasets.gtsrb:GTSRB",
    "folder": "vefl_sim.learning.datasets.folder:FOLDER",
    "positions": "vefl_sim.learning.datasets.positions:POSITIONS",
}
PARTITIONS = {
    "dirichlet": "vefl_sim.learning.holdings:DIRICHLET",
    "iid": "vefl_sim.learning.holdings:IID",
    "shards": "vefl_sim.learning.holdings:SHARDS",
    "own": "vefl_sim.learning.holdings:OWN",
}
LOSSES = {
    "cross-entropy": "vefl_sim.learning.losses:CROSS_ENTROPY",
    "mse": "vefl_sim.learning.losses:MSE",
}
CODECS = {
    "float32": "vefl_sim.learning.codecs:Float32",
    "float16": "vefl_sim.learning.codecs:Float16",
    "qsgd": "vefl_sim.learning.codecs:Qsgd",
    "top-k": "vefl_sim.learning.codecs:TopK",
}
CHANNELS = {"uma": "vefl_sim.radio.channel:uma"}
SCHEDULERS = {"edf": "vefl_sim.optimize.rat.edf:edf"}
RAT_METHODS = {
    "auto": "vefl_sim.optimize.rat.methods:AUTO",
    "exact": "vefl_sim.optimize.rat.methods:EXACT",
    "assignment": "vefl_sim.optimize.rat.methods:ASSIGNMENT",
    "large": "vefl_sim.optimize.rat.methods:LARGE",
    "equal": "vefl_sim.optimize.rat.methods:EQUAL",
    "max-snr": "vefl_sim.optimize.rat.methods:MAX_SNR",
    "proportional-fair": "vefl_sim.optimize.rat.methods:PROPORTIONAL_FAIR",
    "sca": "vefl_sim.optimize.rat.methods:SCA",
    "sca-perspective": "vefl_sim.optimize.rat.methods:SCA_PERSPECTIVE",
}

FAMILIES = {
    "mobility.kind": MOBILITY,
    "radio.channel": CHANNELS,
    "mac.scheduler": SCHEDULERS,
    "rat.method": RAT_METHODS,
    "scheme.kind": SCHEMES,
    "data.kind": DATA_SETS,
    "data.partition": PARTITIONS,
    "learning.loss": LOSSES,
    "update.codec": CODECS,
}
"""TOML key -> the built-in kinds that it can name."""
