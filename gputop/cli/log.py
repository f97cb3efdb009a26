"""The log that `--log-file` asks for: the same for every command."""

import logging
from typing import Final

from gputop.config.config import Config
from gputop.config.errors import ConfigError

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


def log_to_file(config: Config) -> None:
    """Write what gputop logs into the file that the settings name, if they name one.

    Raises:
        ConfigError: The file cannot be written.
    """
    if not config.log_file:
        return
    try:
        handler = logging.FileHandler(config.log_file, encoding="utf-8")
    except OSError as error:
        words = f"{config.origin('log_file')}: {config.log_file}: {error.strerror or 'cannot be written'}"
        raise ConfigError(words) from None
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger().addHandler(handler)
    # Other libraries log addresses as they were sent, at INFO: theirs is told from warnings on.
    logging.getLogger("gputop").setLevel(logging.INFO)
