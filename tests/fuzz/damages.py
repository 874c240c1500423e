"""Ways to damage files: their bytes, what only their format has, and what is in their place."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import warnings
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

Damage = Callable[[Random, bytes], bytes]
Members = list[tuple[str, bytes]]
"""Names and contents of the files in an archive."""

EXTREMES = (b"", b"0", b"-0", b"-1", b"1e-400", b"1e308", b"1e309", b"-1e300", b"9223372036854775808", b"9" * 5000,
            b"nan", b"inf", b"1_0", b"0x10", b" 7 ", b"1,5", b"x" * 100_000, b"&#0;", b"&bomb;", b"\xff", "٣".encode(),
            b"..", b"/etc/hostname", b"\x1b[1m", b"a\nb")  # fmt: skip
"""Values of attributes and numbers at which readers stumble."""
NAMES = ("", "/", "..", "../../escaped.png", "/escaped.png", "C:\\escaped.png", "train", "train/", "train/cat",
         "train//x.png", "train/cat/1.png", "train/cat/\x1b[1m.png", "train/cat/" + "n" * 3000 + ".png", ".png",
         "test/dog/a:b.png", "train/\udce4/1.png", "data_batch_1.bin", "x/test_batch.bin", "00000/00000_00000.ppm",
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
    start, end = _part(random, content)
    return content[:start] + random.choice((b"", content[end:]))


def insert(random: Random, content: bytes) -> bytes:
    """Insert random bytes, zeros, or a part of the file itself."""
    (start, end), at = _part(random, content), random.randint(0, len(content))
    return content[:at] + random.choice((random.randbytes(20), bytes(200), content[start:end])) + content[at:]


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


def number(random: Random, content: bytes) -> bytes:
    """Replace a number that is written as text, as in the headers of PPM, in CSV or in XML."""
    return _replace_one(random, rb"-?\d+(\.\d+)?", random.choice(EXTREMES), content)


def _part(random: Random, content: bytes) -> tuple[int, int]:
    start, end = sorted(random.choices(range(len(content) + 1), k=2))
    return start, end


def _replace_one(random: Random, pattern: bytes, new: bytes, content: bytes) -> bytes:
    found = [*re.finditer(pattern, content)]
    if not found:
        return content
    match = random.choice(found)
    return content[: match.start()] + new + content[match.end() :]


# XML


def attribute(random: Random, content: bytes) -> bytes:
    """Give an attribute an extreme value, or remove it."""
    if random.random() < 0.15:
        return _replace_one(random, rb'\s\w+="[^"]*"', b"", content)
    return _replace_one(random, rb'="[^"]*"', b'="' + random.choice(EXTREMES) + b'"', content)


def element(random: Random, content: bytes) -> bytes:
    """Rename an element, or insert elements, perhaps nested or open, or what only XML has."""
    if random.random() < 0.3:
        return _replace_one(random, rb"</?\w[\w-]*", random.choice((b"<b", b"</b", b"<", b"<vehicle")), content)
    deep = random.choice((10, 1000, 100_000))
    odd = (b"<a>" * deep, b"<a>" * deep + b"</a>" * deep, b"<!-- x -->", b"<?x y?>", b"<![CDATA[<a>]]>", b"</a>",
           b"&bomb;", b'<timestep time="1e300"/>', b"<vehicle/>", b"<edge/>", b"<lane/>", b"<junction/>", b"<net/>",
           b"<a " + b" ".join(b'b%d="1"' % number for number in range(1000)) + b"/>")  # fmt: skip
    return _replace_one(random, rb"(?=<)|(?<=>)", random.choice(odd), content)


def prologue(random: Random, content: bytes) -> bytes:
    """Begin with another encoding, a document type with entities that grow or name files, or a byte order mark."""
    if random.random() < 0.2:
        return content.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-32", "cp037")))
    encodings = [b'<?xml version="1.0" encoding="%s"?>' % name for name in (b"utf-16", b"utf-7", b"cp037", b"no-such")]
    grow = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 7))
    types = (b'[<!ENTITY e0 "x">' + grow + b'<!ENTITY bomb "&e6;">]', b'[<!ENTITY bomb SYSTEM "/etc/hostname">]',
             b'SYSTEM "file:///etc/hostname"')  # fmt: skip
    heads = (*encodings, *(b"<!DOCTYPE a %s>" % kind for kind in types), b'<?xml version="9.9"?>', b"\xef\xbb\xbf")
    return random.choice(heads) + attribute(random, content)


# Archives


def gzipped(random: Random, content: bytes, inside: Damage) -> bytes:
    """Damage the content of a gzip file, and pack it again, so that its checksum is right; or add to the file."""
    with suppress(OSError, EOFError, zlib.error):
        kind = random.random()
        if kind < 0.1:
            return content + random.choice((content, b"\0" * 100, b"x"))
        zeros = bytes(random.choice((10**6, 3 * 10**7)))
        unpacked = gzip.decompress(content)
        return gzip.compress(unpacked + zeros if kind < 0.2 else inside(random, unpacked), 1, mtime=0)
    return content


def archived(random: Random, content: bytes, inside: Damage) -> bytes:
    """Pack a .zip or .tar.gz again without a member, or with damaged, renamed, repeated or odd ones."""
    unpack, pack = (_unzip, _zip) if content[:2] == b"PK" else (_untar, _tar)
    try:
        members = unpack(content)
        name, data = members.pop(random.randrange(len(members)))
    except (zipfile.BadZipFile, NotImplementedError, tarfile.TarError, OSError, EOFError, ValueError):
        return content
    kind, odd = random.randrange(8), random.choice(NAMES)
    if kind == 1:
        members += [(name, data), (odd, random.choice((data, b"", bytes(10**6))))]
    elif kind == 2:
        members += [(odd, data)]
    elif kind == 3:
        members += [(name, bytes(random.choice((10**6, 3 * 10**7, 6 * 10**7))))]
    elif kind == 4:
        members += [(name, data)] * 2
    elif kind >= 5:
        members += [(name, inside(random, data))]
    return pack(random, members)


def _unzip(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(member.filename, archive.read(member)) for member in archive.infolist()]


def _zip(random: Random, members: Members) -> bytes:
    method = random.choice((zipfile.ZIP_DEFLATED,) * 4 + (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    written = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(written, "w", method, compresslevel=1) as archive:
        warnings.simplefilter("ignore")  # two members of the same name
        for name, data in members:
            with suppress(UnicodeEncodeError):
                archive.writestr(zipfile.ZipInfo(name), data, method)
    return written.getvalue()


def _untar(content: bytes) -> Members:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return [(member.name, archive.extractfile(member).read()) for member in archive if member.isreg()]  # type: ignore


def _tar(random: Random, members: Members) -> bytes:
    """One member in thirty becomes a link or a device."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz", compresslevel=1, errors="surrogateescape") as archive:
        for name, data in members:
            member = tarfile.TarInfo(name or ".")
            member.size = len(data)
            if random.random() < 1 / 30:
                links = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S", b"?")
                member.type, member.linkname = random.choice(links), random.choice(("/etc/hostname", "../escaped"))
            archive.addfile(member, io.BytesIO(data))
    return written.getvalue()


