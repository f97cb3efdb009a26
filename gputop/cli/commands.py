"""The commands of gputop: options, then one function each."""

import errno
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from gputop import __version__
from gputop.cli.exits import Exit, complain
from gputop.cli.log import log_to_file
from gputop.cli.options import common, typed
from gputop.config.config import Config, ConfigError, load
from gputop.config.paths import paths

_HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Given(dict[str, Any]):
    """Options typed before the command; the command's own are put over them."""


@click.group(invoke_without_command=True, context_settings=_HELP)
@click.version_option(__version__, "-V", "--version", message="gputop %(version)s")
@common
@click.pass_context
def gputop(context: click.Context, **options: Any) -> None:  # noqa: ANN401 - click passes options by name
    """Live GPUs and who holds them, in a terminal.

    \b
    gputop                              the screen, on what this machine has
    gputop --prometheus https://prom    the screen, on a cluster
    gputop demo                         the screen, on a simulated cluster
    gputop snapshot --json              one answer for programs
    gputop doctor                       what is read, how, and what is missing
    """  # noqa: D301 - click's own mark for lines that are not to be wrapped
    context.obj = Given(typed(options))
    if context.invoked_subcommand is None:
        from gputop.cli.top import top  # noqa: PLC0415 - the screen loads Textual

        raise SystemExit(top(configure(context.obj), fall_back=True))


def _command(name: str, words: str) -> Callable[[Callable[..., int]], click.Command]:
    """Register a command whose function takes the settings and returns an exit code."""

    def register(function: Callable[..., int]) -> click.Command:
        own = {p.name for p in getattr(function, "__click_params__", [])}

        @click.pass_context
        def call(context: click.Context, **options: Any) -> None:  # noqa: ANN401 - click passes by name
            mine = {k: options.pop(k) for k in list(options) if k in own}
            given = {**context.obj, **typed(options)}
            raise SystemExit(function(configure(given), **mine))

        call.__click_params__ = list(getattr(function, "__click_params__", []))  # type: ignore[attr-defined]  # where click keeps them
        return gputop.command(name, help=words)(common(call))

    return register


@_command("snapshot", "One answer: a table for people, or --json for programs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (schema gputop.snapshot/1).")
@click.option("--watch", is_flag=True, help="Go on, one JSON object a line, until interrupted.")
def snapshot(config: Config, *, as_json: bool, watch: bool) -> int:
    """Print the fleet once, or again and again."""
    from gputop.cli.snapshot import snapshot as answer  # noqa: PLC0415 - sources load with their need

    return answer(config, as_json=as_json, watch=watch)


@_command("doctor", "What is read and how it was found, what is missing, and the line to add.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (schema gputop.doctor/1).")
def doctor(config: Config, *, as_json: bool) -> int:
    """Examine sources, settings and terminal."""
    from gputop.cli.doctor import doctor as answer  # noqa: PLC0415 - sources load with their need

    return answer(config, as_json=as_json)


@_command("demo", "The screen on a simulated cluster, read by the clients that read a real one.")
@click.argument("scenario", required=False)
@click.option("--list", "list_only", is_flag=True, help="Name the scenarios that come with gputop.")
def demo(config: Config, *, scenario: str | None, list_only: bool) -> int:
    """Show the simulated cluster."""
    from gputop.cli.top import demo as answer  # noqa: PLC0415 - the screen loads Textual

    return answer(config, scenario, list_only=list_only)


@_command("release", "Let running screens go of the GPU device handles, so that a driver can be unloaded.")
@click.option("--resume", is_flag=True, help="Take the devices up again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (schema gputop.release/1).")
@click.option("--proc-root", hidden=True, default="/proc")
def release(config: Config, *, resume: bool, as_json: bool, proc_root: str) -> int:
    """Release or resume, then tell who still holds a device."""
    from gputop.cli.release import release as answer  # noqa: PLC0415 - not needed by the others

    del config
    return answer(paths(os.environ).runtime, Path(proc_root), resume=resume, as_json=as_json)


@_command("completion", "Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(config: Config, *, shell: str) -> int:
    """Print a script to be sourced."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - needed here alone

    del config
    made = get_completion_class(shell)
    if made is None:
        complain(f"no completion for {shell}")
        return Exit.FAILURE
    sys.stdout.write(made(gputop, {}, "gputop", "_GPUTOP_COMPLETE").source() + "\n")
    return Exit.OK


def configure(options: Mapping[str, Any]) -> Config:
    """Return the settings, with the log that they ask for set up.

    Raises:
        ConfigError: A setting cannot be used.
    """
    flags = dict(options)
    named = flags.pop("config_file", None) or os.environ.get("GPUTOP_CONFIG")
    file = Path(named) if named else paths(os.environ).config_file
    config = load(flags, os.environ, file, required=bool(named))
    log_to_file(config)
    return config


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        gputop.main(args=arguments, prog_name="gputop", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.FAILURE
    except BrokenPipeError:
        # The reader has gone, as `head` does; the interpreter must not complain while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE
    except Exception as error:  # noqa: BLE001 - sorted by `_failed`, which raises what it does not know
        return _failed(error)
    except KeyboardInterrupt:
        return Exit.INTERRUPT
    return Exit.OK


def _failed(error: Exception) -> int:
    """Say why a command failed and return its exit code; what is not foreseen goes on as a traceback."""
    from gputop.sources.base import SourceError  # noqa: PLC0415 - not for words alone

    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.UsageError):
        error.show()
        return Exit.USAGE
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EIO, errno.EDQUOT}:
        complain(f"the answer could not be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILURE
    for kind, code in ((click.Abort, Exit.INTERRUPT), (ConfigError, Exit.USAGE), (SourceError, Exit.NO_SOURCE)):
        if isinstance(error, kind):
            complain(error.reason if isinstance(error, SourceError) else str(error) or "interrupted")
            return code
    raise error
