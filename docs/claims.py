"""Write what became of the paper's statements into docs/reproduction.md and README.md, from the stored results.

python docs/claims.py        # after new results; the same as experiments/paper/run.py --claims prints
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
START, END = "<!-- written by docs/claims.py -->", "<!-- end of what docs/claims.py writes -->"


def between_marks(text: str, new: str) -> str:
    """The text with new content between the two marks."""
    before, _, rest = text.partition(START)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{START} and {END} must both be in the page")
    return f"{before}{START}\n{new}\n{END}{after}"


def main() -> None:
    """Write the table into the page of the reproduction, and its summary into the README."""
    command = [sys.executable, str(ROOT / "experiments" / "paper" / "run.py"), "--claims"]
    summary, _, table = subprocess.run(command, check=True, text=True, capture_output=True).stdout.partition("\n\n")
    for page, content in (("docs/reproduction.md", f"{summary}\n\n{table.strip()}"), ("README.md", summary)):
        path = ROOT / page
        path.write_text(between_marks(path.read_text(), content))


if __name__ == "__main__":
    main()
