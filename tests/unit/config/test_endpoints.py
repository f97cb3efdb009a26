"""Servers with their credentials: what is taken, what is refused, and that no message shows a secret."""

from pathlib import Path
from urllib.parse import quote

import pytest

from gputop.config.config import Config, ConfigError, load
from gputop.config.endpoints import KEYS
from gputop.model.endpoint import Endpoint

SECRET = "s3cret-word"


def _load(tmp_path: Path, rows: str = "", flags: dict | None = None, env: dict | None = None) -> Config:
    file = tmp_path / "config.toml"
    file.write_text(rows and f'[[prometheus]]\nurl = "http://p"\n{rows}\n', encoding="utf-8")
    return load(flags or {}, env or {}, file)


def _row(tmp_path: Path, rows: str, env: dict | None = None) -> Endpoint:
    (found,) = _load(tmp_path, rows, env=env).prometheus
    return found


def test_every_field_of_an_endpoint_can_be_set_in_the_file() -> None:
    assert set(Endpoint.__struct_fields__) - {"found"} <= set(KEYS)


@pytest.mark.parametrize(
    "url",
    [
        f"https://ann:{SECRET}@prom.example",
        f"https://ann:{SECRET}@prom.example/a/prefix/",
        f"https://ann:{SECRET}@prom.example/?to=http://b",
    ],
)
def test_a_password_in_a_variable_is_used_and_shown_nowhere(tmp_path: Path, url: str) -> None:
    config = _load(tmp_path, env={"GPUTOP_PROMETHEUS_URL": url})
    (found,) = config.prometheus
    assert (found.username, found.password.reveal()) == ("ann", SECRET)
    assert SECRET not in repr(found) + str(config.items()) + str(vars(config))


def test_an_at_sign_in_a_path_is_no_credential(tmp_path: Path) -> None:
    (found,) = _load(tmp_path, flags={"prometheus_urls": ("https://p/a@b",)}).prometheus
    assert (found.url, found.username) == ("https://p/a@b", "")


@pytest.mark.parametrize(
    "url",
    [
        f"ann:{SECRET}@prom:9090",
        f"ftp://ann:{SECRET}@prom",
        f"http://ann:{SECRET}@prom:port",
        f"http://ann:{SECRET}/x@prom",
        f"http://ann:{SECRET}@[::1",
        f"http://ann:{SECRET}@",
        f"http://ann:{SECRET}@pro m",
        f"http://ann:{SECRET}\nx@prom",
        f"http://ann:{SECRET}?x@prom",
        f"http://ann:{SECRET}#x@prom",
        f"http://ann:{SECRET}[x@prom",
        # Up to the slash it is a host with a port: what follows would be asked of it, and shown.
        f"http://ann:123/{SECRET}@prom",
        f"http://ann:x@{SECRET}/y@prom",
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(tmp_path: Path, url: str) -> None:
    for origin, flags, env in (
        ("GPUTOP_PROMETHEUS_URL", {}, {"GPUTOP_PROMETHEUS_URL": url}),
        ("--prometheus", {"prometheus_urls": (url,)}, {}),
    ):
        with pytest.raises(ConfigError) as caught:
            _load(tmp_path, flags=flags, env=env)
        assert str(caught.value).startswith(origin)
        assert SECRET not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("password", ["a@b", "a:b", "@", ":", "a@b:c@d", "100%", "p&q=r", "ä€"])
def test_a_password_may_have_what_does_not_end_it(tmp_path: Path, password: str) -> None:
    (found,) = _load(tmp_path, env={"GPUTOP_PROMETHEUS_URL": f"http://ann:{password}@prom:9090/x"}).prometheus
    assert (found.url, found.username, found.password.reveal()) == ("http://prom:9090/x", "ann", password)


@pytest.mark.parametrize("password", ["a/b", "123/b", "a?b", "a#b", "a[b", "a@b/c"])
def test_a_password_that_ends_early_is_told_how_to_be_written(tmp_path: Path, password: str) -> None:
    with pytest.raises(ConfigError, match="%2F") as caught:
        _load(tmp_path, env={"GPUTOP_PROMETHEUS_URL": f"http://ann:{password}@prom"})
    assert password not in str(caught.value)
    assert "http://prom:" in str(caught.value)
    encoded = quote(password, safe="")
    (found,) = _load(tmp_path, env={"GPUTOP_PROMETHEUS_URL": f"http://ann:{encoded}@prom"}).prometheus
    assert found.password.reveal() == password


def test_an_address_without_scheme_is_told_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="such as http://prom:9090"):
        _load(tmp_path, flags={"prometheus_urls": ("prom:9090",)})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("password = 5", "password: must be a text"),
        ("username = 5", "username: must be a text"),
        ("token_env = 'NOT_SET'", "token_env: the variable NOT_SET is not set"),
        ("password_file = 'none'", "password_file"),
        ("headers_file = 'none'", "headers_file"),
        (f"password = '{SECRET}'\npassword_env = 'HOME'", "one of them is enough"),
        (f"token = '{SECRET}'\ntoken_file = 'x'", "one of them is enough"),
        ("client_key = 'x'", "client_cert"),
        ("insecure = 'yes'", "insecure: must be true or false"),
        ("timeout_s = nan", "timeout_s"),
        ("timeout_s = true", "timeout_s"),
        ("token_command = 'print-token'", "token_command: must be a list"),
        ("headers = 'x'", "headers: must be a table"),
        ("headers = { X = 5 }", "headers: X: must be a text"),
        ("headers = { X = { env = 'HOME', file = 'x' } }", "headers: X: must be a text"),
        ("headers = { X = { env = 'NOT_SET' } }", "NOT_SET is not set"),
        (f"headers = {{ 'X:Y' = '{SECRET}' }}", "no name of a header"),
        (f'headers = {{ X = "{SECRET}\\r\\nY: z" }}', "cannot carry"),
        (f'token = "{SECRET}\\nY: z"', "cannot carry"),
        ('tenant = "a\\nb"', "cannot carry"),
        ("tennant = 'a'", "did you mean tenant"),
    ],
)
def test_a_mistake_names_the_file_the_table_and_the_key(tmp_path: Path, rows: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, rows)
    said = str(caught.value)
    assert "config.toml: [[prometheus]]" in said
    assert words in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GPUTOP_PROMETHEUS_INSECURE", "perhaps"),
        ("GPUTOP_PROMETHEUS_TOKEN_COMMAND", f'print "{SECRET}'),
        ("GPUTOP_PROMETHEUS_TOKEN", f"{SECRET}\n"),
    ],
)
def test_a_mistake_in_a_variable_is_told_by_words(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, flags={"prometheus_urls": ("http://p",)}, env={name: value})
    assert SECRET not in str(caught.value)


