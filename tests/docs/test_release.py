"""What a release states in several places is the same everywhere, and CITATION.cff is what tools expect."""

import re
import tomllib

import yaml

from tests.command_line import ROOT

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert _PROJECT["version"] == _CITATION["version"] == newest[1]


def test_the_citation_file_has_what_its_format_requires() -> None:
    """Citation File Format 1.2.0: the required keys, and those from which a reference is made."""
    assert _CITATION["cff-version"] == "1.2.0"
    assert _CITATION.keys() >= {"cff-version", "message", "title", "authors"}
    assert _CITATION["license"] == _PROJECT["license"]
    article = _CITATION["preferred-citation"]
    assert article.keys() >= {"type", "title", "authors", "journal", "year", "volume", "issue", "start", "end"}
    assert [author["family-names"] for author in article["authors"]] == ["Pervej", "Jin", "Dai"]
