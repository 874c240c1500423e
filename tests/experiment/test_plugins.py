import re
import sys
from pathlib import Path

import pytest

from vefl_sim import from_tables, with_settings
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment import part_files
from vefl_sim.experiment.part_files import part_digest, what_is_computed
from vefl_sim.experiment.plugins import load_part, make_part, part_digests
from vefl_sim.simulation.scenario import build_scenario


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_the_digest_covers_a_helper_module(folder: Path) -> None:
    """A name that is imported from it is not searched as a module, although there is a folder of this name."""
    (folder / "K").mkdir()
    (folder / "part_a.py").write_text("from part_helper import K\n\ndef mine(b, n):\n    return b[:K]\n")
    digests = []
    for source in ("K = -1\n", "K = -1\n", "K = +10\n"):
        (folder / "part_helper.py").write_text(source)
        experiment = from_tables({"run": {"name": "x"}, "mac": {"scheduler": "part_a:mine"}})
        digests.append(part_digests(experiment)["part_a:mine"])
    assert digests[0] == digests[1] != digests[2]


SOURCE = b"""def mine(backlog, n, *, k=None):
    return backlog[: n - 1]
"""


@pytest.mark.parametrize(
    "edited",
    [
        b"# about it\n" + SOURCE,
        b'"""About it."""\n' + SOURCE,
        SOURCE.replace(b":\n", b':\n    """About it."""\n', 1),
        SOURCE.replace(b"return backlog[: n - 1]", b"return (\n        backlog[: (n - 1)]  # the rest\n    )"),
        SOURCE + b'LIMIT: int\n"""About it."""\n',
    ],
)
def test_a_comment_or_a_docstring_changes_nothing_that_is_computed(edited: bytes) -> None:
    same = what_is_computed(SOURCE + b"LIMIT: int\n") if b"LIMIT" in edited else what_is_computed(SOURCE)
    assert what_is_computed(edited) == same


@pytest.mark.parametrize(
    ("word", "other"),
    [(b"- 1", b"+ 1"), (b"1]", b"1.0]"), (b"k=None", b"k"), (b"mine", b"yours"), (b"return ", b""), (b"n - 1", b"n")],
)
def test_any_other_edit_changes_what_is_computed(word: bytes, other: bytes) -> None:
    assert what_is_computed(SOURCE.replace(word, other)) != what_is_computed(SOURCE)


def test_the_text_of_a_source_does_not_depend_on_the_version_of_python() -> None:
    """Without the fields that only some versions have, such as `type_params`, and in ASCII."""
    source = 'def f(*, ä: int = 1, b) -> None:\n    """Doc."""\n    return f"{ä!r:>3}" or u"é"\n'
    wanted = r"""
    Module(body=[FunctionDef(name='f',
     args=arguments(kwonlyargs=[arg(arg='\xe4', annotation=Name(id='int')), arg(arg='b')],
     kw_defaults=[Constant(value=1), ]),
     body=[Return(value=BoolOp(op=Or(), values=[JoinedStr(values=[FormattedValue(value=Name(id='\xe4'), conversion=114,
     format_spec=JoinedStr(values=[Constant(value='>3')]))]), Constant(value='\xe9')]))], returns=Constant())])
    """
    assert what_is_computed(source.encode()).split() == wanted.encode().split()


def test_a_source_that_cannot_be_parsed_is_digested_as_it_is() -> None:
    assert what_is_computed(b"def") == b"def"
    assert what_is_computed(b"\0compiled") == b"\0compiled"


@pytest.mark.parametrize("edited", ["__init__.py", "helper.py", "inner/__init__.py", "inner/part.py"])
def test_the_digest_covers_the_packages_above_a_part_and_relative_imports(edited: str, folder: Path) -> None:
    (folder / "part_e" / "inner").mkdir(parents=True)
    for file in ("__init__.py", "helper.py", "inner/__init__.py"):
        (folder / "part_e" / file).write_text("")
    source = "def mine(b, n):\n    from ..helper import order\n    return order(b)\n"
    (folder / "part_e" / "inner" / "part.py").write_text(source)
    before = part_digest("mac.scheduler", "part_e.inner.part:mine")
    with (folder / "part_e" / edited).open("a") as file:
        file.write("K = 1\n")
    assert part_digest("mac.scheduler", "part_e.inner.part:mine") != before


def test_the_digest_is_of_the_source_and_executes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the part is installed: the address of a function, which differs from process to process, is no digest."""
    (folder / "part_f.py").write_text("raise SystemExit\n")
    before = part_digest("mac.scheduler", "part_f:mine")
    monkeypatch.setattr(part_files, "_libraries", lambda: (str(folder),))
    assert part_digest("mac.scheduler", "part_f:mine") == before
    assert "part_f" not in sys.modules
    (folder / "part_f.py").write_text("raise SystemExit(1)\n")
    assert part_digest("mac.scheduler", "part_f:mine") != before


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("part_c:Scheme", r"importing 'part_c' fails.*no_such_library"),
        ("numpy:pi", "not a class or a function"),
        ("os:_exit", r'"os:_exit" is in Python itself, which has no parts'),
    ],
)
def test_what_is_no_part_is_refused(part: str, words: str, folder: Path) -> None:
    (folder / "part_c.py").write_text("import no_such_library\n")
    with pytest.raises(ExperimentError, match=words):
        load_part("scheme.kind", part)


class NoScheme:
    """Neither a scheme nor a channel nor traffic."""

    def __init__(self, *_: object) -> None:
        pass

    def plan(self, observation):
        return None


class NoAsynchronousScheme(NoScheme):
    buffer = 3


def greedy(backlog):
    return backlog.cv


def two_problems(problem, other):
    return None


@pytest.mark.parametrize(
    ("setting", "missing"),
    [
        ("scheme.kind={}:NoScheme", "scheme.kind: NoScheme has no method aggregate(observation, plan, delivered) of"),
        ("scheme.kind={}:NoAsynchronousScheme", "NoAsynchronousScheme has no method weights(received) of"),
        ("radio.channel={}:NoScheme", "radio.channel: NoScheme has no method move(scene) of vefl_sim.Channel"),
        ("mobility.kind={}:NoScheme", "mobility.kind: NoScheme has no method scene() of vefl_sim.Mobility"),
        ("mac.scheduler={}:greedy", 'greedy" takes the arguments (backlog): it must take (backlog, limit).'),
        ("rat.method={}:two_problems", 'two_problems" takes the arguments (problem, other): it must take (problem).'),
    ],
)
def test_every_kind_of_part_is_checked_before_the_run(setting: str, missing: str) -> None:
    small = {"data": {"kind": "tests.scripted:sixty_samples"}, "model": {"factory": "vefl_models.logistic:logistic"}}
    with pytest.raises(ExperimentError, match=re.escape(missing)):
        build_scenario(with_settings(from_tables({"run": {"name": "x"}} | small), setting.format(__name__)))


def leaves(*_: object) -> None:
    raise SystemExit(16)


def test_a_part_does_not_end_the_program() -> None:
    with pytest.raises(ExperimentError, match=r':leaves" could not be created: SystemExit: 16'):
        make_part("model.factory", f"{__name__}:leaves", 10)
