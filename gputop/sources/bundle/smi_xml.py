"""`nvidia-smi -q -x` XML, read into trees one GPU at a time.

nvidia-smi does not escape process names in all versions, crashes in the middle of a page when a GPU falls
off the bus, and is redirected by shells that add lines before and after. So each `<gpu>` element is parsed
on its own: what is broken in one costs the rest of that one.

Nothing of a document type is ever parsed: everything before the root element is cut off and entities other
than XML's own five and character numbers are taken as text, so neither external entities nor entity bombs
(CVE-2003-1564) have a place to stand.
"""

import re
from typing import Final
from xml.parsers import expat

from gputop.sources.bundle.smi_tree import Log, Section

_ROOT: Final = "<nvidia_smi_log"
_GPU: Final = re.compile(r"<gpu(?:\s+id\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'))?\s*>")
_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_NUMBERED: Final = re.compile(r"&#(x[0-9A-Fa-f]{1,6}|[0-9]{1,7});")
_FREE_TEXT: Final = re.compile(r"(<(process_name|product_name|error)>)(.{0,8192}?)(</\2>)", re.DOTALL)
_SKIPPED: Final = frozenset({"supported_clocks", "accounted_processes"})


def _number_or_nothing(match: re.Match[str]) -> str:
    """Keep a numbered character that XML allows; drop one that would stop the parser."""
    digits = match.group(1)
    code = int(digits[1:], 16) if digits[0] == "x" else int(digits)
    allowed = code in {9, 10, 13} or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return match.group(0) if allowed else ""


def _mend(text: str) -> str:
    """Make text of one element well-formed where only characters are wrong."""
    text = _FORBIDDEN.sub("", text)
    text = _FREE_TEXT.sub(lambda m: m.group(1) + m.group(3).replace("<", "&lt;") + m.group(4), text)
    return _NUMBERED.sub(_number_or_nothing, _AMPERSAND.sub("&amp;", text))


class _Builder:
    """Builds one tree from parser events; names the place where the text breaks."""

    def __init__(self) -> None:
        self.stack = [Section("")]
        self.text: list[str] = []
        self.skip = 0
        self.done = False

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if self.skip or name in _SKIPPED:
            self.skip += 1
            return
        section = Section(name)
        self.stack[-1].children.append(section)
        self.stack.append(section)
        self.text.clear()

    def end(self, _name: str) -> None:
        if self.skip:
            self.skip -= 1
            return
        section = self.stack.pop()
        section.closed = True
        if not section.children:
            section.value = "".join(self.text).strip()
        self.text.clear()
        self.done = len(self.stack) == 1

    def characters(self, text: str) -> None:
        if not self.skip:
            self.text.append(text)


def _parse(text: str) -> tuple[Section, str, int]:
    """Parse one element; return its tree, what broke it ("" if nothing) and the line of the break.

    Leaves that were not closed are dropped: their text may be half a value.
    """
    builder = _Builder()
    parser = expat.ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    broken, line = "", 0
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        if not builder.done:
            broken, line = expat.errors.messages[error.code], error.lineno
    root = builder.stack[0]
    for parent, child in zip(builder.stack, builder.stack[1:], strict=False):
        if not child.children and child is builder.stack[-1]:
            parent.children.remove(child)
    return root, broken, line


def _document(text: str, first_line: int) -> Log:
    log = Log()
    starts = list(_GPU.finditer(text))
    head_end = starts[0].start() if starts else len(text)
    head, broken, line = _parse(_mend(text[:head_end]))
    log.head = next(iter(head.children), log.head)
    if not starts and broken:
        log.cut = f"line {first_line + line - 1}: {broken}"
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=False):
        piece = text[start.start() : end]
        tree, broken, line = _parse(_mend(piece))
        gpu = next(iter(tree.children), Section("gpu"))
        gpu.value = start.group(1) or start.group(2) or ""
        log.gpus.append(gpu)
        if broken and not log.cut:
            where = first_line + text.count("\n", 0, start.start()) + line - 1
            log.cut = f"line {where}: {broken}"
    if not log.cut and "</nvidia_smi_log>" not in text:
        log.cut = f"line {first_line + text.count(chr(10))}: it ends before </nvidia_smi_log>"
    return log


def read_xml(text: str) -> list[Log]:
    """Return the outputs of `nvidia-smi -q -x` in `text`, in order."""
    starts = [match.start() for match in re.finditer(re.escape(_ROOT) + r"[\s>]", text)]
    return [
        _document(text[start:end], 1 + text.count("\n", 0, start))
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
    ]
