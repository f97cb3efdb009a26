"""The tree that both forms of `nvidia-smi -q` are read into, and how a value is found in it.

XML and text name the same things ("fb_memory_usage/total", "FB Memory Usage / Total"), so names are
compared without case, blanks and underscores. Sections repeat (MIG devices, processes): children are kept in
order, not in a mapping.
"""

import re
from collections.abc import Iterator
from typing import Final

_NOISE: Final = re.compile(r"[^a-z0-9]")


def normal_name(text: str) -> str:
    """Return a heading or a tag as it is compared: lower-case letters and digits only."""
    return _NOISE.sub("", text.lower())


class Section:
    """One heading or tag.

    Attributes:
        name: `normal_name` of it.
        value: Text beside it, "" if it is only a heading.
        children: What stands below it, in order.
        closed: Its end was seen. What is below an open one may be cut short.
    """

    __slots__ = ("children", "closed", "name", "value")

    def __init__(self, name: str, value: str = "") -> None:
        self.name = normal_name(name)
        self.value = value
        self.children: list[Section] = []
        self.closed = False

    def all(self, name: str) -> Iterator["Section"]:
        """Yield the children with this (normal) name."""
        return (child for child in self.children if child.name == name)

    def leaves(self) -> Iterator["Section"]:
        """Yield everything below that has a value beside it and nothing under it."""
        for child in self.children:
            if child.children:
                yield from child.leaves()
            else:
                yield child

    def find(self, path: str) -> "Section | None":
        """Return what stands at `path`, or None.

        Args:
            path: Normal names joined by "/". A "*" before a name stands for any levels between; it finds
                only what is there exactly once, for sections that newer drivers nest deeper.
        """
        at: Section = self
        anywhere = False
        for name in path.split("/"):
            if name == "*":
                anywhere = True
                continue
            found = [s for s in at.below() if s.name == name] if anywhere else list(at.all(name))
            if not found or (anywhere and len(found) > 1):
                return None
            at, anywhere = found[0], False
        return at

    def below(self) -> Iterator["Section"]:
        """Yield every section below, deepest levels included."""
        for child in self.children:
            yield child
            yield from child.below()


class Log:
    """One output of `nvidia-smi -q`.

    Attributes:
        head: What stands before the GPUs: timestamp, versions, number of GPUs.
        gpus: One section for each GPU, in order; `value` is its bus id as printed.
        cut: Where and how the file is broken, "" when it is whole.
        flat: The indentation is lost, so that sections cannot be told apart.
    """

    def __init__(self) -> None:
        self.head = Section("head")
        self.gpus: list[Section] = []
        self.cut = ""
        self.flat = False
