"""Ways to damage files: their bytes, what only their format has, and what is in their place."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.toml_mutations import any_value, places
from tests.learning.datasets.files import tar_gz, zipped

Damage = Callable[[Random, bytes], bytes]
METHODS = (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)

NUMBERS = (b"", b"0", b"-0", b"-1", b"1e-400", b"1e308", b"1e309", b"-1e300", b"9223372036854775808", b"9" * 5000,
           b"nan", b"inf", b"1_0", b"0x10", b" 7 ", b"1,5", b"x" * 100_000, b"&#0;", b"&bomb;", b"\xff", "٣".encode(),
           b"..", b"/etc/hostname", b"\x1b[1m", b"a\nb")  # fmt: skip
ELEMENTS = (b"<!-- x -->", b"<?x y?>", b"<![CDATA[<a>]]>", b"</a>", b"<a", b'<timestep time="1e300"/>', b"<vehicle/>",
            b"<edge/>", b"<lane/>", b"<junction/>",
            b"<a %s/>" % b" ".join(b'b%d="1"' % n for n in range(1000)))  # fmt: skip
_GROWING = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 7))
PROLOGUES = (*(b'<?xml version="1.0" encoding="%s"?>' % name for name in (b"utf-16", b"utf-7", b"cp037", b"no-such")),
             b'<!DOCTYPE a [<!ENTITY e0 "x">' + _GROWING + b'<!ENTITY bomb "&e6;">]>&bomb;', b"\xef\xbb\xbf",
             b'<!DOCTYPE a [<!ENTITY b SYSTEM "/etc/hostname">]>&b;')  # fmt: skip
"""Words at which readers stumble: numbers and texts, elements, and what may come before the first element."""
NAMES = ("/", "..", "../../escaped.png", "/escaped.png", "C:\\escaped.png", "train", "train/", "train/cat",
         "train//x.png", "train/cat/1.png", "train/cat/\x1b[1m.png", "train/cat/" + "n" * 3000 + ".png", ".png",
         "test/dog/a:b.png", "data_batch_1.bin", "x/test_batch.bin", "00000/00000_00000.ppm",
         "٠٠٠٠٠/00000_00000.ppm", "99999/00000_00000.jpg", "GT-final_test.csv")  # fmt: skip
"""Names of members of archives."""
RUBBISH = (b"", b"\n", b"[" * 100_000, b"{}", b"[]", b"null", b"\xff\xfe", b"1" * 5000, bytes(1000), b"\x1f\x8b\x08",
           b"PK\5\6" + bytes(18), b"<")  # fmt: skip


# Bytes


def flip(random: Random, content: bytes) -> bytes:
    """Change single bits."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 3, 50)) if content else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(random: Random, content: bytes) -> bytes:
    """Keep the beginning only, or all but a part."""
    start, end = sorted(random.choices(range(len(content) + 1), k=2))
    return content[:start] + random.choice((b"", content[end:]))


def field(random: Random, content: bytes) -> bytes:
    """Set a field of a binary header, which is near the beginning or the end, to an extreme."""
    size = random.choice((1, 2, 4, 8))
    at = random.randrange(min(200, len(content)) or 1)
    at = at if random.random() < 0.5 else max(0, len(content) - size - at)
    value = random.choice((0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1)))
    return content[:at] + value.to_bytes(size, random.choice(("big", "little"))) + content[at + size :]


def rubbish(random: Random, content: bytes) -> bytes:
    """Something else altogether."""
    return random.choice((*RUBBISH, random.randbytes(1000)))


def word(random: Random, content: bytes) -> bytes:
    """Put a word at which readers stumble in the place of a number or a quoted text, before an element, or first."""
    pattern = random.choice((rb"-?\d+(\.\d+)?", rb'(?<=")[^"]*(?=")', rb'\s\w+="[^"]*"', rb"(?=<)|(?<=>)", rb"^"))
    found = [*re.finditer(pattern, content)]
    if not found:
        return content
    match, deep = random.choice(found), b"<a>" * random.choice((10, 1000, 100_000))
    new = random.choice((*NUMBERS, *NUMBERS, *ELEMENTS, *PROLOGUES, deep, deep + deep.replace(b"<", b"</")))
    return content[: match.start()] + new + content[match.end() :]


# Archives


def gzipped(random: Random, content: bytes, inside: Damage) -> bytes:
    """Damage the content of a gzip file, or add zeros, and pack it again, so that its checksum is right."""
    with suppress(OSError, EOFError, zlib.error):
        unpacked = gzip.decompress(content)
        zeros = bytes(random.choice((10**6, 3 * 10**7)))
        return gzip.compress(unpacked + zeros if random.random() < 0.1 else inside(random, unpacked), 1, mtime=0)
    return content


def archived(random: Random, content: bytes, inside: Damage) -> bytes:
    """Pack a .zip or .tar.gz again without a member, or with a damaged, renamed or large one."""
    unreadable = (zipfile.BadZipFile, NotImplementedError, tarfile.TarError, OSError, EOFError, ValueError)
    with suppress(*unreadable, IndexError):  # it may have no members
        members = unzipped(content) if content[:2] == b"PK" else _untarred(content)
        name = random.choice([*members])
        data, odd = members.pop(name), random.choice(NAMES)
        zeros = bytes(random.choice((10**6, 3 * 10**7, 6 * 10**7)))
        instead = ({}, {name: data, odd: data}, {odd: data}, {name: zeros}, *[{name: inside(random, data)}] * 3)
        members |= random.choice(instead)
        return zipped(members, random.choice(METHODS)) if content[:2] == b"PK" else tar_gz(members)
    return content


