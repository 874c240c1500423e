"""Record docs/pictures/replay.webp, five seconds of the replay of a rush_hour run; needs chromium and chromedriver.

python -m vefl_sim experiments/rush_hour.toml && python docs/pictures/replay.py

The page is set to one instant after the other, so a recording shows the same on a machine of any speed. Its controls
are those of a replay that plays at the speed of the recording.
"""

from ending import SMALL

import shutil
import sys
from base64 import b64decode
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from vefl_sim.analysis.report.page import write_report
from vefl_sim.analysis.runs import find_run

CV, BEGIN_MS, END_MS = 21, 20_000, 24_900  # round 5, in which CV 21 trains, uploads, and leaves coverage too early
STEP_MS, FRAME_MS, LAST_MS = 70, 140, 1_800  # simulated time per frame; how long a frame and the last frame are shown
WIDTH = 990  # of the window, in pixels: just enough for the controls in one line
FREQUENT_COLOURS, OTHER_COLOURS = 16, 48
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    f"--window-size={WIDTH},1000",
)


def main() -> None:
    """Record the replay and write the moving picture."""
    page = write_report(find_run(sys.argv[1] if len(sys.argv) > 1 else "rush-hour"))
    with TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        for option in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            frames = list(recorded(browser, page))
        finally:
            browser.quit()
    write(frames, Path(__file__).with_name("replay.webp"))


def recorded(browser: webdriver.Chrome, page: Path) -> Iterator[Image.Image]:
    """One picture of the replay for each instant."""
    browser.get(page.resolve().as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, "html.ready"))
    browser.execute_script("report.clock.choose(arguments[0]); report.clock.playing = true", CV)
    choose_speed(browser, STEP_MS / FRAME_MS)
    box = browser.find_element(By.CSS_SELECTOR, ".replay").rect
    clip = {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"], "scale": 1}
    for time_ms in [*range(BEGIN_MS, END_MS + 1, STEP_MS)][:: 16 if SMALL else 1]:
        browser.execute_async_script(
            "report.clock.set(arguments[0]); const done = arguments[1];"
            "requestAnimationFrame(() => requestAnimationFrame(done))",
            time_ms,
        )
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        yield Image.open(BytesIO(b64decode(shot["data"]))).convert("RGB")


def choose_speed(browser: webdriver.Chrome, speed: float) -> None:
    """Choose a speed of the replay, in simulated seconds per second; fails if the page does not offer it."""
    script = (  # without a click, which would scroll the page and leave a frame around the menu
        "const menu = document.getElementById('speed'); menu.value = arguments[0];"
        "menu.dispatchEvent(new Event('change')); return report.clock.speed"
    )
    if browser.execute_script(script, f"{speed:g}") != speed:
        sys.exit(f"The replay has no speed {speed:g}: choose another STEP_MS or FRAME_MS.")


def write(frames: list[Image.Image], file: Path) -> None:
    """Write the frames as an animation that repeats: few colours, but lossless, so that text stays sharp."""
    palette = palette_of(frames[:: len(frames) // 4])
    reduced = [frame.quantize(palette=palette, dither=Image.Dither.NONE).convert("RGB") for frame in frames]
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    reduced[0].save(file, save_all=True, append_images=reduced[1:], duration=durations, loop=0, lossless=True, method=4)


def palette_of(frames: list[Image.Image]) -> Image.Image:
    """The most frequent colours of some frames, so that areas keep theirs, and others spread over all that occur."""
    width, height = frames[0].size
    sheet = Image.new("RGB", (width * len(frames), height))
    for place, frame in enumerate(frames):
        sheet.paste(frame, (width * place, 0))
    frequent = sorted(sheet.getcolors(sheet.width * sheet.height), reverse=True)[:FREQUENT_COLOURS]
    palette = sheet.quantize(OTHER_COLOURS, Image.Quantize.MAXCOVERAGE)
    palette.putpalette([value for _, colour in frequent for value in colour] + palette.getpalette())
    return palette


if __name__ == "__main__":
    main()
