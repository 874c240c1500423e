"""The attacks by name."""

from tests.fuzz.attack import Attack

_ALL: tuple[Attack, ...] = ()
ATTACKS = {attack.name: attack for attack in _ALL}
