"""Xids as exporters tell them: a standing number, a window's count, a counter.

DCGM's gauge keeps the last Xid for ever and each new Xid is a new series (label err_code), so for some
minutes two of them stand side by side in Prometheus; the newer sample counts, and the older one is told
once.
"""

from msgspec import Struct

from gputop.model.facts import Fact, XidFact, XidKind
from gputop.sources.metrics.rows import Row, RowKey


class Standing(Struct, frozen=True):
    """One series of the gauge of the last Xid."""

    xid: int
    at: float
    text: str


class Seen(Struct):
    """The Xids of one GPU in one answer.

    Attributes:
        standing: Series of the gauge.
        windows: (Xid, window in seconds) to (count, time).
        counts: Xid to (count, time).
        times: Xid to the time it last happened.
    """

    standing: list[Standing]
    windows: dict[tuple[int, float], tuple[int, float]]
    counts: dict[int, tuple[float, float]]
    times: dict[int, float]


class Xids:
    """Remembers what has been told of each GPU's Xids."""

    def __init__(self) -> None:
        self._last: dict[RowKey, Standing] = {}
        self._present: dict[RowKey, frozenset[int]] = {}
        self._counts: dict[tuple[RowKey, int], float] = {}
        self._looked: set[RowKey] = set()

    def facts(self, row: Row, seen: Seen) -> list[Fact]:
        """Return what is to be told of one GPU, and put the last Xid among its values."""
        facts: list[Fact] = [
            XidFact(row.ref, xid, XidKind.WINDOW, count, window_s, at=at)
            for (xid, window_s), (count, at) in seen.windows.items()
            if xid > 0 and count > 0
        ]
        facts += self._events(row, seen)
        if seen.standing:
            facts += self._standing(row, seen)
        self._looked.add(row.key)
        return facts

    def _standing(self, row: Row, seen: Seen) -> list[Fact]:
        before = self._present.get(row.key, frozenset())
        # Where no sample time tells the order, an Xid that was not there before is the newer.
        ordered = sorted(seen.standing, key=lambda s: (s.at, s.xid not in before and s.xid > 0, s.xid))
        newest = ordered[-1]
        told = self._last.get(row.key)
        self._present[row.key] = frozenset(s.xid for s in ordered)
        self._last[row.key] = newest
        row.put("last_xid", float(newest.xid), newest.at)
        new = [s for s in ordered[:-1] if told is None or (s.at > told.at and s.xid != told.xid)]
        return [XidFact(row.ref, s.xid, XidKind.LAST, text=s.text, at=s.at) for s in (*new, newest) if s.xid > 0]

    def _events(self, row: Row, seen: Seen) -> list[Fact]:
        key = row.key
        facts: list[Fact] = []
        for xid, (count, at) in seen.counts.items():
            before = self._counts.get((key, xid))
            self._counts[key, xid] = count
            happened = seen.times.get(xid)
            if before is None and key not in self._looked and happened is None:
                # It stood there before anybody looked: that it happened is known, when is not.
                facts.append(XidFact(row.ref, xid, XidKind.LAST, at=at))
                continue
            # The series is born with its first event; a fall is a restart of the exporter.
            more = count if before is None or count < before else count - before
            if more > 0:
                when = happened if happened is not None else at
                facts.append(XidFact(row.ref, xid, XidKind.EVENT, int(more), at=when))
        return facts
