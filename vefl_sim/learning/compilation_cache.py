"""Settings of JAX: a compilation cache that later runs reuse, and the same results on any number of cores."""

import os

import jax

from vefl_sim.core.files import cache_directory, ensure_writable

_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def enable(threads: int) -> None:
    """Turn JAX's compilation cache on, unless the user has already chosen one or our folder cannot be written.

    XLA would split sums over its threads: the last digits, and soon the accuracies, would depend on the number of
    cores. So each XLA program runs on one thread, and XLA's pool has one thread per program that runs at the same time
    (NPROC; threads of a larger pool would busy-wait), but at least two: with one, XLA compiles sums differently, and
    programs would wait for each other. Both settings take effect at the first use of JAX in a process.
    """
    os.environ.setdefault("NPROC", str(max(2, threads)))
    if "xla_cpu_multi_thread_eigen" not in (flags := os.environ.get("XLA_FLAGS", "")):
        os.environ["XLA_FLAGS"] = f"{flags} {_ONE_THREAD}".strip()
    directory = cache_directory(os.environ) / "jax"
    if _setting("jax_compilation_cache_dir") is None and ensure_writable(directory):
        _set("jax_compilation_cache_dir", str(directory))
        _set("jax_persistent_cache_min_compile_time_secs", 0.0)


def _setting(name: str) -> object:
    return getattr(jax.config, name)


def _set(name: str, value: object) -> None:
    jax.config.update(name, value)  # type: ignore[no-untyped-call]
