"""Answers --help in scripts without other options than those in their docstring; loads nothing and sets nothing."""

import sys


def answer_help(text: str | None) -> None:
    """If --help was given, print the docstring of the script and end the process."""
    if {"-h", "--help"} & {*sys.argv[1:]}:
        print((text or "").strip())
        sys.exit()
