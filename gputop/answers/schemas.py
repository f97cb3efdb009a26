"""JSON Schemas of the answers, made from their structs.

python -m gputop.answers.schemas docs/schema
"""

import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from gputop.answers.doctor import Doctor
from gputop.answers.release import ReleaseAnswer
from gputop.answers.snapshot import Snapshot

ANSWERS: Final = {"gputop.snapshot.1": Snapshot, "gputop.doctor.1": Doctor, "gputop.release.1": ReleaseAnswer}
"""Answer by the name of its schema file."""


def schema_text(answer: Any) -> str:  # noqa: ANN401 - a struct type
    """Return the schema of an answer as indented JSON."""
    schema = msgspec.json.schema(answer)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2).decode() + "\n"


def main(folder: Path) -> None:
    """Write every schema into a folder."""
    for name, answer in ANSWERS.items():
        (folder / f"{name}.json").write_text(schema_text(answer), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
