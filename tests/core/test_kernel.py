"""Kernels are called from Python and from kernels, and announced when they compile; plain loops do what NumPy does."""

import os
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import numba
import numpy as np
import pytest

from vefl_sim.core.kernel import compiling, dot, float_kernel, kernel, largest, least, total
from vefl_sim.core.progress import heard_by
from vefl_sim.optimize.rat.water import by_gain


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


@pytest.mark.parametrize("size", [1, 2, 12, 100])
def test_loops_agree_with_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    one, other = rng.normal(size=(2, size)) * 10.0 ** rng.integers(-9, 9, (2, size))
    assert total(one) == [*accumulate(one.tolist(), initial=0.0)][-1]
    assert dot(one, other) == total(one * other)
    assert (least(one), largest(one)) == (one.min(), one.max())
    assert (least(one[:0]), largest(one[:0])) == (np.inf, -np.inf)


def test_equal_gains_keep_their_order() -> None:
    gain = np.random.default_rng(1).integers(0, 5, 40).astype(np.float64)
    prbs = np.arange(3, 40, 2)
    expected = prbs[np.argsort(-gain[prbs], kind="stable")]
    by_gain(gain, prbs)
    assert prbs.tolist() == expected.tolist()
