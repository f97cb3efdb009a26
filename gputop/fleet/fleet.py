"""The one writer of the state.

`Fleet.apply` takes a batch of one source, finds the rows its facts belong to (`gputop.fleet.join`) and puts
them there by the handlers of `gputop.fleet.handlers`. It runs on the event loop and is never re-entered.
"""

from gputop.fleet.changes import Changes
from gputop.fleet.handlers import HANDLERS
from gputop.fleet.history import History
from gputop.fleet.join import Joiner
from gputop.fleet.state import View
from gputop.fleet.store import Store
from gputop.model.facts import Batch
from gputop.model.reading import Origin
from gputop.model.status import SourceStatus


class Fleet:
    """The state of everything that is watched."""

    def __init__(self) -> None:
        self._store = Store()
        self._joiner = Joiner(self._store)
        self._view: View | None = None

    @property
    def history(self) -> History:
        """The last minutes of each GPU."""
        return self._store.history

    def apply(self, batch: Batch) -> None:
        """Put the facts of a batch into the state."""
        origin = Origin(batch.source, batch.rank, batch.at, batch.stale_after_s)
        for fact in batch.facts:
            at = getattr(fact, "at", None)
            own = origin if at is None else Origin(batch.source, batch.rank, at, batch.stale_after_s)
            HANDLERS[type(fact)](self._store, self._joiner, fact, own, batch.interval_s)
        self._view = None

    def set_status(self, status: SourceStatus) -> None:
        """Replace the status of one source."""
        if self._store.sources.get(status.name) != status:
            self._store.sources[status.name] = status
            self._store.changes.sources.add(status.name)
            self._view = None

    def expire(self, now: float, keep_s: float) -> None:
        """Drop GPUs that no source has listed for `keep_s` seconds, and nodes left with none.

        Inventory is kept apart from samples, so a lost GPU stays a row; but a cluster that scales up and
        down for weeks must not fill the memory with machines long given back.
        """
        self._joiner.expire(now - keep_s)
        self._view = None

    def take_changes(self) -> Changes:
        """Return what changed since the last call."""
        changes, self._store.changes = self._store.changes, Changes()
        return changes

    def view(self) -> View:
        """Return a snapshot of the state; the same object while nothing changes."""
        if self._view is None:
            self._view = self._store.snapshot()
        return self._view