BYTES: tuple[Damage, ...] = (flip, cut, insert, field, rubbish)
TEXT: tuple[Damage, ...] = (*BYTES, number, number, number)
XML: tuple[Damage, ...] = (*BYTES, number, *(attribute,) * 5, *(element,) * 3, prologue)


def any_of(*damages: Damage) -> Damage:
    """One of these damages, or two of them in turn."""

    def damaged(random: Random, content: bytes) -> bytes:
        for _ in range(random.choice((1, 1, 1, 2))):
            content = random.choice(damages)(random, content)
        return content

    return damaged


def packed(pack: Callable[[Random, bytes, Damage], bytes], inside: Damage) -> Damage:
    """Damage a packed file from outside (a quarter), or what is in it."""
    outside = any_of(*BYTES)

    def damaged(random: Random, content: bytes) -> bytes:
        return outside(random, content) if random.random() < 0.25 else pack(random, content, inside)

    return damaged


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
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.set_column(number, name, pa.array(["x"] * len(table)))
    elif kind == 2:
        table = table.set_column(number, name, pa.nulls(len(table), table.schema.field(name).type))
    elif kind == 3:
        table = table.slice(0, random.randint(0, max(0, len(table) - 1)))
    elif kind == 4:
        table = pa.concat_tables([table, table])
    elif kind == 5:
        table = table.rename_columns({name: random.choice(("x", "id", "round", "", "\x1b[1m"))})
    elif kind == 6:
        table = table.set_column(number, name, pa.array([[{"a": 1}]] * len(table)))
    elif len(table):
        values = table.column(name).to_pylist()
        other = {"int": random.choice((0, -1, 2**31 - 1)), "float": random.choice((float("nan"), 1e300, -1.0))}
        present = next((value for value in values if value is not None), 0)
        values[random.randrange(len(values))] = other.get(type(present).__name__)
        table = table.set_column(number, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, written := io.BytesIO())
    return written.getvalue()


def inflate(random: Random, content: bytes) -> bytes:
    """A small table that takes gigabytes: one long value that is repeated, in another column or in those with text."""
    schema, rows = pq.read_schema(io.BytesIO(content)), random.choice((100, 100_000))

    def repeated(value: str | bytes) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value]))

    columns = {field.name: pa.nulls(rows, field.type) for field in schema}
    if rows == 100:
        columns["other"] = repeated(b"x" * 30_000_000)
    else:
        columns |= {field.name: repeated("x" * 4000) for field in schema if pa.types.is_string(field.type)}
    pq.write_table(pa.table(columns), written := io.BytesIO(), compression="zstd", store_schema=False)
    return written.getvalue()


def checkpoint(random: Random, content: bytes) -> bytes:
    """A valid zip file with another state.json, or with arrays of another shape or type, or without some of them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
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
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(written := io.BytesIO(), "w", method) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return written.getvalue()


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
    with path.open("wb") as file:
        file.truncate(random.choice((2**31, 2**34, 2**40)))
