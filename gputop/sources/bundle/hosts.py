"""Which machine each file of a bundle is from, and what that machine is called.

nvidia-smi never tells a host name, so it is worked out, by this rule:

1. Files are of one machine when they tell the same GPU (UUID, at the same bus id where both tell one), or,
   where one of them tells no UUID, when they lie in one folder, tell a common bus id and are not named
   after two machines. Files that cannot be compared (an error message) are of one machine when they lie in
   one folder and their names differ only in words for a kind of output ("nvidia-smi-q.txt" and "lspci.txt").
2. If at least two folders hold such files and each folder's files are of one machine, the folders are the
   machines and have their names. Folders with a common name ("nvidia", "logs") count as part of the one
   above.
3. Otherwise a machine is called what the exporter's Hostname label in one of its files says; else what is
   left of a file's name without the words for kinds of output ("gpu-a03-nvidia-smi.xml"); else its folder;
   else the archive.

The name and where it comes from are told in the findings.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct

_COMMON_FOLDERS: Final = frozenset(
    {
        "bundle",
        "captures",
        "capture",
        "cmd",
        "commands",
        "data",
        "debug",
        "diag",
        "diagnostics",
        "dump",
        "exporter",
        "exporters",
        "files",
        "gpu",
        "gpus",
        "host",
        "hosts",
        "home",
        "info",
        "log",
        "logs",
        "lspci",
        "metrics",
        "misc",
        "node",
        "nodes",
        "nvidia",
        "nvidia-smi",
        "nvidia_smi",
        "out",
        "output",
        "outputs",
        "pci",
        "prometheus",
        "reports",
        "root",
        "smi",
        "sos_commands",
        "support",
        "system",
        "tmp",
        "user",
        "users",
        "var",
        "work",
    }
)
_KIND_WORDS: Final = (
    r"(?:nvidia[-_.]?smi|nvidia[-_.]?bug[-_.]?report|nvidia|nvsmi|smi|lspci|dcgm|exporter|metrics?|prom(?:etheus)?"
    r"|query|list|topo|errors?|stderr|stdout|outputs?|out|report|dump|full|verbose|q|x|qx|l|nn|nnk|nnv|k|v+|d"
    r"|txt|log|xml|text|json|yaml|cmd|raw|\d{6,})"
)
_SEPARATOR: Final = r"[-_. ]+"
_LEADING: Final = re.compile(rf"^(?:{_KIND_WORDS}(?:{_SEPARATOR}|$))+", re.IGNORECASE)
_TRAILING: Final = re.compile(rf"(?:(?:^|{_SEPARATOR}){_KIND_WORDS})+$", re.IGNORECASE)
_VAGUE_NAMES: Final = frozenset({"gpu", "gpus", "node", "host", "file", "data", "unnamed", "bundle", "-"})
_EXTENSION: Final = re.compile(r"\.(?:txt|log|xml|prom|metrics|out|json|text|ini|dump|md)$", re.IGNORECASE)


class Traces(Struct, frozen=True):
    """What a file tells about the machine it is from.

    Attributes:
        path: Path within the bundle.
        root: Name of the folder or archive.
        boards: Bus id ("" if not told) by UUID.
        buses: Bus ids of GPUs, those without a UUID included.
        told: Host name that its content tells, "" if none or several.
        rich: How much it says; the richest file of a machine gives it its name.
    """

    path: str
    root: str
    boards: dict[str, str]
    buses: frozenset[str]
    told: str = ""
    rich: int = 0

    @property
    def folder(self) -> str:
        """Path of its folder up to the last part that is not a common word; "" if there is none."""
        parts = list(PurePosixPath(self.path).parts[:-1])
        while parts and parts[-1].lower() in _COMMON_FOLDERS:
            parts.pop()
        return "/".join(parts)

    @property
    def stem(self) -> str:
        """What its name says besides what kind of output it is; "" if nothing."""
        name = _EXTENSION.sub("", PurePosixPath(self.path).name)
        name = _TRAILING.sub("", _LEADING.sub("", name)).strip("-_. ")
        return "" if name.lower() in _VAGUE_NAMES else name


class Place(Struct, frozen=True):
    """The machine a file is put on: its name and how it is known."""

    host: str
    how: str


def _compare(one: Traces, two: Traces) -> bool | None:
    """Whether two files are of one machine; None if that cannot be told from their GPUs."""
    if one.boards and two.boards:
        shared = one.boards.keys() & two.boards.keys()
        return bool(shared) and all(
            not one.boards[uuid] or not two.boards[uuid] or one.boards[uuid] == two.boards[uuid] for uuid in shared
        )
    if one.buses and two.buses:
        # Machines of one type have the same bus ids, so names that differ outweigh them.
        return not (one.stem and two.stem and one.stem != two.stem) and bool(one.buses & two.buses)
    return None


def _cluster(files: Sequence[Traces], *, across_folders: bool) -> list[list[Traces]]:
    """Group files into machines; between folders only UUIDs join."""
    groups: list[list[Traces]] = []
    # Files with UUIDs first: they are what the others are compared with.
    for file in sorted(files, key=lambda f: (not f.boards, not f.buses, -f.rich)):
        fitting = [group for group in groups if _fits(file, group, across_folders=across_folders)]
        if not fitting:
            groups.append([file])
            continue
        fitting[0].append(file)
        if file.boards:
            for other in fitting[1:]:
                fitting[0].extend(other)
                groups.remove(other)
    return groups


def _fits(file: Traces, group: Iterable[Traces], *, across_folders: bool) -> bool:
    said = {
        _compare(file, other)
        for other in group
        if other.folder == file.folder or (across_folders and file.boards and other.boards)
    }
    if True in said:
        return True
    if False in said:
        return False
    return any(other.folder == file.folder and other.stem == file.stem for other in group)


def _folder_per_host(files: Sequence[Traces]) -> bool:
    by_folder: dict[str, list[Traces]] = {}
    for file in files:
        by_folder.setdefault(file.folder, []).append(file)
    return (
        len(by_folder) > 1
        and "" not in by_folder
        and all(len(_cluster(inside, across_folders=False)) == 1 for inside in by_folder.values())
    )


def _name(group: Sequence[Traces]) -> Place:
    ordered = sorted(group, key=lambda f: -f.rich)
    # dcgm-exporter's Hostname is the name of its pod where the chart does not set it.
    only_exporters = all(file.told for file in group)
    told = [f.told for f in ordered if f.told and (only_exporters or "exporter" not in f.told)]
    stem = next((file.stem for file in ordered if file.stem), "")
    first = ordered[0]
    folder = PurePosixPath(first.folder).name
    root = "" if first.root.lower() in _COMMON_FOLDERS else first.root
    for host, how in (
        (told[0] if told else "", "Hostname label"),
        (stem, "file name"),
        (folder, "folder"),
        (root, "archive or folder"),
    ):
        if host:
            return Place(host, how)
    return Place(PurePosixPath(first.path).name, "file name")


def place(files: Sequence[Traces]) -> dict[str, Place]:
    """Return the machine of each file, by path."""
    if _folder_per_host(files):
        return {f.path: Place(PurePosixPath(f.folder).name, "folder") for f in files}
    places: dict[str, Place] = {}
    taken: dict[str, list[list[Traces]]] = {}
    for group in _cluster(files, across_folders=True):
        named = _name(group)
        same_name = taken.setdefault(named.host, [])
        contradicting = [other for other in same_name if _contradict(group, other)]
        if contradicting:
            how = f"{named.how}, with other GPUs than its namesake"
            named = Place(f"{named.host}-{len(same_name) + 1}", how)
        same_name.append(group)
        places.update((file.path, named) for file in group)
    return places


def _contradict(one: Iterable[Traces], two: Iterable[Traces]) -> bool:
    return any(_compare(a, b) is False for a in one for b in two)
