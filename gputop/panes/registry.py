"""The panes in the order of their keys."""

from typing import Final

from gputop.panes.base import Pane
from gputop.panes.errors import errors_pane
from gputop.panes.fleet import FleetPane
from gputop.panes.gpus import gpus_pane
from gputop.panes.memory import memory_pane
from gputop.panes.sources import SourcesPane

PANES: Final[tuple[Pane, ...]] = (FleetPane(), gpus_pane(), memory_pane(), errors_pane(), SourcesPane())
