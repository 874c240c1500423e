"""Kernels are called from Python and from kernels; their compilation is announced where it happens."""

import os
import subprocess
import sys
from pathlib import Path

import numba

from vefl_sim.core.kernel import compiling, float_kernel, kernel
from vefl_sim.core.progress import heard_by


@float_kernel
def half(x):
    """One half."""
    return 1 / (2 * x)


@float_kernel
def quarter(x):
    return half(x) / 2


_half = half.inlined


@kernel
def eighth(x):
    return _half(x) / 4


def test_a_kernel_is_called_from_python_and_by_kernels() -> None:
    assert (quarter(2.0), eighth(2.0), half(2.0), half(0.0)) == (0.125, 0.0625, 0.25, float("inf"))
    assert (half.__name__, half.__doc__) == ("half", "One half.")


def test_only_what_python_calls_gets_an_entry_point() -> None:
    inner = float_kernel(lambda x: x + 1)
    outer = float_kernel(lambda x: inner(x))
    assert outer(1.0) == 2.0
    assert inner._called_by_kernels.signatures
    assert not inner._called_by_python.signatures
    assert not outer._called_by_kernels.signatures


def test_both_versions_have_files_of_their_own_in_the_cache() -> None:
    """A version without an entry point, loaded from the cache and called from Python, would crash the process."""
    names = {version._cache._cache_file._index_name for version in (half._called_by_kernels, half._called_by_python)}
    assert len(names) == 2


def test_the_compilation_of_our_kernels_is_announced() -> None:
    def compiled_as(module: str):
        function = lambda x: 2 * x  # noqa: E731
        function.__module__ = module
        return numba.njit(function)

    heard = []
    with heard_by(lambda *words: heard.append(words)):
        for double in (compiled_as("vefl_sim.kernels"), compiled_as("my_parts")):
            assert [double(21), double(4)] == [42, 8]
    assert heard == [(compiling(), "")]


def test_one_process_compiles_and_the_others_wait(tmp_path: Path) -> None:
    """Both need the same kernel on an empty cache at the same time; the second one loads what the first has saved."""
    code = "from vefl_sim.core.kernel import dot; dot(*2 * [__import__('numpy').ones(3)]); print(len("
    code += "dot._called_by_python.stats.cache_hits))"
    environment = os.environ | {"VEFL_SIM_CACHE": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    assert sorted(process.communicate()[0] for process in both) == [b"0\n", b"1\n"]
