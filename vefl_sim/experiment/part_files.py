"""The files of user-defined parts: found and digested without importing them, and never taken from a run directory."""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.experiment.foreign_code import RUN_FILES, run_directory_above

_folder = ContextVar[str | None]("_folder", default=None)
"""Folder in which parts are searched instead of the current directory."""
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_WITHOUT_EFFECT = ("ctx", "kind", "type_comment", "type_ignores")  # fields of a syntax tree that others determine


class ModuleFile(NamedTuple):
    """Where a module or package is: its file (None for a folder without __init__.py), and the folders of a package."""

    name: str
    file: str | None
    folders: Sequence[str] | None  # None: not a package
    loaded: bool = False  # whether this process has imported it before


@contextmanager
def parts_in(folder: str | Path | None) -> Iterator[None]:
    """Search parts in this folder first, and not in the current directory, while the block runs; None: as always."""
    if folder is None:
        yield
        return
    if not Path(folder).is_dir():
        raise BadInput(f"{folder} is not a folder: name the one that holds the modules of your parts.")
    before, chosen, current = sys.path[:], str(Path(folder).resolve()), Path.cwd().resolve()
    token = _folder.set(chosen)
    sys.path[:] = [chosen, *(entry for entry in before if Path(entry).resolve() != current)]
    try:
        yield
    finally:
        sys.path[:] = before
        _folder.reset(token)


def load_module(key: str, part: str) -> ModuleType:
    """Import the module of the part that `key` names, unless it or a package above it is in a run directory."""
    name = part.partition(":")[0]
    if name.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        raise ExperimentError(f'{key} = "{part}" is in Python itself, which has no parts: name a module of yours.')
    if (loaded := sys.modules.get(name)) is not None:
        return loaded
    try:
        with suppress(ModuleNotFoundError):  # the import itself says what is missing
            _trusted(key, part)
        return import_module(name)
    except ExperimentError:
        raise
    except Exception as error:
        raise _not_imported(key, part, error) from error


def part_sources(key: str, part: str) -> dict[str, bytes]:
    """The files of the part that `key` names, with their contents: its module and what it imports; nothing is executed.

    Installed packages that it imports are left out, and vefl_sim, whose sources are digested as a whole.
    """
    sources: dict[str, bytes] = {}
    try:
        for module in _trusted(key, part):
            _collect(module, sources)
        return sources
    except (ModuleNotFoundError, OSError) as error:
        raise _not_imported(key, part, error) from error


def part_digest(key: str, part: str) -> str:
    """Digest of what the sources of a part compute, so that an edited part leads to a new run."""
    sources = part_sources(key, part)
    if not sources:  # it has no file: it is built into Python, or was defined at a prompt
        module, _, attribute = part.partition(":")
        sources[part] = repr(getattr(sys.modules.get(module), attribute, None)).encode()
    return hashlib.sha256(b"\0".join(what_is_computed(sources[file]) for file in sorted(sources))).hexdigest()[:16]


@lru_cache(maxsize=1000)
def what_is_computed(source: bytes) -> bytes:
    """The syntax tree of a Python source as text: no comments, no layout, no strings that are statements (docstrings).

    It is the same under Python 3.11 to 3.13, because empty fields, which later versions have more of, are left out. A
    source that cannot be parsed, for example a compiled module, is returned as it is.
    """
    try:
        return _tree_text(ast.parse(source)).encode()
    except _UNPARSABLE:
        return source


