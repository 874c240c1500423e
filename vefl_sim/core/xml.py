"""XML from anywhere, read as a stream in bounded memory: no entities, no deep nesting, no endless tags."""

from collections.abc import Callable
from io import BufferedIOBase
from xml.parsers import expat

MAX_DEPTH = 64  # of elements in each other; SUMO's files have up to 6
CHUNK_BYTES = 1 << 16
MAX_TAG_BYTES = 1 << 22  # of one tag with its attributes, or one comment; long shapes and routes have some 100 KB

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str], object]


class BadXml(ValueError):
    """A document that is not XML or exceeds a bound; `args` are the line and a phrase that completes "it …"."""

    def __init__(self, line: int, fault: str) -> None:
        self.line, self.fault = line, fault
        super().__init__(line, fault)

    def __str__(self) -> str:
        return f"line {self.line}: it {self.fault}"


class XmlParser:
    """Calls `start` and `end` for every element of a document; both may raise. `bytes` counts those read so far."""

    def __init__(self, start: Start, end: End = lambda tag: None) -> None:
        self.encoding = "utf-8"
        self._on_start, self._on_end = start, end
        self._depth, self.bytes, self._has_begun = 0, 0, False
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.XmlDeclHandler = self._declaration

    @property
    def line(self) -> int:
        """The line that is being read."""
        return self._parser.CurrentLineNumber

    def read(self, file: BufferedIOBase) -> None:
        """Parse the whole content of a file."""
        while piece := file.read(CHUNK_BYTES):
            self.feed(piece)
        self.feed(b"")

    def feed(self, piece: bytes) -> None:
        """Parse the next bytes, or the end of the document if there are none."""
        self.bytes += len(piece)
        try:
            self._parser.Parse(piece, not piece)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise BadXml(error.lineno, f"is not XML, or it is incomplete ({what})") from None
        except (LookupError, ValueError) as error:  # the second: of several bytes per character
            if self._has_begun:
                raise
            raise BadXml(self.line, f"has an unknown encoding ({error})") from None
        if self.bytes - self._parser.CurrentByteIndex > MAX_TAG_BYTES:  # bytes that expat has to keep
            raise BadXml(self.line, f"has a tag or a comment of more than {MAX_TAG_BYTES >> 20} MB")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth, self._has_begun = self._depth + 1, True
        if self._depth > MAX_DEPTH:
            raise BadXml(self.line, f"has more than {MAX_DEPTH} elements in each other")
        self._on_start(tag, attributes)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self._on_end(tag)

    def _doctype(self, *_: object) -> None:
        self._has_begun = True
        raise BadXml(self.line, "has a document type (<!DOCTYPE>), whose entities could name other files")

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = (encoding or "utf-8").lower()
