"""How JAX compiles: into a cache that the next run finds, and for the same result on any number of cores."""

import os

import jax

from vefl_sim.cache import cache_directory, writable


def enable() -> None:
    """Turn the cache on, unless the user has chosen one for JAX already or ours cannot be written.

    XLA splits sums by the size of its thread pool, which it takes from NPROC, else from the machine: the last digits,
    and soon the accuracies, would depend on the number of cores. One thread each; whole CVs are trained in parallel.
    """
    os.environ.setdefault("NPROC", "1")
    directory = cache_directory(os.environ) / "jax"
    if _setting("jax_compilation_cache_dir") is None and writable(directory):
        _set("jax_compilation_cache_dir", str(directory))
        _set("jax_persistent_cache_min_compile_time_secs", 0.0)


def _setting(name: str) -> object:
    return getattr(jax.config, name)


def _set(name: str, value: object) -> None:
    jax.config.update(name, value)  # type: ignore[no-untyped-call]
