"""Ways to damage a file of a run; a damage is a JSON object, so that an attempt can be written down and repeated."""

import hashlib
import io
import json
import os
import shutil
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from tests.fuzz.file_damages import cut, flip, insert
from tests.fuzz.toml_mutations import TREE_MUTATIONS, any_value, places, toml_text

Damage = dict[str, Any]
EVIL = (
    "from pathlib import Path\nPath(__file__).with_name('EXECUTED').touch()\n\n\ndef x(*arguments):\n    return None\n"
)
"""A module that shows by a file that it was imported."""


HOSTILE_PARTS = (
    *("runs.done.evil:x", "runs.stopped.evil:x", "evil:x", "os:system", "subprocess:run", "antigravity:x"),
    *("builtins:exec", "no_such:x"),
)
PART_KEYS = (
    *("scheme.kind", "mobility.kind", "radio.channel", "mac.scheduler", "rat.method", "data.kind", "model.factory"),
)


def draw_damage(random: Random, file: str) -> Damage:
    """A damage of a kind that suits the file."""
    if file == "resolved.toml" and random.random() < 0.5:
        return {"do": "part", "file": file, "key": random.choice(PART_KEYS), "name": random.choice(HOSTILE_PARTS)}
    kinds = [*BYTES, *BYTES, *PLACES]
    if suited := SUITED.get(Path(file).suffix):
        kinds += [suited] * len(kinds)  # half of the damages are those that only this format can have
    if suited == "parquet":
        kinds.append("inflate")
    return {"do": random.choice(kinds), "file": file, "seed": random.randrange(10**6)}


def damage(damage: Damage, run: Path) -> None:
    """Damage a file of a run."""
    path, random = run / damage["file"], Random(damage.get("seed"))
    if damage["do"] == "part":
        _name_part(path, *damage["key"].split("."), damage["name"])
    elif damage["do"] in PLACES:
        with suppress(OSError):  # another damage may have put a file or a link in the place of its folder
            PLACES[damage["do"]](random, path)
    elif path.is_file() and path.stat().st_size < 2**24:  # another damage may have put something else there
        with suppress(Exception) if damage["do"] in FORMATS else nullcontext():  # or spoilt the format
            path.write_bytes((BYTES | FORMATS)[damage["do"]](random, path.read_bytes()))


def _name_part(path: Path, table: str, key: str, name: str) -> None:
    """Let the experiment of a run name a part that is code of the run, or does harm when it is called."""
    tables = tomllib.loads(path.read_text())
    tables.setdefault(table, {})[key] = name
    path.write_text(tomli_w.dumps(tables))


# Bytes


def _cut(random: Random, content: bytes) -> bytes:
    return content[: random.randint(0, len(content))]


def _zero(random: Random, content: bytes) -> bytes:
    start, end = sorted(random.choices(range(len(content) + 1), k=2))
    return content[:start] + bytes(end - start) + content[end:]


def _rubbish(random: Random, content: bytes) -> bytes:
    return random.choice(
        (b"", b"\n", random.randbytes(1000), b"[" * 100_000, b"{}", b"[]", b"null", b"\xff\xfe", b"1" * 5000)
    )


BYTES: dict[str, Callable[[Random, bytes], bytes]] = {
    **{"flip": flip, "cut": _cut, "cut out": cut, "insert": insert, "zero": _zero, "rubbish": _rubbish}
}

# Formats


def _json(random: Random, content: bytes) -> bytes:
    lines = [json.loads(line) for line in content.splitlines()] if content.count(b"\n{") else [json.loads(content)]
    for _ in range(random.choice((1, 2, 5))):
        places_in_it = [*places(random.choice(lines))]
        where, key = random.choice(places_in_it or [(lines, 0)])
        where[key] = any_value(random)
    return "\n".join(json.dumps(line) for line in lines).encode()


def _toml(random: Random, content: bytes) -> bytes:
    tables = tomllib.loads(content.decode())
    random.choice(TREE_MUTATIONS)(random, tables)
    return toml_text(tables).encode("utf-8", "surrogateescape")


