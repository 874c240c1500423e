"""What a release states in several places is the same everywhere, and CITATION.cff is what tools expect."""

import re
import tomllib

import yaml

from tests.command_line import ROOT

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
_REFERENCE = _CITATION["preferred-citation"]


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert _PROJECT["version"] == _CITATION["version"] == newest[1]


def test_the_citation_file_has_what_its_format_requires() -> None:
    """Citation File Format 1.2.0: the required keys, and no others than it knows."""
    assert _CITATION["cff-version"] == "1.2.0"
    assert _CITATION.keys() >= {"cff-version", "message", "title", "authors"}
    assert _CITATION.keys() <= {
        "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords",
        "license", "license-url", "message", "preferred-citation", "references", "repository", "repository-artifact",
        "repository-code", "title", "type", "url", "version",
    }  # fmt: skip
    assert _CITATION["type"] in ("software", "dataset")
    assert isinstance(_CITATION["version"], str)
    assert _CITATION["license"] == _PROJECT["license"]
    for author in _CITATION["authors"]:
        assert author.keys() <= {"name", "website", "email", "orcid", "given-names", "family-names", "affiliation"}


def test_the_preferred_citation_is_a_complete_article() -> None:
    assert _REFERENCE.keys() >= {"type", "title", "authors", "journal", "year", "volume", "issue", "start", "end"}
    assert _REFERENCE["type"] == "article"
    assert all(isinstance(_REFERENCE[key], int) for key in ("year", "volume", "start", "end"))
    assert [author["family-names"] for author in _REFERENCE["authors"]] == ["Pervej", "Jin", "Dai"]
