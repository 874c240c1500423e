"""The files of user-defined parts: found and digested without importing them, and never taken from a run directory."""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.experiment.foreign_code import RUN_FILES, run_directory_above

_folder = ContextVar[str | None]("_folder", default=None)
"""Folder in which parts are searched instead of the current directory."""


@dataclass(frozen=True)
class ModuleFile:
    """Where a module or package is: its file (None for a folder without __init__.py), and the folders of a package."""

    name: str
    file: str | None
    folders: tuple[str, ...] | None  # None: not a package
    loaded: bool = False  # whether this process has imported it before

    @classmethod
    def of_spec(cls, name: str, spec: ModuleSpec) -> "ModuleFile":
        """The place of a module that has been found but not imported."""
        folders = spec.submodule_search_locations
        return cls(name, spec.origin if spec.has_location else None, None if folders is None else tuple(folders))

    @classmethod
    def of_loaded(cls, name: str, module: ModuleType) -> "ModuleFile":
        """The place of a module that has been imported."""
        folders = getattr(module, "__path__", None)
        return cls(name, getattr(module, "__file__", None), None if folders is None else tuple(folders), True)


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
    """Import the module of the part that `key` names, after a look at where it and the packages above it are.

    Packages are imported one by one, because one of them may change where Python finds the next.
    """
    name = part.partition(":")[0]
    if name.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        raise ExperimentError(f'{key} = "{part}" is in Python itself, which has no parts: name a module of yours.')
    if (loaded := sys.modules.get(name)) is not None:
        return loaded
    _search_current_directory()
    try:
        with suppress(ModuleNotFoundError):
            _require_outside_runs(key, part, *_find(name))
        for one in _with_packages(name):
            if one not in sys.modules and (spec := find_spec(one)):
                _require_outside_runs(key, part, ModuleFile.of_spec(one, spec))
            module = import_module(one)
    except ExperimentError:
        raise
    except Exception as error:
        raise _not_imported(key, part, error) from error
    return module


def part_sources(key: str, part: str) -> dict[str, bytes]:
    """The files of the part that `key` names, with their contents: its module and what it imports; nothing is executed.

    Installed packages that it imports are left out, and vefl_sim, whose sources are digested as a whole.
    """
    _search_current_directory()
    sources: dict[str, bytes] = {}
    try:
        found = _find(part.partition(":")[0])
        _require_outside_runs(key, part, *found)
        for module in found:
            _collect(module, sources)
        return sources
    except (ModuleNotFoundError, OSError) as error:
        raise _not_imported(key, part, error) from error


def part_digest(key: str, part: str) -> str:
    """Digest of the sources of a part, so that an edited part leads to a new run."""
    sources = part_sources(key, part)
    if not sources:  # it has no file: it is built into Python, or was defined at a prompt
        module, _, attribute = part.partition(":")
        sources[part] = repr(getattr(sys.modules.get(module), attribute, None)).encode()
    return hashlib.sha256(b"\0".join(sources[file] for file in sorted(sources))).hexdigest()[:16]


def _search_current_directory() -> None:
    """Put the current directory on the path, where the script of an installed command does not have it."""
    if _folder.get() is not None or "" in sys.path or (current := str(Path.cwd())) in sys.path:
        return
    if not run_directory_above(current):  # else libraries would find modules there that they import if they exist
        sys.path.append(current)


def _with_packages(name: str) -> Iterator[str]:
    """Yield the names of the packages above a module, the outermost first, then that of the module."""
    words = name.split(".")
    return (".".join(words[: number + 1]) for number in range(len(words)))


def _require_outside_runs(key: str, part: str, *modules: ModuleFile) -> None:
    """Refuse modules in a run directory, which may come from a stranger."""
    places = [place for module in modules if not module.loaded for place in (module.file, *(module.folders or ()))]
    for place in places:
        if place is None or _is_installed(place) or (run := run_directory_above(place)) is None:
            continue
        raise ExperimentError(
            f'{key} = "{part}": {place} is in {run}, a run directory (it holds {" or ".join(RUN_FILES)}), and no code '
            "is loaded from a run: read it, and if you trust it, move it to a folder of your own."
        )


def _not_imported(key: str, part: str, error: Exception) -> ExperimentError:
    name = part.partition(":")[0]
    if isinstance(error, ModuleNotFoundError) and name.split(".")[0] == (error.name or "").split(".")[0]:
        return ExperimentError(
            f'{key} = "{part}": there is no module {error.name!r}; is its folder on PYTHONPATH, or named by --parts?'
        )
    return ExperimentError(f'{key} = "{part}": importing {name!r} fails: {type(error).__name__}: {error}')


def _find(name: str) -> list[ModuleFile]:
    """Find a module and the packages above it without importing any of them."""
    found: list[ModuleFile] = []
    for one in _with_packages(name):
        place = _find_one(one, found[-1] if found else None)
        if place is None:
            raise ModuleNotFoundError(f"No module named {one!r}", name=one)
        found.append(place)
    return found


def _find_one(name: str, package: ModuleFile | None) -> ModuleFile | None:
    """Find a module in the folders of its package or, if it is in none, wherever Python would look."""
    if (module := sys.modules.get(name)) is not None:
        return ModuleFile.of_loaded(name, module)
    if package is None:
        specs = (finder.find_spec(name, None) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec), None)
    else:  # the last word alone, because Python asks for the loaded package of a longer name
        spec = PathFinder.find_spec(name.rpartition(".")[2], list(package.folders or ()))
    return ModuleFile.of_spec(name, spec) if spec else None


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
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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
