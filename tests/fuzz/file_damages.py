"""Ways to damage a data file: its bytes, the numbers and elements in it, and the members of an archive."""

import gzip
import io
import re
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from random import Random

Damage = Callable[[Random, bytes], bytes]

EXTREMES = (b"", b"0", b"-0", b"-1", b"1e-400", b"1e308", b"1e309", b"-1e300", b"9223372036854775808", b"9" * 5000,
            b"nan", b"inf", b"1_0", b"0x10", b" 7 ", b"1,5", b"x" * 100_000, b"&#0;", b"&bomb;", b"\xff", "٣".encode(),
            b"..", b"/etc/hostname", b"\x1b[1m", b"a\nb")  # fmt: skip
"""Values of attributes and numbers at which readers stumble."""
NAMES = ("", "/", "..", "../../escaped.png", "/escaped.png", "C:\\escaped.png", "train", "train/", "train/cat",
         "train//x.png", "train/cat/1.png", "train/cat/\x1b[1m.png", "train/cat/" + "n" * 3000 + ".png", ".png",
         "test/dog/a:b.png", "train/\udce4/1.png", "data_batch_1.bin", "x/test_batch.bin", "00000/00000_00000.ppm",
         "٠٠٠٠٠/00000_00000.ppm", "99999/00000_00000.jpg", "GT-final_test.csv")  # fmt: skip
"""Names of members of archives."""


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
    return random.choice(
        (b"", b"\n", b"\0" * 1000, random.randbytes(1000), b"PK\5\6" + bytes(18), b"\x1f\x8b\x08", b"<")
    )


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
    new = b'="' + random.choice(EXTREMES).replace(b'"', b"") + b'"'
    if random.random() < 0.15:
        return _replace_one(random, rb'\s\w+="[^"]*"', b"", content)
    return _replace_one(random, rb'="[^"]*"', new, content)


def element(random: Random, content: bytes) -> bytes:
    """Rename, repeat, nest or open an element, or insert what only XML has."""
    deep = random.choice((10, 1000, 100_000))
    odd = random.choice(
        (b"<a>" * deep, b"<a>" * deep + b"</a>" * deep, b"<!-- x -->", b"<?x y?>", b"<![CDATA[<a>]]>", b"</a>",
         b"&bomb;",
         b"<timestep/>", b'<timestep time="1e300"/>', b"<vehicle/>", b"<edge/>", b"<lane/>", b"<junction/>", b"<net/>",
         b"<a " + b" ".join(b'b%d="1"' % number for number in range(1000)) + b"/>")
    )  # fmt: skip
    if random.random() < 0.3:
        return _replace_one(
            random, rb"</?\w[\w-]*", random.choice((b"<b", b"</b", b"<", b"<edge", b"<vehicle")), content
        )
    return _replace_one(random, rb"(?=<)|(?<=>)", odd, content)


def prologue(random: Random, content: bytes) -> bytes:
    """Begin with another encoding, a document type with entities that grow or name files, or a byte order mark."""
    grow = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 7))
    head = random.choice(
        (b'<?xml version="1.0" encoding="utf-16"?>', b'<?xml version="1.0" encoding="utf-7"?>', b"\xef\xbb\xbf",
         b'<?xml version="1.0" encoding="no-such"?>', b'<?xml version="1.0" encoding="cp037"?>', b"\xff\xfe",
         b'<?xml version="9.9"?>', b'<!DOCTYPE a [<!ENTITY e0 "x">' + grow + b'<!ENTITY bomb "&e6;">]>',
         b'<!DOCTYPE a [<!ENTITY bomb SYSTEM "/etc/hostname">]>', b'<!DOCTYPE a SYSTEM "file:///etc/hostname">')
    )  # fmt: skip
    if random.random() < 0.2:
        return content.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-32", "cp037")))
    return head + attribute(random, content)


# Archives


def gzipped(random: Random, content: bytes, inside: Damage) -> bytes:
    """Damage the content of a gzip file, and pack it again, so that its checksum is right; or add to the file."""
    with suppress(OSError, EOFError, zlib.error):
        kind = random.random()
        if kind < 0.1:
            return content + random.choice((content, b"\0" * 100, b"x"))
        if kind < 0.2:
            return gzip.compress(gzip.decompress(content) + bytes(random.choice((10**6, 3 * 10**7))), 1, mtime=0)
        return gzip.compress(inside(random, gzip.decompress(content)), 1, mtime=0)
    return content


def zipped(random: Random, content: bytes, inside: Damage) -> bytes:
    """Pack a zip again with damaged, renamed, repeated or odd members."""
    written = io.BytesIO()
    with suppress(zipfile.BadZipFile, NotImplementedError), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(member.filename, archive.read(member)) for member in archive.infolist()]
        chosen, kind = random.randrange(len(members)), random.randrange(6)
        name, data = members[chosen]
        if kind == 0:
            members.pop(chosen)
        elif kind == 1:
            members.append((random.choice(NAMES), random.choice((data, b"", bytes(10**6)))))
        elif kind == 2:
            members[chosen] = random.choice(NAMES), data
        elif kind == 3:
            members[chosen] = name, bytes(random.choice((10**6, 3 * 10**7, 6 * 10**7)))
        else:
            members[chosen] = name, inside(random, data)
        method = random.choice((zipfile.ZIP_DEFLATED,) * 4 + (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        with warnings.catch_warnings(), zipfile.ZipFile(written, "w", method, compresslevel=1) as packed:
            warnings.simplefilter("ignore")  # two members of the same name
            for name, data in members:
                with suppress(UnicodeEncodeError):
                    packed.writestr(zipfile.ZipInfo(name), data, method)
    return written.getvalue() or content


def tarred(random: Random, content: bytes, inside: Damage) -> bytes:
    """Pack a .tar.gz again with damaged, renamed, repeated or odd members: links, devices, sizes that are not true."""
    written = io.BytesIO()
    with suppress(tarfile.TarError, OSError, EOFError), tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [(member, archive.extractfile(member).read()) for member in archive if member.isreg()]  # type: ignore
        member, data = random.choice(members)
        kind = random.randrange(6)
        if kind == 0:
            members.remove((member, data))
        elif kind == 1:
            member.name = random.choice(NAMES) or "."
        elif kind == 2:
            member.type = random.choice(
                (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S", b"?")
            )
            member.linkname = random.choice(("/etc/hostname", "../escaped", member.name))
        elif kind == 3:
            members.append((member, data))
        with tarfile.open(fileobj=written, mode="w:gz", compresslevel=1, errors="surrogateescape") as packed:
            for each, data in members:
                data = inside(random, data) if kind >= 4 and each is member else data
                each.size = len(data)
                packed.addfile(each, io.BytesIO(data))
    return written.getvalue() or content


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
