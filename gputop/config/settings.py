"""Every setting, once: name, type, default, flag, environment variable, words.

The command line, the environment, the configuration file, `docs/configuration.md` and `gputop doctor` all
read this table. Secrets have no flag: a command line is seen by every user of the machine.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputop.config.errors import nearest
from gputop.config.moment import parse_moment


class Type(StrEnum):
    """What values a setting takes."""

    TEXT = "text"
    PATH = "path"
    TEXTS = "texts"
    SWITCH = "switch"
    NUMBER = "number"
    COUNT = "count"
    CHOICE_OR_FLAG = "text or nothing"


class Setting(Struct, frozen=True):
    """One line of the table.

    Attributes:
        name: Attribute of `Config` and key in config.toml.
        type: What values it takes.
        default: Value when nobody says.
        words: What it does.
        flag: Option on the command line, "" for none; a switch also has its "--no-" form.
        env: Environment variable, "" for none. Texts are divided by commas.
        metavar: What stands for the value in the help.
        check: Returns why a value is refused, or ""; of texts, each is asked about.
        in_file: Whether config.toml may set it; what makes sense for one run only may not.
    """

    name: str
    type: Type
    default: object
    words: str
    flag: str = ""
    env: str = ""
    metavar: str = ""
    check: Callable[[object], str] | None = None
    in_file: bool = True

    @property
    def negative(self) -> str:
        """Option that turns a switch off, "" where there is none."""
        if self.type is not Type.SWITCH:
            return ""
        return "--allow-actions" if self.name == "read_only" else f"--no-{self.flag.removeprefix('--')}"


LEAST_INTERVAL_S: Final = 0.2
MOST_INTERVAL_S: Final = 3600.0


def _interval(value: object) -> str:
    ok = isinstance(value, float) and math.isfinite(value) and LEAST_INTERVAL_S <= value <= MOST_INTERVAL_S
    return "" if ok else f"must be between {LEAST_INTERVAL_S:g} and {MOST_INTERVAL_S:g} seconds"


def _timeout(value: object) -> str:
    ok = isinstance(value, float) and math.isfinite(value) and 0 < value <= MOST_INTERVAL_S
    return "" if ok else f"must be more than 0 and at most {MOST_INTERVAL_S:g} seconds"


def _positive(value: object) -> str:
    return "" if isinstance(value, int) and value > 0 else "must be a whole number above 0"


PANES: Final = ("fleet", "gpus", "memory", "errors", "sources")
"""Names of the panes, in their order on the screen."""


def _pane(value: object) -> str:
    # "" stands for the pane that fits what is read.
    name = str(value)
    return "" if name in ("", *PANES) else f"is no pane{nearest(name, PANES)}; there are {', '.join(PANES)}"


def _moment(value: object) -> str:
    try:
        parse_moment(str(value))
    except (ValueError, OverflowError):
        return "is neither seconds since the epoch nor an ISO 8601 time"
    return ""


def _there(value: object) -> str:
    try:
        there = Path(str(value)).exists()
    except (OSError, ValueError):
        there = False
    return "" if there else "is not there: no such file or folder"


SETTINGS: Final = (
    Setting("interval", Type.NUMBER, 1.0, "Seconds between two readings of local GPUs and two frames.",
            "--interval", "GPUTOP_INTERVAL", "SECONDS", _interval),
    Setting("timeout", Type.NUMBER, 5.0, "Longest wait of one-shot commands for the first answers, in seconds.",
            "--timeout", "GPUTOP_TIMEOUT", "SECONDS", _timeout),
    Setting("nvml", Type.SWITCH, None, "Read local GPUs by NVML. By default where there are signs of one.",
            "--nvml", "GPUTOP_NVML"),
    Setting("nvml_only", Type.SWITCH, False, "Read local GPUs and nothing else.",
            "--nvml-only", "GPUTOP_NVML_ONLY"),
    Setting("host_name", Type.TEXT, "", "Name of this node, where schedulers know it by another.",
            "--host-name", "GPUTOP_HOST_NAME", "NAME"),
    Setting("processes", Type.SWITCH, True, "List processes on local GPUs.",
            "--processes", "GPUTOP_PROCESSES"),
    Setting("profiling", Type.SWITCH, False,
            "Sample SM and tensor activity by GPM (Hopper and newer). Off by default: reports differ on "
            "whether it disturbs profilers.", "--profiling", "GPUTOP_PROFILING"),
    Setting("prometheus_urls", Type.TEXTS, (), "Prometheus, or anything that speaks its API; may be repeated.",
            "--prometheus", "GPUTOP_PROMETHEUS_URL", "URL", in_file=False),
    Setting("exporters_urls", Type.TEXTS, (), "An exporter's page, read directly; may be repeated.",
            "--exporter", "GPUTOP_EXPORTERS", "URL", in_file=False),
    Setting("selector", Type.TEXT, "", 'Label matchers for every query, such as cluster="prod-eu".',
            "--selector", "GPUTOP_SELECTOR", "MATCHERS"),
    Setting("cluster", Type.TEXT, "", "Name of the cluster, where no label tells it.",
            "--cluster", "GPUTOP_CLUSTER", "NAME"),
    Setting("detect", Type.SWITCH, True, "Look for sources on this machine.", "--detect", "GPUTOP_DETECT"),
    Setting("pane", Type.TEXT, "", "Pane to begin with: fleet, gpus, memory, errors or sources.",
            "--pane", "GPUTOP_PANE", "PANE", _pane),
    Setting("theme", Type.TEXT, "", "Theme; the terminal's own colours (ansi) where there are few.",
            "--theme", "GPUTOP_THEME", "NAME"),
    Setting("ascii", Type.SWITCH, False, "Draw with ASCII characters only.", "--ascii", "GPUTOP_ASCII"),
    Setting("color", Type.SWITCH, True, "Use colours; NO_COLOR in the environment turns them off too.",
            "--color", "GPUTOP_COLOR"),
    Setting("mouse", Type.SWITCH, True, "Take mouse clicks and the wheel.", "--mouse", "GPUTOP_MOUSE"),
    Setting("read_only", Type.SWITCH, True, "Offer no action that changes anything.",
            "--read-only", "GPUTOP_READ_ONLY"),
    Setting("log_file", Type.PATH, "", "Where to write a log; none by default.",
            "--log-file", "GPUTOP_LOG_FILE", "FILE"),
    Setting("bundle", Type.TEXTS, (), "Read files instead of this machine: a folder, tar.gz or file; may be "
            "repeated.", "--bundle", metavar="PATH", check=_there, in_file=False),
    Setting("at", Type.TEXT, "", "Capture time of the bundle: seconds since the epoch or ISO 8601.",
            "--at", metavar="TIME", check=_moment, in_file=False),
    Setting("demo", Type.CHOICE_OR_FLAG, None, "Read the simulated cluster: a scenario's name or file.",
            "--demo", "GPUTOP_DEMO", "SCENARIO", in_file=False),
    Setting("demo_seed", Type.COUNT, 0, "Seed of the simulated cluster.",
            "--seed", "GPUTOP_DEMO_SEED", "N", in_file=False),
    Setting("demo_nodes", Type.COUNT, None, "Number of nodes of the simulated cluster.",
            "--demo-nodes", "GPUTOP_DEMO_NODES", "N", _positive, in_file=False),
)  # fmt: skip
"""All settings that are one value; endpoints with credentials are tables of config.toml."""

ENDPOINT_ENV: Final = {
    "username": "GPUTOP_PROMETHEUS_USERNAME",
    "password": "GPUTOP_PROMETHEUS_PASSWORD",
    "password_file": "GPUTOP_PROMETHEUS_PASSWORD_FILE",
    "token": "GPUTOP_PROMETHEUS_TOKEN",
    "token_file": "GPUTOP_PROMETHEUS_TOKEN_FILE",
    "token_command": "GPUTOP_PROMETHEUS_TOKEN_COMMAND",
    "client_cert": "GPUTOP_PROMETHEUS_CLIENT_CERT",
    "client_key": "GPUTOP_PROMETHEUS_CLIENT_KEY",
    "ca_file": "GPUTOP_PROMETHEUS_CA_FILE",
    "insecure": "GPUTOP_PROMETHEUS_INSECURE",
    "tenant": "GPUTOP_PROMETHEUS_TENANT",
    "headers_file": "GPUTOP_PROMETHEUS_HEADERS_FILE",
}
"""Environment variables that complete a Prometheus given by flag or environment."""
