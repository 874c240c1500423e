"""The moving picture of the README says at which speed it shows the run."""

import ast
import re
from typing import Any

from PIL import Image

from tests.command_line import ROOT
from vefl_sim.analysis.report.document import asset

PICTURES = ROOT / "docs" / "pictures"


def constants() -> dict[str, Any]:
    """The numbers at the beginning of replay.py, which needs a browser to be imported."""
    found: dict[str, Any] = {}
    for statement in ast.parse((PICTURES / "replay.py").read_text()).body:
        if isinstance(statement, ast.Assign) and isinstance(names := statement.targets[0], ast.Tuple):
            found |= zip([ast.unparse(name) for name in names.elts], ast.literal_eval(statement.value), strict=True)
    return found


def test_the_replay_is_shown_at_a_speed_that_its_menu_offers() -> None:
    own = constants()
    assert own["STEP_MS"] / own["FRAME_MS"] == 0.5  # "at half speed" in the README
    assert "at half speed" in (ROOT / "README.md").read_text().split("replay.webp")[0].splitlines()[-1]
    assert '<option value="0.5">½ ×</option>' in re.sub(r"\s+<", "<", asset("replay.html"))


def test_the_picture_is_the_one_that_the_script_records() -> None:
    own, file = constants(), PICTURES / "replay.webp"
    assert file.stat().st_size < 800_000
    with Image.open(file) as picture:
        frames = picture.n_frames
        durations = set[int]()
        for frame in range(frames - 1):
            picture.seek(frame)
            picture.load()
            durations.add(picture.info["duration"])
    assert frames == len(range(own["BEGIN_MS"], own["END_MS"] + 1, own["STEP_MS"]))
    assert durations == {own["FRAME_MS"]}
