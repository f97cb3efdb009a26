"""The documents that are made from tables are those of the present tables."""

from pathlib import Path

from gputop.config.document import configuration, keys

DOCS = Path(__file__).parents[3] / "docs"


def test_configuration_is_current() -> None:
    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == configuration()


def test_keys_are_current() -> None:
    assert (DOCS / "keys.md").read_text(encoding="utf-8") == keys()
