"""Common options, made from the table of settings; they may stand before or after the command."""

from collections.abc import Callable
from typing import Any, Final

import click

from gputop.config.settings import SETTINGS, Setting, Type

_CLICK_TYPES: Final = {Type.NUMBER: click.FLOAT, Type.COUNT: click.INT}
_DEMO_DEFAULT: Final = "default"


def _option(setting: Setting) -> Callable[[Any], Any]:
    words = setting.words
    if setting.env:
        words += f"  [{setting.env}]"
    if setting.type is Type.SWITCH:
        name = setting.flag.removeprefix("--")
        negative = "--allow-actions" if setting.name == "read_only" else f"--no-{name}"
        return click.option(f"{setting.flag}/{negative}", setting.name, default=None, help=words)
    if setting.type is Type.CHOICE_OR_FLAG:
        return click.option(
            setting.flag,
            setting.name,
            is_flag=False,
            flag_value=_DEMO_DEFAULT,
            default=None,
            metavar=f"[{setting.metavar}]",
            help=words,
        )
    return click.option(
        setting.flag,
        setting.name,
        type=_CLICK_TYPES.get(setting.type, click.STRING),
        multiple=setting.type is Type.TEXTS,
        default=None,
        metavar=setting.metavar,
        help=words,
    )


def common(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all settings as options, and --config."""
    for setting in reversed(SETTINGS):
        if setting.flag:
            command = _option(setting)(command)
    return click.option(
        "--config", "config_file", metavar="FILE", default=None, help="Configuration file.  [GPUTOP_CONFIG]"
    )(command)


def typed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were typed, out of all that click passes."""
    return {name: value for name, value in values.items() if value is not None and value != ()}
