"""The tables of built-in kinds, and what kinds and user-defined parts declare about themselves."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.schemes.rounds import experiment
from tests.sweep.test_comparison import written
from vefl_sim import with_settings
from vefl_sim.analysis.figures.names import value_label
from vefl_sim.analysis.schema import file_schema
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.kinds import FAMILIES
from vefl_sim.experiment.plugins import Unused, load_part
from vefl_sim.experiment.unused_keys import is_used
from vefl_sim.schemes.pdpc import Fdpc, Pdpc
from vefl_sim.sweep.points import load_sweep
from vefl_sim.sweep.wall_time import wall_time_s

KINDS = [(key, name) for key, family in FAMILIES.items() for name in family]
NEEDED = {"playback": {"file": "a.xml"}, "sumo": {"file": "a.net.xml"}, "folder": {"dir": "images"}}
NEEDED["positions"] = {"partition": "own"}
"""Keys without which a kind is refused, in its own table."""
OTHERS: dict[str, Any] = {"positions": {"model": {"factory": "vefl_models.mlp:mlp"}, "learning": {"loss": "mse"}}}
"""The same, in other tables."""


class Choosy(Fdpc):
    """A scheme that may use other keys than its base class."""


@pytest.mark.parametrize(("key", "name"), KINDS)
def test_every_kind_is_a_part_that_the_experiment_accepts(key: str, name: str) -> None:
    table, _, inner = key.partition(".")
    tables = {table: {inner: name} | NEEDED.get(name, {})} | OTHERS.get(name, {})
    accepted = experiment(**tables)  # also checks the keys that it declares
    assert getattr(getattr(accepted, table), inner) == name
    assert load_part(key, name) is load_part(key, FAMILIES[key][name])


@pytest.mark.parametrize("key", FAMILIES)
def test_schema_and_messages_have_the_names_of_the_table(key: str) -> None:
    table, _, inner = key.partition(".")
    schema = file_schema()["$defs"][f"{table.capitalize()}Table"]["properties"][inner]
    named = schema.get("anyOf", [schema])[0]
    assert named.get("enum", [named.get("const")]) == [*FAMILIES[key]]
    with pytest.raises(ExperimentError) as refused:
        experiment(**{table: {inner: "nonsense"}})
    assert all(repr(name) in str(refused.value) for name in FAMILIES[key])


def test_declarations_are_looked_up_without_slow_libraries() -> None:
    script = (
        "import sys\n"
        "from vefl_sim.experiment.plugins import load_part\n"
        f"for key, name in {KINDS!r}: load_part(key, name)\n"
        "slow = {'jax', 'flax', 'numba', 'scipy', 'pandas', 'pyarrow', 'simpy', 'cvxpy'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class Thrifty(Pdpc):
    """A scheme that declares all that a scheme can declare."""

    label = "Thrifty"
    unused_keys = ("vefl.sojourn_weight", "scheme.constrained")
    wall_s_per_s = 1.0
    selects = False

    @staticmethod
    def unused_when(experiment: Experiment) -> Iterator[Unused]:
        if experiment.vefl.method == "exact":
            yield "an exact plan", ("vefl.upload_margin",)

    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        if experiment.scheme.selected > 50:
            yield "scheme.selected is too large for a thrifty scheme: lower it."


class Plain:
    """A scheme that declares nothing."""


class Misspelt:
    unused_keys = ("vefl.sojourn_wait",)


class OneText:
    unused_keys = "vefl.sojourn_weight"


class Counting:
    unused_keys = 5


class Hasty:
    wall_s_per_s = "fast"


class Unsure:
    selects = "no"


class Vague:
    @staticmethod
    def unused_when(experiment: Experiment) -> Iterator[str]:
        yield "rat.method"


class Weighing(Plain):
    """Has weights of its own, which may use any key."""

    def aggregate_updates(self, updates, model):  # type: ignore[no-untyped-def]
        return model


class Telling:
    @staticmethod
    def contradictions(experiment: Experiment) -> str:
        return "I am wrong."


class Failing:
    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        raise ZeroDivisionError("oh")


def own(name: str) -> dict[str, object]:
    return {"kind": f"{__name__}:{name}"}


class TestUserDefinedSchemes:
    @pytest.mark.parametrize(
        ("scheme", "tables", "words"),
        [
            ("Thrifty", {"vefl": {"sojourn_weight": 0.2}}, ':Thrifty", which declares it as unused: remove it'),
            ("Thrifty", {"vefl": {"method": "exact", "upload_margin": 2.0}}, "no effect with an exact plan: remove it"),
            ("Thrifty", {"scheme": {"selected": 51}}, "scheme.selected is too large for a thrifty scheme: lower it."),
            ("Plain", {"scheme": {"constrained": False}}, "with a scheme of your own, which decides it itself"),
            ("Misspelt", {}, "declares unused_keys = ('vefl.sojourn_wait',): it must be a list of keys."),
            ("OneText", {}, "declares unused_keys = 'vefl.sojourn_weight': it must be a list of keys."),
            ("Counting", {}, "declares unused_keys = 5: it must be a list of keys."),
            ("Hasty", {}, "declares wall_s_per_s = 'fast': it must be a number from 0 on."),
            ("Unsure", {}, "declares selects = 'no': it must be True or False."),
            ("Vague", {}, 'Vague" declares something wrong: ValueError'),
            ("Weighing", {"aggregation": {"form": "models"}}, "has aggregate_updates and declares no unused_keys"),
            ("Telling", {}, "I am wrong."),
            ("Failing", {}, 'Failing" declares something wrong: ZeroDivisionError: oh.'),
        ],
    )
    def test_declarations_are_honoured_or_refused_in_one_sentence(self, scheme: str, tables: dict, words: str) -> None:
        with pytest.raises(ExperimentError) as refused:
            experiment(**tables | {"scheme": own(scheme) | tables.get("scheme", {})})
        [sentence] = refused.value.problems
        assert words in sentence

    def test_an_unused_key_does_not_name_a_run(self, tmp_path: Path) -> None:
        shared = '[run]\nname = "x"\nrounds = 1\n[vefl]\nsojourn_weight = 0.2\n[learning]\nkind = "none"\n'
        variants = f'[[compare]]\nlabel = "a"\nscheme.kind = "{__name__}:Thrifty"\n[[compare]]\nlabel = "b"\n'
        thrifty, pdpc = (point.experiment for point in load_sweep(written(tmp_path, shared + variants)).points)
        assert (thrifty.vefl.sojourn_weight, pdpc.vefl.sojourn_weight) == (0.5, 0.2)

    def test_its_constraints_are_not_switched_off_by_a_key_that_it_does_not_use(self) -> None:
        assert is_used(experiment(scheme=own("Thrifty")), "vefl.budget")
        assert not is_used(experiment(scheme={"constrained": False}), "vefl.budget")

    def test_cost_and_label_are_those_that_it_declares(self) -> None:
        plain = experiment(learning={"kind": "none"})
        thrifty = with_settings(plain, f"scheme.kind={__name__}:Thrifty")
        assert wall_time_s(thrifty) - wall_time_s(plain) == pytest.approx(2000 * (1 - 1 / 70))
        assert value_label("scheme.kind", thrifty.scheme.kind, {}) == "Thrifty"

    def test_a_subclass_does_not_inherit_what_its_base_does_not_use(self, tmp_path: Path) -> None:
        """FDPC does not use scheme.selected; a subclass may."""
        swept = '[run]\nname = "x"\n[scheme]\nkind = "{}"\n[sweep]\nscheme.selected = [3, 7]\n'
        fdpc = load_sweep(written(tmp_path, swept.format("fdpc"))).points
        own_points = load_sweep(written(tmp_path, swept.format(f"{__name__}:Choosy"))).points
        assert len({point.digest for point in fdpc}) == 1
        assert [point.experiment.scheme.selected for point in own_points] == [3, 7]
        assert value_label("scheme.kind", f"{__name__}:Choosy", {}) != value_label("scheme.kind", "fdpc", {})
