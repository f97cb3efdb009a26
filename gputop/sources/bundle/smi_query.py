"""`nvidia-smi -q` text, read into trees by its indentation.

Made for what is found in tickets: pastes that are indented as a whole, that lost the indentation of their
first lines or of all, files cut at any line or in the middle of one, shell prompts and warnings around it,
several outputs in a row (`nvidia-smi -q -l`).
"""

import re
from typing import Final

from gputop.sources.bundle.smi_error import is_message
from gputop.sources.bundle.smi_tree import Log, Section, normal_name

# Boards of a system on a chip stand on no PCI bus.
_GPU: Final = re.compile(r"^GPU\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]|N/A)\s*$")
_HEADER: Final = re.compile(r"=+\s*NVSMI LOG\s*=+")
_LINE: Final = re.compile(r"^(?P<key>[^:\s][^:]{0,79}?)\s*:(?:\s+(?P<value>\S.*)?)?$")
_HEAD_KEYS: Final = frozenset(
    normal_name(key)
    for key in (
        "Timestamp",
        "Driver Version",
        "CUDA Version",
        "KMD Version",
        "CUDA UMD Version",
        "Attached GPUs",
    )
)
_QUOTE: Final = re.compile(r"^(?:> ?)+", re.MULTILINE)
_HEADING: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9 .,/()_-]{0,79}$")


class _Reader:
    """Holds the open sections while lines pass by."""

    def __init__(self) -> None:
        self.logs: list[Log] = []
        self.stack: list[tuple[int, Section]] = []
        self.gpu_indent = 0

    @property
    def log(self) -> Log:
        if not self.logs:
            self.logs.append(Log())
        return self.logs[-1]

    def close(self, indent: int) -> None:
        """Close the sections that a line at `indent` ends."""
        while self.stack and self.stack[-1][0] >= indent:
            self.stack.pop()[1].closed = True

    def line(self, raw: str) -> None:
        text = raw.strip()
        if not text:
            return
        indent = len(raw) - len(raw.lstrip())
        if _HEADER.search(text):
            self.close(0)
            self.logs.append(Log())
            return
        gpu = _GPU.match(text)
        if gpu:
            self.close(0)
            section = Section("gpu", gpu.group(1))
            self.log.gpus.append(section)
            self.gpu_indent = indent
            self.stack.append((indent, section))
            return
        match = _LINE.match(text)
        key, value = (match.group("key"), match.group("value") or "") if match else (text, "")
        if self.stack and indent <= self.gpu_indent and normal_name(key) == "timestamp":
            self.close(0)
        if not self.stack:
            self.before_gpus(normal_name(key), value.strip())
        elif indent > self.gpu_indent:
            self.within_gpu(indent, key, value.strip(), heading=match is None)
        else:
            self.beside_gpu(key, value.strip(), text, is_line=match is not None)

    def before_gpus(self, name: str, value: str) -> None:
        started = self.log.gpus or next(self.log.head.all(name), None) is not None
        if name == "timestamp" and started:
            # A second timestamp without a header between is another output of a loop.
            self.logs.append(Log())
        if name in _HEAD_KEYS and not self.log.gpus:
            self.log.head.children.append(Section(name, value))

    def within_gpu(self, indent: int, key: str, value: str, *, heading: bool) -> None:
        if heading and not _HEADING.match(key):
            return
        self.close(indent)
        # With all sections closed but the GPU's own, the line belongs to the GPU.
        section = Section(key, value)
        self.stack[-1][1].children.append(section)
        self.stack.append((indent, section))

    def beside_gpu(self, key: str, value: str, text: str, *, is_line: bool) -> None:
        gpu = self.stack[0][1]
        if is_line and (not gpu.children or self.log.flat):
            # The first line under a GPU is not indented: the paste lost its indentation, and only names
            # that need no heading can be told.
            self.log.flat = True
            gpu.children.append(Section(key, value))
        elif not self.log.flat and not is_message(text):
            # Anything else at this level ends the output; a warning in the midst of it does not.
            self.close(0)


def read_query(text: str) -> list[Log]:
    """Return the outputs of `nvidia-smi -q` in `text`, in order; those without a GPU included.

    A last line that has no line end is left out: it may be half a value.
    """
    reader = _Reader()
    lines = text.splitlines()
    if all(line.startswith(">") for line in lines if line):
        text = _QUOTE.sub("", text)
    whole, newline, rest = text.rpartition("\n")
    for raw in whole.split("\n") if newline else ():
        reader.line(raw.rstrip("\r").expandtabs(8))
    for log in reader.logs:
        if rest.strip() and log is reader.logs[-1]:
            log.cut = "the last line has no end and is left out"
    return [log for log in reader.logs if log.gpus or log.head.children]
