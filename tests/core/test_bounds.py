"""Files that claim or unpack to far more than they have: refused early, in one sentence, and in bounded memory."""

import gzip
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.core.files import PARTIAL, open_unpacked, write_text
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.tables import content_digest
from vefl_sim.records.table_parts import read_rows

MEBIBYTE = 1 << 20
ZEROS = pa.table({"a": np.zeros(10_000_000)})
FOOTER = b"PAR1" + bytes(3_000_000) + struct.pack("<I", 3_000_000) + b"PAR1"
"""A Parquet file that is only a footer."""


def bomb(path: Path, start: bytes, repeated: bytes, mebibytes: int) -> Path:
    """A small gzip file; a gzip file may be many, one after the other."""
    block = gzip.compress(repeated * (MEBIBYTE // len(repeated)))
    path.write_bytes(gzip.compress(start) + block * mebibytes)
    return path


def table(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def timings(path: Path, rows: int, **columns: object) -> Path:
    """A `timings` table of a run; some columns may be other ones."""
    usual = {"round": np.zeros(rows, np.int32), "what": pa.nulls(rows, pa.string()), "wall_s": np.zeros(rows)}
    return table(path, **usual | columns)


class TestGzip:
    def test_stops_at_the_bound(self, tmp_path: Path) -> None:
        path = bomb(tmp_path / "x.gz", b"", b"x", 100)
        with open_unpacked(path, 3 * MEBIBYTE) as file:
            assert len(file.read(2 * MEBIBYTE)) == 2 * MEBIBYTE
            with pytest.raises(OSError, match=r"it unpacks to more than 3.15 MB"):
                file.read()


class TestParquet:
    @pytest.mark.parametrize(
        ("write", "sentence"),
        [
            (lambda path: pq.write_table(ZEROS, path, use_dictionary=False, compression="zstd"), r"unpacks to 80\d{6}"),
            (lambda path: path.write_bytes(FOOTER), r"cannot be read as Parquet \(its footer has 3000000 bytes, more"),
            (lambda path: table(path, **{f"a{number}": [1] for number in range(1001)}), "has 1001 columns, more than"),
        ],
    )
    def test_what_a_file_says_about_its_size(self, write, sentence: str, tmp_path: Path) -> None:
        write(tmp_path / "x.parquet")
        with pytest.raises(BadInput, match=sentence):
            ParquetFile(tmp_path / "x.parquet")

    def test_a_long_text_that_is_repeated(self, tmp_path: Path) -> None:
        path = table(tmp_path / "x.parquet", a=["x" * 5000] * 1000)
        with pytest.raises(BadInput, match=r"x.parquet has a text of 5000 bytes: shorten it to 4096."):
            next(ParquetFile(path).batches({"a": "text"}))
        path = timings(tmp_path / "timings.parquet", 1000, what=["x" * 5000] * 1000)
        with pytest.raises(RunNotFound, match="has a text of 5000 bytes"):
            read_rows([path])

    def test_texts_that_are_long_together(self, tmp_path: Path) -> None:
        path = timings(tmp_path / "timings.parquet", 50_000, what=["x" * 4000] * 50_000)
        for read in (read_rows, content_digest):
            with pytest.raises(RunNotFound, match=r"timings.parquet has texts of \d+ bytes in \d+ bytes: write it"):
                read([path])

    def test_texts_of_a_recording_are_kept_once(self, tmp_path: Path) -> None:
        path = table(tmp_path / "x.parquet", a=["x" * 4000, None, "y"] * 1000)
        texts = next(ParquetFile(path).batches({"a": "text"}))["a"]
        assert texts.tolist() == ["x" * 4000, None, "y"] * 1000
        assert len(set(map(id, texts))) == 3

    def test_a_column_that_runs_do_not_have(self, tmp_path: Path) -> None:
        repeated = pa.DictionaryArray.from_arrays(np.zeros(100, np.int32), pa.array([b"x" * 30_000_000]))
        path = timings(tmp_path / "timings.parquet", 100, other=repeated)
        assert [*read_rows([path])] == ["round", "what", "wall_s"]
        with pytest.raises(RunNotFound, match=r"timings.parquet: column other holds .*binary.*, not numbers or text"):
            content_digest([path])

    def test_many_rows_in_few_bytes(self, tmp_path: Path) -> None:
        path = timings(tmp_path / "timings.parquet", 1_000_000)
        with pytest.raises(RunNotFound, match=r"gs.parquet has 1000000 rows of 3 columns in \d+ bytes: write it"):
            read_rows([path])
        timings(path, 1_000_000, wall_s=np.random.default_rng(1).random(1_000_000))
        assert len(read_rows([path])) == 1_000_000


NET = "from vefl_sim.mobility.sumo.inputs import net_of\nnet_of({path!r}, Path('.'))"
FCD = """from vefl_sim.core.rng import Streams
from vefl_sim.mobility.recorded.playback import recorded_scenes
from vefl_sim.mobility.recorded.recording import VehicleNumbers
list(recorded_scenes(Path({path!r}), VehicleNumbers(Streams(1), 1.0)))"""
LANE = b'<lane id="b" index="0" speed="9" length="9" shape="0,0 9,0"/>'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start", "repeated", "code"),
    [
        ("comment.net.xml.gz", b"<net><!--", b"x", NET),
        ("attribute.net.xml.gz", b'<net a="', b"x", NET),
        ("deep.net.xml.gz", b"<net>", b"<a>", NET),
        ("elements.net.xml.gz", b"<net>", b"<a/>", NET),
        ("streets.net.xml.gz", b"<net>", b'<edge id="a">' + LANE + b"</edge>", NET),
        ("attribute.xml.gz", b'<fcd-export><timestep time="0"><vehicle id="', b"x", FCD),
        ("step.xml.gz", b'<fcd-export><timestep time="0">', b'<vehicle id="a" x="1" y="1" speed="1"/>', FCD),
    ],
)
def test_the_memory_of_a_refused_file(tmp_path: Path, name: str, start: bytes, repeated: bytes, code: str) -> None:
    """1.5 GiB in a few MB need less than 1 GiB."""
    path = bomb(tmp_path / name, start, repeated, 1536)
    sentence, memory = measured(code, path)
    assert path.name in sentence
    assert memory < MEBIBYTE


def measured(code: str, path: Path) -> tuple[str, int]:
    """What code, which may raise BadInput, says about a file, and its peak memory in KiB in a process of its own."""
    lines = [f"    {line}" for line in code.format(path=str(path)).splitlines()]
    program = ["from pathlib import Path", "from vefl_sim.core.errors import BadInput", "try:", *lines,
               "except BadInput as error:", "    print(error)", "print(open('/proc/self/status').read())"]  # fmt: skip
    ended = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, check=True)
    peak = re.search(r"VmHWM:\s+(\d+) kB", ended.stdout)
    assert peak
    return ended.stdout.splitlines()[0], int(peak[1])


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_nothing_is_written_through_what_has_the_name_of_a_temporary_file(link, tmp_path: Path) -> None:
    victim, file = tmp_path / "victim", tmp_path / "file"
    victim.write_text("mine")
    link(tmp_path / f"file{PARTIAL}", victim)
    write_text(file, "new")
    assert (victim.read_text(), file.read_text()) == ("mine", "new")