def unzipped(content: bytes) -> dict[str, bytes]:
    """Names and contents of the files in a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _untarred(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive if member.isreg()}  # type: ignore


BYTES: tuple[Damage, ...] = (flip, cut, field, rubbish)


def any_of(*damages: Damage) -> Damage:
    """One of these damages, or two of them in turn."""

    def damaged(random: Random, content: bytes) -> bytes:
        for _ in range(random.choice((1, 1, 1, 2))):
            content = random.choice(damages)(random, content)
        return content

    return damaged


def packed(pack: Callable[[Random, bytes, Damage], bytes], inside: Damage) -> Damage:
    """Damage what is in a packed file, or (a quarter) the file itself."""
    return any_of(*[lambda random, content: pack(random, content, inside)] * 3, any_of(*BYTES))


# Files of a run


def json_values(random: Random, content: bytes) -> bytes:
    """Other values in a JSON file, or in a line of one."""
    lines = [json.loads(line) for line in content.splitlines()] if content.count(b"\n{") else [json.loads(content)]
    for _ in range(random.choice((1, 2, 5))):
        places_in_it = [*places(random.choice(lines))]
        where, key = random.choice(places_in_it or [(lines, 0)])
        where[key] = any_value(random)
    return "\n".join(json.dumps(line) for line in lines).encode()


def parquet(random: Random, content: bytes) -> bytes:
    """A valid table with other columns, types, rows or values."""
    table = pq.read_table(io.BytesIO(content))
    name = random.choice(table.column_names)
    number, kind = table.column_names.index(name), random.randrange(8)
    values = table.column(name).to_pylist()
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 3:
        table = table.slice(0, random.randint(0, max(0, len(table) - 1)))
    elif kind == 4:
        table = pa.concat_tables([table, table])
    elif kind == 5:
        table = table.rename_columns({name: random.choice(("x", "id", "round", "", "\x1b[1m"))})
    elif kind in (1, 2, 6):
        others = {1: ["x"], 2: [None], 6: [[{"a": 1}]]}[kind]
        table = table.set_column(number, name, pa.array(others * len(table)))
    elif values:
        other = {"int": random.choice((0, -1, 2**31 - 1)), "float": random.choice((float("nan"), 1e300, -1.0))}
        present = next((value for value in values if value is not None), 0)
        values[random.randrange(len(values))] = other.get(type(present).__name__)
        table = table.set_column(number, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, written := io.BytesIO())
    return written.getvalue()


def checkpoint(random: Random, content: bytes) -> bytes:
    """A valid zip file with another state.json, or with arrays of another shape or type, or without some of them."""
    members = unzipped(content)
    name = random.choice(["state.json", "state.json", *members])
    kind = random.randrange(4)
    if name == "state.json" and kind:
        members[name] = json_values(random, members[name])
    elif kind == 0:
        del members[name]
    elif kind == 2:
        members[name] = flip(random, members[name])
    else:
        arrays = (np.zeros(0), np.zeros((3, 3), np.complex64), np.array(["x"]), np.zeros(10**7), np.array([{}], object))
        np.save(saved := io.BytesIO(), random.choice(arrays), allow_pickle=True)
        members[name] = saved.getvalue()
    if random.randrange(2):  # or the digests show the damage, and the file is not read further
        digests = {member: hashlib.sha256(data).hexdigest() for member, data in members.items()}
        members["digests.json"] = json.dumps(digests).encode()
    return zipped(members, random.choice(METHODS[:2]))


# What is in the place of a file


def remove(random: Random, path: Path) -> None:
    """Nothing, where a file or a folder was."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def swap(random: Random, path: Path) -> None:
    """Another file of its folder, which gets the name of this one."""
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    if others and path.is_file():
        other, between = random.choice(others), path.with_name("between")
        path.rename(between)  # and not read: one of them may be huge
        other.rename(path)
        between.rename(other)


def folder(random: Random, path: Path) -> None:
    """A folder, perhaps with a file."""
    remove(random, path)
    path.mkdir(parents=True)
    if random.random() < 0.3:
        (path / "inside").write_text("x")


def link(random: Random, path: Path) -> None:
    """A link to itself, to nothing, to a device, to a file or to a folder."""
    remove(random, path)
    targets = (path.name, "nowhere", "/dev/null", "/dev/zero", "/etc/hostname", ".", "..", "resolved.toml")
    path.symlink_to(random.choice(targets))


def pipe(random: Random, path: Path) -> None:
    """A pipe, from which nothing ever comes."""
    remove(random, path)
    os.mkfifo(path)


def huge(random: Random, path: Path) -> None:
    """A file of many zeros that takes no space on the disk."""
    remove(random, path)
    path.touch()
    os.truncate(path, random.choice((2**31, 2**34, 2**40)))


PLACES = (remove, swap, folder, link, pipe, huge)
