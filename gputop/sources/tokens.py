"""Credentials of requests: read late, read again, and never shown."""

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Final

from gputop.model.endpoint import Endpoint
from gputop.model.status import SourceState
from gputop.model.text import clean
from gputop.sources.base import SourceError

_COMMAND_S: Final = 10.0
_COMMAND_KEEPS_S: Final = 600.0


class Tokens:
    """The bearer token of an endpoint: fixed, from a file that may change, or from a command.

    Service-account tokens are replaced while one watches, and cloud tokens live for about an hour; so a
    file is read again when it changes, and a command is run again when its token was refused. May be
    shared by threads.

    Args:
        endpoint: Where the token comes from.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._token = endpoint.token.reveal()
        self._read_at: float | None = None
        self._stamp: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def current(self) -> str:
        """Return the token, "" for none.

        Raises:
            SourceError: The file cannot be read or the command fails.
        """
        with self._lock:
            if self._endpoint.token_file:
                self._from_file(Path(self._endpoint.token_file).expanduser())
            elif self._endpoint.token_command:
                at = self._read_at
                if at is None or time.monotonic() - at > _COMMAND_KEEPS_S:
                    self._from_command()
            return self._token

    def refused(self, token: str | None = None) -> bool:
        """Forget a token that was refused; return whether another can be had at once.

        Args:
            token: The refused token; where another thread has replaced it meanwhile, the new one is kept.
        """
        with self._lock:
            if token is None or token == self._token:
                self._stamp = None
                self._read_at = None
            return bool(self._endpoint.token_command)

    def _from_file(self, path: Path) -> None:
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._token = path.read_text(encoding="utf-8").strip()
                self._stamp = stamp
        except (OSError, UnicodeDecodeError) as error:
            words = error.strerror if isinstance(error, OSError) else "it is no text"
            raise SourceError(f"token file {clean(str(path))}: {words}", SourceState.DENIED) from None

    def _from_command(self) -> None:
        command = self._endpoint.token_command
        try:
            # The command may not touch the terminal: it would ask in the middle of the screen.
            done = subprocess.run(  # noqa: S603 - the user's own command, without a shell
                list(command),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMMAND_S,
                check=True,
                start_new_session=True,
                env=os.environ.copy(),
            )
        except subprocess.TimeoutExpired:
            raise SourceError(f"token command {clean(command[0])}: no answer in {_COMMAND_S:.0f} s") from None
        except (OSError, subprocess.CalledProcessError) as error:
            code = getattr(error, "returncode", None)
            words = f"exit code {code}" if code is not None else clean(str(error))
            raise SourceError(f"token command {clean(command[0])}: {words}", SourceState.DENIED) from None
        self._token = done.stdout.decode(errors="replace").strip()
        self._read_at = time.monotonic()
