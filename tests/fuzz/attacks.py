"""The attacks by name."""

from tests.fuzz import data_files, experiments, extreme, kills, rat_problems, run_directories, vefl_problems
from tests.fuzz.attack import Attack

_ALL: tuple[Attack, ...] = (
    experiments.ATTACK,
    extreme.ATTACK,
    data_files.ATTACK,
    run_directories.ATTACK,
    rat_problems.ATTACK,
    vefl_problems.ATTACK,
    kills.ATTACK,
)
ATTACKS = {attack.name: attack for attack in _ALL}
