"""gputop: a terminal UI for live GPU and allocation monitoring."""

__version__ = "0.1.0"