def test_headers_come_from_the_file_variables_and_other_files(tmp_path: Path) -> None:
    (tmp_path / "value").write_text(f"{SECRET}\n", encoding="utf-8")
    (tmp_path / "lines").write_text(f"X-D: d:{SECRET}\n\n", encoding="utf-8")
    rows = "headers = { X-A = 'a', X-B = { env = 'MINE' }, X-C = { file = 'value' } }\nheaders_file = 'lines'"
    found = _row(tmp_path, rows, {"MINE": "b"})
    assert {name: value.reveal() for name, value in found.headers} == {
        "X-A": "a",
        "X-B": "b",
        "X-C": SECRET,
        "X-D": f"d:{SECRET}",
    }
    assert SECRET not in repr(found)


def test_a_line_that_is_no_header_is_told_by_number_as_it_may_be_a_secret(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text(f"X-A: a\n{SECRET}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2") as caught:
        _load(tmp_path, "headers_file = 'lines'")
    assert SECRET not in str(caught.value)


def test_paths_of_the_file_begin_in_its_folder_or_at_home(tmp_path: Path) -> None:
    rows = "ca_file = 'ca.pem'\nclient_cert = '~/c.pem'\ntoken_file = '/run/token'"
    found = _row(tmp_path, rows, {"HOME": "/home/ann"})
    assert (found.ca_file, found.client_cert, found.token_file) == (
        str(tmp_path / "ca.pem"),
        "/home/ann/c.pem",
        "/run/token",
    )


def test_the_files_selector_and_cluster_are_those_of_a_server_that_has_none(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        'cluster = "all"\n[[prometheus]]\nurl = "http://a"\n[[prometheus]]\nurl = "http://b"\ncluster = "own"\n',
        encoding="utf-8",
    )
    assert [e.cluster for e in load({}, {}, file).prometheus] == ["all", "own"]


def test_a_prometheus_password_is_not_sent_to_exporters(tmp_path: Path) -> None:
    env = {"GPUTOP_PROMETHEUS_TOKEN": SECRET, "GPUTOP_EXPORTERS": "http://a/metrics, http://b/metrics"}
    config = _load(tmp_path, env=env)
    assert [e.url for e in config.exporters] == ["http://a/metrics", "http://b/metrics"]
    assert not any(e.token or e.password for e in config.exporters)
