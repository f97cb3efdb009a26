"""Exporter text to samples, by prometheus_client's parser.

Real pages are not always well-formed: dcgm-exporter writes label values without escaping them, wrote
"ERROR - FAILED TO CONVERT TO STRING" as a value (NVIDIA/dcgm-exporter#394), and a connection may end in the
middle of a line. A bad line costs that line, never the page.

Only sample lines are given to the parser. Types and helps are what the exporter's configuration says, so
they are not evidence, and the parser renames counters by them.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputop.model.text import clean
from gputop.sources.metrics.sample import Sample, is_time

MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest page that is read: a full node of GPUs with all metrics stays under 1 MiB."""

_DROPPED_KEPT: Final = 5
_LABEL: Final = re.compile(r'([A-Za-z_]\w*)="(.*?)"(?=\s*,\s*(?:[A-Za-z_]\w*="|$)|\s*$)', re.DOTALL)
_LINE: Final = re.compile(r"([A-Za-z_:][\w:]*)\{(.*)\}(.*)", re.DOTALL)
_UNESCAPED: Final = re.compile(r'\\(?![\\n"])|"')
# A line of exporter text may begin with a brace too: {"name with.dots",label="value"} 1
_JSON: Final = re.compile(r'\[|\{\s*(?:\}|"[^"]*"\s*:)')
# An exemplar stands after the number, outside of quotes; the parser would take its number for a time.
_EXEMPLAR: Final = re.compile(r'((?:[^"]|"(?:[^"\\]|\\.)*")*?)[ \t]# \{.*')


class Text(Struct, frozen=True):
    """What a page says.

    Attributes:
        samples: Samples, times on the clock of the exporter where it tells them.
        dropped: Number of lines that could not be read.
        examples: The first of them, cleaned.
        families: Names in TYPE and HELP lines and in samples.
        is_cut: The last line has no end: the page was cut off.
        refusal: Why it is no page of metrics at all, "" when it is one.
    """

    samples: tuple[Sample, ...]
    dropped: int = 0
    examples: tuple[str, ...] = ()
    families: frozenset[str] = frozenset()
    is_cut: bool = False
    refusal: str = ""

    @property
    def trouble(self) -> str:
        """One line on what was dropped, "" when nothing was."""
        words: list[str] = []
        if self.dropped:
            lines = "line" if self.dropped == 1 else "lines"
            words.append(f"{self.dropped} {lines} cannot be read, such as: {clean(self.examples[0], 80)}")
        if self.is_cut:
            words.append("the page ends in the middle of a line")
        return "; ".join(words)


def refusal(text: str) -> str:
    """Return in words why a body is no page of metrics, or "" if it may be one."""
    head = text[:2048].lstrip("\ufeff \t\r\n").lower()
    if not head:
        return "the answer is empty"
    if head.startswith(("<!doctype", "<html", "<head", "<?xml", "<body")):
        title = re.search(r"<title>([^<]*)", text[:4096], re.IGNORECASE)
        named = f' titled "{clean(title.group(1).strip(), 60)}"' if title and title.group(1).strip() else ""
        return f"the answer is a web page{named}, not metrics: a login page or a wrong path?"
    if _JSON.match(head):
        return "the answer is JSON, not metrics: is this the address of an API?"
    return ""


def read_text(text: str) -> Text:
    """Return the samples of a page of exporter text or OpenMetrics."""
    why = refusal(text)
    if why:
        return Text((), refusal=why)
    lines = text.split("\n")
    is_cut = not text.endswith("\n") and not lines[-1].startswith("#") and bool(lines[-1].strip())
    is_open = any(line.strip() == "# EOF" for line in lines[-3:])
    families = {parts[2] for line in lines if line.startswith("# ") and len(parts := line.split(None, 3)) > 2}
    # A number cut off at its end is another number: 9731 read as 97.
    whole = lines[:-1] if is_cut else lines
    wanted = [clean(s, 1 << 20) for line in whole if (s := line.strip()) and not s.startswith("#")]
    if is_open:
        wanted = [_EXEMPLAR.sub(r"\1", line) if " # {" in line else line for line in wanted]
    samples, bad = _parse(wanted, 1000.0 if is_open else 1.0)
    if not samples and (bad or is_cut):
        first = clean((bad or lines)[0].strip(), 80)
        return Text((), dropped=len(bad), examples=(first,), refusal=f"the answer is no metrics: {first}")
    return Text(
        tuple(samples),
        dropped=len(bad),
        examples=tuple(clean(line, 200) for line in bad[:_DROPPED_KEPT]),
        families=frozenset(families | {s.name for s in samples}),
        is_cut=is_cut,
    )


def _parse(lines: list[str], per_second: float) -> tuple[list[Sample], list[str]]:
    try:
        return _samples("\n".join(lines), per_second), []
    except (ValueError, IndexError):
        pass
    samples: list[Sample] = []
    bad: list[str] = []
    for line in lines:
        for attempt in (line, _escaped(line)):
            try:
                samples += _samples(attempt, per_second)
            except (ValueError, IndexError):
                continue
            break
        else:
            bad.append(line)
    return samples, bad


def _samples(text: str, per_second: float) -> list[Sample]:
    # Imported late: --version and --help do without it.
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - see above

    found: list[Sample] = []
    for family in text_string_to_metric_families(text):
        for s in family.samples:
            # OpenMetrics tells seconds where the older text tells milliseconds, which the parser assumes.
            at = float(s.timestamp) * per_second if isinstance(s.timestamp, int | float) else None
            found.append(Sample(s.name, s.labels, float(s.value), at if at is not None and is_time(at) else None))
    return found


def _escaped(line: str) -> str:
    """Return the line with the quotes and backslashes within its label values escaped."""
    match = _LINE.fullmatch(line)
    if match is None:
        return line
    name, inside, rest = match.groups()
    pairs = (f'{key}="{_UNESCAPED.sub(_escape, value)}"' for key, value in _LABEL.findall(inside))
    return f"{name}{{{','.join(pairs)}}}{rest}"


def _escape(match: re.Match[str]) -> str:
    return "\\" + match.group(0)


def local_times(samples: Iterable[Sample], clock_skew_s: float) -> tuple[Sample, ...]:
    """Return samples with their times brought from the exporter's clock to this machine's.

    Args:
        samples: Samples of a page.
        clock_skew_s: How far the exporter's clock is ahead of this machine's.
    """
    return tuple(s if s.at is None else Sample(s.name, s.labels, s.value, s.at - clock_skew_s) for s in samples)
