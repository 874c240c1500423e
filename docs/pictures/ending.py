"""Import this file first: a script of this folder that is stopped ends with a sentence, and may have a small form.

Both are those of benchmarks/script.py.
"""

import runpy
from pathlib import Path

SMALL: bool = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "script.py"))["SMALL"]
