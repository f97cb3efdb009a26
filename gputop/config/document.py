"""docs/configuration.md and docs/keys.md, made from the tables that the program itself reads.

python -m gputop.config.document docs
"""

import sys
from pathlib import Path
from typing import Final

from gputop.config.settings import ENDPOINT_ENV, SETTINGS, Type
from gputop.keymap import ACTIONS, KeyAction, spelled

_HEAD: Final = """# Configuration

Made from `gputop/config/settings.py` by `python -m gputop.config.document docs`.

A value comes from the command line, else the environment, else the file, else what is detected, else the default.
`gputop doctor` says where each came from. The file is what `--config FILE` or `GPUTOP_CONFIG` names, else
`config.toml` in `$GPUTOP_CONFIG_DIR`, `$XDG_CONFIG_HOME/gputop` or `~/.config/gputop`. Paths in it begin at its own
folder or with `~`. A mistake in any of them ends gputop with exit code 2 and a line that names the place and the key.
Options stand before or after the command. `--bundle` and `--at` are for one run, so they have no variable. A secret
has no option: a command line is seen by every user of the machine.

| setting | option | variable | default | what it does |
|---|---|---|---|---|
"""

_ENDPOINTS: Final = """
## Servers with credentials

`[[prometheus]]` and `[[exporter]]` tables in config.toml, one for each server; they are read when none is named by
option or variable.

```toml
[[prometheus]]
url = "https://mimir.example/prometheus"   # with the path prefix of the API
name = "prod"
username = "ann"
password_file = "~/.secrets/mimir"         # or password_env = "VARIABLE"
# one of token_file, token_env, token_command = ["print-token", "--audience", "prom"]
# client_cert, client_key, ca_file, insecure = true
tenant = "team-a"                          # X-Scope-OrgID
headers = { X-A = "value", X-B = { env = "VARIABLE" }, X-C = { file = "path" } }
# headers_file = "path"                    # of lines "Name: value"
selector = 'cluster="prod-eu"'             # added to every query
cluster = "prod-eu"                        # where no label tells it
timeout_s = 10
```

A user and password in an address (`https://ann:word@prom.example`) are taken from the file and from variables, never
from the command line, and are not shown again.

The same keys hold for `[[exporter]]`, whose `url` is that of a page (`http://gpu-a03:9400/metrics`), except
`selector`: a page is read whole, so the key and `--selector` change nothing there. `--cluster` holds for both.

```toml
[[exporter]]
url = "https://gpu-a03.example:9400/metrics"
token_file = "~/.secrets/exporter"
ca_file = "~/.certs/ca.pem"
```

These variables complete a Prometheus given by option or variable, and nothing else: an exporter given so is read
without credentials but those in its address, so one that needs more belongs into a `[[exporter]]` table.

"""


def configuration() -> str:
    """Return the text of docs/configuration.md."""
    rows = []
    for s in SETTINGS:
        option = f"`{s.flag}`" if s.flag else ""
        if s.type is Type.SWITCH:
            option += f" / `{s.negative}`"
        elif s.metavar:
            option = f"`{s.flag} {s.metavar}`"
        name = f"`{s.name}`" if s.in_file else f"`{s.name}` (not in the file)"
        default = "" if s.default in (None, "", ()) else f"`{s.default}`"
        words = s.words.replace("|", "\\|")
        rows.append(f"| {name} | {option} | {f'`{s.env}`' if s.env else ''} | {default} | {words} |")
    variables = "\n".join(f"* `{name}`: `{key}`" for key, name in ENDPOINT_ENV.items())
    return _HEAD + "\n".join(rows) + "\n" + _ENDPOINTS + variables + "\n"


def keys() -> str:
    """Return the text of docs/keys.md."""
    rows = [f"| {a.group} | {_code(a)} | {a.words.replace('|', chr(92) + '|')} |" for a in ACTIONS]
    head = "# Keys\n\nMade from `gputop/keymap.py` by `python -m gputop.config.document docs`; `?` shows the same.\n\n"
    return head + "| | key | what it does |\n|---|---|---|\n" + "\n".join(rows) + "\n| | `1` to `5` | the panes |\n"


def _code(action: KeyAction) -> str:
    return " ".join(f"`{key}`" for key in spelled(action).split())


def main(folder: Path) -> None:
    """Write both files into a folder."""
    (folder / "configuration.md").write_text(configuration(), encoding="utf-8")
    (folder / "keys.md").write_text(keys(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
