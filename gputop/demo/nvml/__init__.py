"""A simulated NVML: pynvml, and whatever is written on it, runs over the demo's world unchanged.

``python -m gputop.demo.nvml --scenario default --node gpu-001 -- -m nvitop -1`` runs another Python program
over it. Nothing but pynvml's own library object is replaced, so struct versions, buffer sizes, missing
symbols and error codes reach the caller through pynvml's real code.
"""

from gputop.demo.nvml.install import ENVIRONMENT, Settings, install, install_from_env
from gputop.demo.nvml.library import FakeNvml

__all__ = ["ENVIRONMENT", "FakeNvml", "Settings", "install", "install_from_env"]
