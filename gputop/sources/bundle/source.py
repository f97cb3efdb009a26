"""The bundle as a source: what `--bundle` puts in the place of a machine."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from gputop.model.facts import Batch
from gputop.model.status import Cost, Finding
from gputop.model.text import clean
from gputop.sources.base import DemandBoard, SourceError
from gputop.sources.bundle.load import LoadedBundle, load

_IDLE_S: Final = 3600.0


class BundleSource:
    """Files read once; after that it only keeps what it said.

    Batches carry the name of the file they are from ("bundle gpu-a03/nvidia-smi.xml"), so that every number
    can be traced to its file.

    Args:
        paths: Folders, archives and files.
        at: Capture time, seconds since the epoch; None to find it in the files.
    """

    def __init__(self, paths: Sequence[Path | str], at: float | None = None) -> None:
        self.name = "bundle"
        self.kind = "bundle"
        self.found = "--bundle"
        self.target = clean(", ".join(str(path) for path in paths))
        self.deadline_s = math.inf
        self._paths = tuple(paths)
        self._at = at
        self._loaded: LoadedBundle | None = None
        self._took_s = 0.0

    def prepare(self) -> LoadedBundle:
        """Read the files now, if that has not been done, and return what they say.

        The program calls it before anything is shown, because its clock is the bundle's.

        Raises:
            SourceError: A path cannot be opened.
        """
        if self._loaded is None:
            began = time.monotonic()
            self._loaded = load(self._paths, self._at)
            self._took_s = time.monotonic() - began
        return self._loaded

    async def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        """Yield what the files say, once, then stay.

        Raises:
            SourceError: A path cannot be opened, or nothing in the files can be read.
        """
        loaded = await asyncio.to_thread(self.prepare)
        if loaded.trouble and not any(batch.facts for batch in loaded.batches):
            raise SourceError(loaded.trouble)
        for batch in loaded.batches:
            yield batch
        while True:
            await board.wait(_IDLE_S)

    def trouble(self) -> str:
        """Return why nothing can be shown, or which files are not whole; "" when all is well."""
        return self._loaded.trouble if self._loaded is not None else ""

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return the driver versions in the files."""
        return tuple(("driver", version) for version in self._loaded.drivers) if self._loaded is not None else ()

    def findings(self) -> tuple[Finding, ...]:
        """Return what each file was read as, and what was left out."""
        return self._loaded.findings if self._loaded is not None else ()

    def cost(self) -> Cost:
        """Return what the reading has cost."""
        if self._loaded is None:
            return Cost()
        return Cost(requests=self._loaded.files, bytes_read=self._loaded.bytes_read, last_s=self._took_s)

    async def aclose(self) -> None:
        """Nothing is held open."""