def _parquet(random: Random, content: bytes) -> bytes:
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
        table = table.rename_columns(
            [random.choice(("x", "id", "round", "", "\x1b[1m")) if n == name else n for n in table.column_names]
        )
    elif kind == 6:
        table = table.set_column(number, name, pa.array([[{"a": 1}]] * len(table)))
    elif len(table):
        values = table.column(name).to_pylist()
        other = {
            "int": random.choice((0, -1, 2**31 - 1)),
            "float": random.choice((float("nan"), 1e300, -1.0)),
            "str": "\x1b[1mx",
        }
        present = next((value for value in values if value is not None), 0)
        values[random.randrange(len(values))] = other.get(type(present).__name__)
        table = table.set_column(number, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, written := io.BytesIO())
    return written.getvalue()


def _inflate(random: Random, content: bytes) -> bytes:
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


def _checkpoint(random: Random, content: bytes) -> bytes:
    """A valid zip file with another state.json, or with arrays of another shape or type, or without some of them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(["state.json", "state.json", *members])
    kind = random.randrange(4)
    if name == "state.json" and kind:
        members[name] = _json(random, members[name])
    elif kind == 0:
        del members[name]
    elif kind == 1:
        array = random.choice((np.zeros(0), np.zeros((3, 3), np.complex64), np.array(["x"]), np.zeros(10**7)))
        np.save(saved := io.BytesIO(), array)
        members[name] = saved.getvalue()
    elif kind == 2:
        members[name] = flip(random, members[name])
    else:
        np.save(saved := io.BytesIO(), np.array([{}], object), allow_pickle=True)
        members[name] = saved.getvalue()
    if random.randrange(2):  # or the digests show the damage, and the file is not read further
        digests = {member: hashlib.sha256(data).hexdigest() for member, data in members.items()}
        members["digests.json"] = json.dumps(digests).encode()
    with zipfile.ZipFile(
        written := io.BytesIO(), "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return written.getvalue()


FORMATS: dict[str, Callable[[Random, bytes], bytes]] = {
    **{"json": _json, "toml": _toml, "parquet": _parquet, "inflate": _inflate, "checkpoint": _checkpoint}
}
SUITED = {".json": "json", ".jsonl": "json", ".toml": "toml", ".parquet": "parquet", ".npz": "checkpoint"}

# What is in the place of the file


def _remove(random: Random, path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _swap(random: Random, path: Path) -> None:
    """Exchange the file with another of its folder."""
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    if others and path.is_file():
        other, between = random.choice(others), path.with_name("between")
        path.rename(between)  # and not read: one of them may be huge
        other.rename(path)
        between.rename(other)


def _copy(random: Random, path: Path) -> None:
    """Copy the file to a name that the program looks for, which need not make sense."""
    checkpoints = [f"checkpoints/{name}.npz" for name in ("0000099", "12", "x")]
    names = ("tables/other.parquet", *checkpoints, "DONE", "FAILED", "LOCK")
    if path.is_file():
        run = path.parent if (path.parent / "resolved.toml").exists() else path.parent.parent
        target = run / random.choice(names)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())


def _folder(random: Random, path: Path) -> None:
    _remove(random, path)
    path.mkdir(parents=True)
    if random.random() < 0.3:
        (path / "inside").write_text("x")


def _link(random: Random, path: Path) -> None:
    _remove(random, path)
    targets = (path.name, "nowhere", "/dev/null", "/dev/zero", "/etc/hostname", ".", "..", "resolved.toml")
    path.symlink_to(random.choice(targets))


def _pipe(random: Random, path: Path) -> None:
    _remove(random, path)
    os.mkfifo(path)


def _huge(random: Random, path: Path) -> None:
    """A file of many zeros that takes no space on the disk."""
    _remove(random, path)
    with path.open("wb") as file:
        file.truncate(random.choice((2**31, 2**34, 2**40)))


def _unreadable(random: Random, path: Path) -> None:
    path.chmod(0)


PLACES: dict[str, Callable[[Random, Path], None]] = {
    **{"remove": _remove, "swap": _swap, "folder": _folder, "link": _link, "pipe": _pipe, "huge": _huge},
    **{"unreadable": _unreadable, "copy": _copy},
}
