"""Mutation testing: change the sources in one place at a time, and list the changes that no test notices.

    python benchmarks/mutants.py --minutes 60 --seed 1 --jobs 2 vefl_sim/optimize vefl_sim/protocol

Mutants are drawn at random from all possible ones: another operator, comparison, minimum or maximum, a constant plus or
minus one, a negated condition, a deleted statement, `return None`. Each runs the quick tests of its package until one
fails. Kernels in `optimize` run as plain Python, because compiling a mutant takes longer than its tests.
A mutant whose tests use three times as much processor time as those of the unchanged sources counts as noticed (a busy
machine makes no difference). Not every survivor is a gap in the tests: some changes make no difference.
"""

import script  # noqa: F401 (how it ends)

import argparse
import ast
import copy as copies
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import Queue
from shutil import copytree, ignore_patterns
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = ("vefl_sim", "models", "tests", "experiments", "examples", "docs")
TESTS = {
    "vefl_sim/optimize/rat": "tests/optimize/rat tests/protocol/test_burst.py",
    "vefl_sim/optimize": "tests/optimize/vefl tests/schemes",
    "vefl_sim/protocol": "tests/protocol tests/simulation/test_audit.py tests/schemes/test_without_rounds.py",
}  # of the longest folder that the file is in
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "floor": "ceil", "ceil": "floor"}
PLAIN = """

_compiled_kernel = float_kernel


def float_kernel(function):
    if not function.__module__.startswith("vefl_sim.optimize"):
        return _compiled_kernel(function)
    function.inlined = function
    return function
"""  # at the end of core/kernel.py
NAMES |= {"argmin": "argmax", "argmax": "argmin", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    file: str
    line: int
    first: int  # byte offsets of the text that is replaced
    last: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.first] + self.text.encode() + source[self.last :]

    def __str__(self) -> str:
        before = (ROOT / self.file).read_bytes()[self.first : self.last].decode()
        return f"{self.file}:{self.line}: {' '.join(before.split())}  →  {self.text}"


def mutants(file: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in mutable(ast.parse(source)):
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        for text in replacements(node):
            yield Mutant(str(file.relative_to(ROOT)), node.lineno, first, last, text)


def mutable(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Statements and expressions that are run; messages, docstrings, types, imports and decorators are not changed."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, (ast.expr, ast.stmt)):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "bases"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from mutable(child)


def replacements(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Texts that may replace this node."""
    changed = copies.deepcopy(node)
    match changed:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            changed.op = OPERATORS[type(op)]()  # type: ignore[assignment]
            yield text_of(changed)
        case ast.Compare(ops=[op, *_]):
            changed.ops[0] = OPERATORS[type(op)]()
            yield text_of(changed)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield text_of(operand)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            changed.func = ast.Name(NAMES[name])
            yield text_of(changed)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in NAMES:
            changed.func = ast.Attribute(value, NAMES[name])
            yield text_of(changed)
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() | float() as value):
            yield from (f"({value + 1})", f"({value - 1})") if abs(value) < 1e9 else (f"({value / 2})",)
        case ast.Return(value=value) if value is not None:
            yield "return None"
    if isinstance(node, (ast.Expr, ast.AugAssign)) or (
        isinstance(node, ast.Assign) and not isinstance(node.targets[0], (ast.Name, ast.Tuple))
    ):
        yield "pass"


def text_of(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node))
    return text if isinstance(node, ast.stmt) else f"({text})"


class Laboratory:
    """A copy of the sources in which mutants are tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            copytree(ROOT / name, folder / name, ignore=ignore_patterns("__pycache__", "runs"))
        for name in ("pyproject.toml", "README.md"):
            (folder / name).write_bytes((ROOT / name).read_bytes())
        self.kernels = (folder / "vefl_sim" / "core" / "kernel.py").read_text()

    def survives(self, mutant: Mutant, seconds: float, broken: list[str]) -> bool:
        """Whether all tests pass with the mutant."""
        path = self.folder / mutant.file
        source = path.read_bytes()
        path.write_bytes(mutant.apply(source))
        try:
            return self.test(mutant.file, seconds, broken)[0] == 0
        finally:
            path.write_bytes(source)

    def test(self, file: str, seconds: float, broken: list[str]) -> tuple[int, list[str]]:
        """Run the tests of a file, up to the first failure unless seconds is 0; returns exit code and failed tests."""
        options = ["-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "--hypothesis-seed=0"]
        options += ["-W", "ignore::RuntimeWarning"] + ["-x"] * (seconds > 0)
        options += [word for test in broken for word in ("--deselect", test)]
        paths = os.pathsep.join([str(self.folder), str(self.folder / "models")])
        (self.folder / "vefl_sim" / "core" / "kernel.py").write_text(self.kernels + PLAIN * is_kernel(file))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *tests_of(file).split()], cwd=self.folder,
                env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True, text=True, timeout=8 * seconds or None, preexec_fn=partial(limit, round(seconds)),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 1, []
        return done.returncode, re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)


def limit(seconds: int) -> None:
    """End this process when it has used this much processor time; 0 means no limit."""
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def processor_s() -> float:
    """Processor time of the tests so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_kernel(file: str) -> bool:
    return "vefl_sim.core.kernel" in (ROOT / file).read_text()


def tests_of(file: str) -> str:
    return TESTS[max((folder for folder in TESTS if file.startswith(folder)), key=len)]


def baselines(files: set[str], laboratory: Laboratory) -> dict[str, tuple[float, list[str]]]:
    """Per file: the seconds after which a mutant counts as noticed, and the tests that fail without any change."""
    known: dict[tuple[str, bool], tuple[float, list[str]]] = {}
    for file in sorted(files):
        key = tests_of(file), is_kernel(file)
        if key not in known:
            before = processor_s()
            code, failed = laboratory.test(file, 0, [])
            if code not in (0, 1):
                sys.exit(f"{key[0]} cannot be run: {failed}")
            known[key] = 3 * (processor_s() - before) + 30, failed
            print(f"unchanged, {key[0]}: {known[key][0] / 3 - 10:.0f} s, left out: {failed or 'nothing'}", flush=True)
    return {file: known[tests_of(file), is_kernel(file)] for file in files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    files = [file for folder in options.folders for file in sorted((ROOT / folder).rglob("*.py"))]
    every = [mutant for file in files for mutant in mutants(file)]
    random.Random(options.seed).shuffle(every)
    print(f"{len(every)} mutants are possible in {len(files)} files", flush=True)
    end, idle, survivors, tested = time.monotonic() + 60 * options.minutes, Queue[Laboratory](), [], 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for number in range(options.jobs):
            idle.put(Laboratory(Path(folder) / str(number)))
        limits = baselines({mutant.file for mutant in every}, idle.queue[0])

        def survives(mutant: Mutant) -> bool | None:
            if time.monotonic() > end:
                return None
            laboratory = idle.get()
            try:
                return laboratory.survives(mutant, *limits[mutant.file])
            finally:
                idle.put(laboratory)

        for mutant, alive in zip(every, pool.map(survives, every), strict=True):
            tested += alive is not None
            if alive:
                survivors.append(mutant)
                print(mutant, flush=True)
    print(f"{len(survivors)} of {tested} mutants survived")


if __name__ == "__main__":
    main()
