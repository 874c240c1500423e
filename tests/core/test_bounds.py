"""Files that claim or unpack to far more than they have: refused early, in one sentence, and in bounded memory."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vefl_sim.core import parquet
from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.core.files import open_unpacked
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.parquet_pages import chunks, largest_page
from vefl_sim.core.tables import content_digest
from vefl_sim.records.run_directory import read_rows

MEBIBYTE = 1 << 20


def bomb(path: Path, start: bytes, repeated: bytes, mebibytes: int) -> Path:
    """A small gzip file; a gzip file may be many, one after the other."""
    block = gzip.compress(repeated * (MEBIBYTE // len(repeated)))
    path.write_bytes(gzip.compress(start) + block * mebibytes)
    return path


def table(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


class TestGzip:
    def test_stops_at_the_bound(self, tmp_path: Path) -> None:
        path = bomb(tmp_path / "x.gz", b"", b"x", 100)
        with open_unpacked(path, 3 * MEBIBYTE) as file:
            assert len(file.read(2 * MEBIBYTE)) == 2 * MEBIBYTE
            with pytest.raises(OSError, match=r"it unpacks to more than 3.15 MB"):
                file.read()


class TestParquet:
    def test_the_largest_page(self, tmp_path: Path) -> None:
        path = table(tmp_path / "x.parquet", a=np.zeros(1000), b=["x" * 5000] * 1000)
        metadata = pq.ParquetFile(path).metadata
        with path.open("rb") as file:
            found = [*chunks(file)]
            sizes = [largest_page(file, chunk) for chunk in found]
        columns = [metadata.row_group(0).column(number) for number in range(2)]
        assert [chunk.column for chunk in found] == [column.path_in_schema for column in columns] == ["a", "b"]
        assert [chunk.size for chunk in found] == [column.total_compressed_size for column in columns]
        assert [chunk.start for chunk in found] == [column.dictionary_page_offset for column in columns]
        assert 8 <= sizes[0] < 100  # a dictionary of one number
        assert sizes[1] == 5004  # a dictionary of one text with its length

    def test_a_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = table(tmp_path / "x.parquet", a=np.random.default_rng(1).random(1000))
        assert len(next(ParquetFile(path).batches({"a": "number"}))["a"]) == 1000
        monkeypatch.setattr(parquet, "MAX_PAGE_BYTES", 1000)
        with pytest.raises(BadInput, match=r"x.parquet has a page of \d{4} bytes: write it with at most 1000"):
            next(ParquetFile(path).batches({"a": "number"}))

    def test_a_long_text_that_is_repeated(self, tmp_path: Path) -> None:
        path = table(tmp_path / "x.parquet", a=["x" * 5000] * 1000)
        with pytest.raises(BadInput, match=r"x.parquet has a text of 5000 bytes: shorten it to 4096."):
            next(ParquetFile(path).batches({"a": "text"}))
        with pytest.raises(RunNotFound, match="has a text of 5000 bytes"):
            read_rows([path])

    def test_many_rows_in_few_bytes(self, tmp_path: Path) -> None:
        path = table(tmp_path / "x.parquet", a=np.zeros(2_000_000))
        with pytest.raises(RunNotFound, match=r"x.parquet has 2000000 rows of 1 columns in \d+ bytes: write it again."):
            read_rows([path])
        with pytest.raises(RunNotFound, match="has 2000000 rows"):
            content_digest([path])
        assert len(read_rows([table(path, a=np.random.default_rng(1).random(2_000_000))])) == 2_000_000

    def test_many_columns(self, tmp_path: Path) -> None:
        path = table(tmp_path / "x.parquet", **{f"a{number}": [1] for number in range(1001)})
        with pytest.raises(BadInput, match=r"x.parquet has 1001 columns, more than 1000: drop some."):
            ParquetFile(path)


NET = "from vefl_sim.mobility.sumo.inputs import net_of\nnet_of({path!r}, Path('.'))"
FCD = """from vefl_sim.core.rng import Streams
from vefl_sim.mobility.recorded.recording import frames
from vefl_sim.mobility.recorded.register import VehicleNumbers
list(frames(Path({path!r}), VehicleNumbers(Streams(1), 1.0)))"""
LANE = b'<lane id="b" index="0" speed="9" length="9" shape="0,0 9,0"/>'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start", "repeated", "code"),
    [
        ("comment.net.xml.gz", b"<net><!--", b"x", NET),
        ("attribute.net.xml.gz", b'<net a="', b"x", NET),
        ("deep.net.xml.gz", b"<net>", b"<a>", NET),
        ("elements.net.xml.gz", b"<net>", b"<a/>", NET),
        ("lanes.net.xml.gz", b'<net><edge id="a">', LANE, NET),
        ("streets.net.xml.gz", b"<net>", b'<edge id="a">' + LANE + b"</edge>", NET),
        ("attribute.xml.gz", b'<fcd-export><timestep time="0"><vehicle id="', b"x", FCD),
        ("step.xml.gz", b'<fcd-export><timestep time="0">', b'<vehicle id="a" x="1" y="1" speed="1"/>', FCD),
    ],
)
def test_the_memory_of_a_refused_file(tmp_path: Path, name: str, start: bytes, repeated: bytes, code: str) -> None:
    """Measured in a process of its own: 3 GiB in a few MB need less than 1 GiB."""
    path = bomb(tmp_path / name, start, repeated, 3 * 1024)
    lines = [f"    {line}" for line in code.format(path=str(path)).splitlines()]
    program = ["from pathlib import Path", "from vefl_sim.core.errors import BadInput", "try:", *lines,
               "except BadInput as error:", "    print(error)", "print(open('/proc/self/status').read())"]  # fmt: skip
    ended = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, check=True)
    assert path.name in ended.stdout.splitlines()[0]
    peak = re.search(r"VmHWM:\s+(\d+) kB", ended.stdout)
    assert peak
    assert int(peak[1]) < MEBIBYTE