def _tree_text(node: Any) -> str:
    if isinstance(node, ast.AST):
        fields = ((name, _tree_text(getattr(node, name, None))) for name in node._fields if name not in _WITHOUT_EFFECT)
        return f"{type(node).__name__}({', '.join([f'{name}={text}' for name, text in fields if text])})"
    if isinstance(node, list):
        texts = [_tree_text(value) for value in node if not _is_docstring(value)]
        return f"[{', '.join(texts)}]" if texts else ""
    return "" if node is None else ascii(node)


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _trusted(key: str, part: str) -> list[ModuleFile]:
    """Find the module of a part and the packages above it; refused in a run directory, which may be a stranger's.

    The current directory is put on the path, where the script of an installed command does not have it, unless it is in
    a run: libraries would find modules there that they import if they exist.
    """
    current = str(Path.cwd())
    if _folder.get() is None and not {"", current} & {*sys.path} and not run_directory_above(current):
        sys.path.append(current)
    found = _find(part.partition(":")[0])
    for module in found:
        for place in (module.file, *(module.folders or ())):
            if module.loaded or place is None or _is_installed(place) or (run := run_directory_above(place)) is None:
                continue
            raise ExperimentError(
                f'{key} = "{part}": {place} is in {run}, a run directory (it holds {" or ".join(RUN_FILES)}), and no '
                "code is loaded from a run: read it, and if you trust it, move it to a folder of your own."
            )
    return found


def _not_imported(key: str, part: str, error: Exception) -> ExperimentError:
    name = part.partition(":")[0]
    if isinstance(error, ModuleNotFoundError) and name.split(".")[0] == (error.name or "").split(".")[0]:
        return ExperimentError(
            f'{key} = "{part}": there is no module {error.name!r}; is its folder on PYTHONPATH, or named by --parts?'
        )
    return ExperimentError(f'{key} = "{part}": importing {name!r} fails: {type(error).__name__}: {error}')


def _find(name: str) -> list[ModuleFile]:
    """Find a module and the packages above it, the outermost first, without importing any of them."""
    found: list[ModuleFile] = []
    words = name.split(".")
    for number, word in enumerate(words, 1):
        one = ".".join(words[:number])
        if (module := sys.modules.get(one)) is not None:
            file, folders = getattr(module, "__file__", None), getattr(module, "__path__", None)
        elif spec := _spec(word, found[-1] if found else None):
            file, folders = spec.origin if spec.has_location else None, spec.submodule_search_locations
        else:
            raise ModuleNotFoundError(f"No module named {one!r}", name=one)
        found.append(ModuleFile(one, file, None if folders is None else [*folders], module is not None))
    return found


def _spec(word: str, package: ModuleFile | None) -> ModuleSpec | None:
    """Find a module in the folders of its package or, if it is in none, wherever Python would look."""
    if package is not None:
        return PathFinder.find_spec(word, package.folders or ())
    specs = (finder.find_spec(word, None) for finder in sys.meta_path)
    return next((spec for spec in specs if spec), None)


def _collect(module: ModuleFile, sources: dict[str, bytes]) -> None:
    """Add the source of a module and, unless it is installed, of the user's modules that it imports."""
    if module.file is None or module.file in sources or not Path(module.file).is_file():
        return
    sources[module.file] = content = Path(module.file).read_bytes()
    if not module.file.endswith(".py") or _is_installed(module.file):
        return
    package = module.name if module.folders is not None else module.name.rpartition(".")[0]
    for name in _imported_names(content, package):
        try:
            found = _find(name)
        except ModuleNotFoundError:  # a function of a module, or a library that is optional
            continue
        for other in found:
            if other.file and other.file.endswith(".py") and not _is_installed(other.file):
                _collect(other, sources)


@lru_cache(maxsize=1000)
def _imported_names(source: bytes, package: str) -> tuple[str, ...]:
    """The modules that a source imports anywhere in it; of `from a import b` both `a` and `a.b`, which may be one."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except _UNPARSABLE:
        return ()  # importing it fails, too, and reports why
    names: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: max(0, len(package.split(".")) + 1 - node.level)] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= dict.fromkeys([base, *(f"{base}.{alias.name}" for alias in node.names)])
    return tuple(name for name in names if name and not name.startswith("."))


@cache
def _libraries() -> tuple[str, ...]:
    """The folders of installed packages, of the standard library and of vefl_sim."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*(sysconfig.get_path(kind) for kind in kinds), str(Path(__file__).parents[1]))


@cache
def _is_installed(file: str) -> bool:
    """Whether a file is in one of these folders; cached, because a sweep asks for the same files at every point."""
    return any(Path(file).is_relative_to(folder) for folder in _libraries())
