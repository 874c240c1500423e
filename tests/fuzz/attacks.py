"""The attacks by name."""

from tests.fuzz import data_files, experiments, rat_problems, run_directories, vefl_problems
from tests.fuzz.attack import Attack

_ALL: tuple[Attack, ...] = (
    experiments.EXPERIMENTS,
    data_files.ATTACK,
    run_directories.RUN_DIRECTORIES,
    rat_problems.ATTACK,
    vefl_problems.ATTACK,
)
ATTACKS = {attack.name: attack for attack in _ALL}
