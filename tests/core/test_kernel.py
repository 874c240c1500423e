"""Compilation is announced where it happens; kernels without a Python entry point are called by other kernels only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest

from vefl_sim.core.kernel import COMPILING
from vefl_sim.core.progress import heard_by

ROOT = Path(__file__).parents[2]
INNER = {"inner_kernel", "inner_float_kernel"}
COMPILED = {*INNER, "kernel", "float_kernel", "c_callback", "intrinsic", "numba.njit"}


def decorators(function: ast.FunctionDef, names: dict[str, str]) -> set[str]:
    """The decorators of a function by the names that they have where they are defined."""
    used = (ast.unparse(decorator).split("(")[0] for decorator in function.decorator_list)
    return {names.get(name, name) for name in used}


def imports(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(module, name there, name here) of all names that are imported from modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name, alias.asname or alias.name) for alias in node.names)


def names_in(tree: ast.Module) -> dict[str, str]:
    return {here: there for _, there, here in imports(tree)}


def inner_kernels(tree: ast.Module) -> set[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {function.name for function in functions if decorators(function, names_in(tree)) & INNER}


def python_calls(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """Names of the functions that are called outside of compiled functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and decorators(child, names) & COMPILED:
            continue
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name):
            yield child.func.id
        yield from python_calls(child, names)


def test_only_kernels_call_a_kernel_without_a_python_entry_point() -> None:
    """A call from Python would crash the process."""
    trees = {
        path: ast.parse(path.read_text()) for folder in ("vefl_sim", "tests") for path in (ROOT / folder).rglob("*.py")
    }
    inner = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): inner_kernels(tree) for path, tree in trees.items()
    }
    assert "behind" in inner["vefl_sim.optimize.rat.water"]
    for path, tree in trees.items():
        known = inner_kernels(tree) | {here for module, there, here in imports(tree) if there in inner.get(module, ())}
        assert not known & set(python_calls(tree, names_in(tree))), path


@pytest.mark.parametrize(("module", "announced"), [("vefl_sim.kernels", True), ("my_parts", False)])
def test_the_compilation_of_our_kernels_is_announced(module: str, announced: bool) -> None:
    def double(x):
        return 2 * x

    double.__module__ = module
    double, heard = numba.njit(double), []
    with heard_by(lambda *words: heard.append(words)):
        assert double(21) == 42
        assert double(4) == 8  # already compiled
    assert heard == [(COMPILING, "")] * announced
