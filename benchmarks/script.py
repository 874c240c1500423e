"""What all scripts of this folder share: --help, --small, and an end with a sentence. Loads nothing of the project.

`--small` does as little as shows that all parts of a script still work; tests/test_small_scripts.py uses it. A script
that is stopped (Ctrl-C, SIGTERM), or whose input is refused, ends with a sentence instead of a traceback.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SMALL = "--small" in sys.argv or "BENCH_SMALL" in os.environ
if "--small" in sys.argv:
    sys.argv.remove("--small")
    os.environ["BENCH_SMALL"] = "1"  # for the processes that a script starts


def answer_help(text: str | None) -> None:
    """If --help was given, print the docstring of the script and end the process."""
    if {"-h", "--help"} & {*sys.argv[1:]}:
        print((text or "").strip())
        sys.exit()


_signals: list[int] = []
"""The stop signals that arrived; what they interrupt may raise another error (an import of numpy, ImportError)."""


def _stop(number: int, frame: Any) -> None:
    _signals.append(number)
    raise KeyboardInterrupt


def _again(ignored: Any) -> None:
    """Send a stop signal again whose exception Python ignored, because it fell into a callback (of an import, say)."""
    if ignored.exc_type is KeyboardInterrupt and _signals:
        os.kill(os.getpid(), _signals[-1])
    else:
        sys.__unraisablehook__(ignored)


def _tell(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an error that ends the process: stops and refused input as a sentence, all else as a traceback."""
    families = {family.__name__ for family in kind.__mro__}
    stopped = bool(_signals) or "RunInterrupted" in families
    if not stopped and "VeflError" not in families:
        sys.__excepthook__(kind, error, trace)
        return
    reason = f" {error}" if "RunInterrupted" in families else ""
    script = Path(sys.argv[0]).name
    print(f"\n{script} was stopped.{reason}" if stopped else f"error: {error}", file=sys.stderr)
    raise SystemExit(130 if stopped else 2)


def _is_main() -> bool:
    """Whether this process runs a script of ours, not a test that imports one."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    return file is not None and Path(file).resolve().parent in (ROOT / "benchmarks", ROOT / "docs" / "pictures")


if _is_main():
    sys.excepthook, sys.unraisablehook = _tell, _again
    for _number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(_number) is not signal.SIG_IGN:
            signal.signal(_number, _stop)
