"""How JAX compiles: into a cache that the next run finds, and for the same result on any number of cores."""

import os

import jax

from vefl_sim.core.files import cache_directory, writable

_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def enable(threads: int) -> None:
    """Turn the cache on, unless the user has chosen one for JAX already or ours cannot be written.

    XLA would split sums over its threads: the last digits, and soon the accuracies, would depend on the number of
    cores. So each of its programs runs on one thread, and its pool has as many as programs run side by side
    (NPROC; a larger pool would spin), but never a single one: for that XLA compiles other sums, and programs would wait
    for each other. Both count from the first use of JAX in a process on.
    """
    os.environ.setdefault("NPROC", str(max(2, threads)))
    if "xla_cpu_multi_thread_eigen" not in (flags := os.environ.get("XLA_FLAGS", "")):
        os.environ["XLA_FLAGS"] = f"{flags} {_ONE_THREAD}".strip()
    directory = cache_directory(os.environ) / "jax"
    if _setting("jax_compilation_cache_dir") is None and writable(directory):
        _set("jax_compilation_cache_dir", str(directory))
        _set("jax_persistent_cache_min_compile_time_secs", 0.0)


def _setting(name: str) -> object:
    return getattr(jax.config, name)


def _set(name: str, value: object) -> None:
    jax.config.update(name, value)  # type: ignore[no-untyped-call]
