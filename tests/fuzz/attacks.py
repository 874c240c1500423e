"""The attacks by name."""

from tests.fuzz import data_files, experiments, rat_problems, vefl_problems
from tests.fuzz.attack import Attack

_ALL: tuple[Attack, ...] = (experiments.EXPERIMENTS, data_files.ATTACK, rat_problems.ATTACK, vefl_problems.ATTACK)
ATTACKS = {attack.name: attack for attack in _ALL}
