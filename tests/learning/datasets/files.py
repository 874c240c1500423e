"""Small data sets in the file formats of the public ones."""

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SHARED = Path(__file__).parents[4] / "shared" / "datasets"
"""The published data sets, if this machine has them; used by developers only."""


def idx(values: NDArray[np.uint8]) -> bytes:
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(header + values.tobytes(), mtime=0)


def write_mnist(folder: Path, train: int = 40, test: int = 20) -> Path:
    """Images of 16 × 16 in which all pixels have the number of the sample; labels count up."""
    folder.mkdir(exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        images = np.broadcast_to(np.arange(count, dtype=np.uint8)[:, None, None], (count, 16, 16))
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(idx(images))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(idx((np.arange(count) % 10).astype(np.uint8)))
    return folder


def tar_gz(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def cifar_batch(first: int, count: int) -> bytes:
    """Records whose labels count up; red is the number of the sample, green the row, blue the column."""
    row, column = np.mgrid[:32, :32].astype(np.uint8)
    return b"".join(
        bytes([number % 10, *([number % 256] * 1024)]) + row.tobytes() + column.tobytes()
        for number in range(first, first + count)
    )


def cifar_members(each: int = 4) -> dict[str, bytes]:
    names = [f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)]
    train = {name: cifar_batch(i * each, each) for i, name in enumerate(names)}
    return {"cifar-10-batches-bin/batches.meta.txt": b"airplane\n", **train,
            "cifar-10-batches-bin/test_batch.bin": cifar_batch(100, 3 * each)}  # fmt: skip


def picture(colour: tuple[int, int, int], form: str = "PPM", size: tuple[int, int] = (20, 30)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, colour).save(written, form)
    return written.getvalue()


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def write_gtsrb(folder: Path) -> Path:
    """Two tracks of three frames in classes 0 and 42, two test images; red is the class, green the track."""
    folder.mkdir(exist_ok=True)
    train = {
        f"GTSRB/Final_Training/Images/{label:05d}/{track:05d}_{frame:05d}.ppm": picture((label, track, frame))
        for label in (0, 42)
        for track in (0, 1)
        for frame in range(3)
    }
    train |= {"GTSRB/Readme.txt": b"read me", "GTSRB/Final_Training/Images/00000/GT-00000.csv": b"Filename;Width\n"}
    test = {f"GTSRB/Final_Test/Images/{number:05d}.ppm": picture((number, 9, 9)) for number in range(2)}
    truth = b"Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\r\n00001.ppm;20;30;1;1;9;9;0\r\n"
    truth += b"00000.ppm;20;30;1;1;9;9;42\r\n"
    (folder / "GTSRB_Final_Training_Images.zip").write_bytes(zipped(train))
    (folder / "GTSRB_Final_Test_Images.zip").write_bytes(zipped(test))
    (folder / "GTSRB_Final_Test_GT.zip").write_bytes(zipped({"GT-final_test.csv": truth}))
    return folder


def write_compact_gtsrb(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    train = {
        f"train/000{label}/00003_0000{frame}.jpg": picture((9, 9, 9), "JPEG") for label in (17, 20) for frame in (0, 1)
    }
    (folder / "gtsrb-32x32-train-jpeg.zip").write_bytes(zipped(train))
    (folder / "gtsrb-32x32-test-jpeg.zip").write_bytes(zipped({"test/00020/00000.jpg": picture((9, 9, 9), "JPEG")}))
    return folder


def folder_members() -> dict[str, bytes]:
    """Classes cat (red) and dog (green) in several formats, and files that are not images."""
    return {
        "train/cat/1.png": picture((200, 0, 0), "PNG"),
        "train/cat/2.JPG": picture((200, 0, 0), "JPEG"),
        "train/dog/1.bmp": picture((0, 200, 0), "BMP"),
        "train/dog/notes.txt": b"a good dog",
        "train/dog/.hidden.png": b"",
        "__MACOSX/train/cat/1.png": b"",
        "test/dog/1.gif": picture((0, 200, 0), "GIF"),
    }


def write_folder(folder: Path, members: Mapping[str, bytes] | None = None) -> Path:
    for name, content in (folder_members() if members is None else members).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
