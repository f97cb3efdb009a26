"""Where settings come from, which wins, what is refused, and that secrets stay hidden."""

import os
from pathlib import Path
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import pytest

from gputop.config.config import Config, ConfigError, load
from gputop.config.moment import parse_moment
from gputop.config.settings import PANES, SETTINGS
from gputop.panes.registry import PANES as SHOWN

TOKEN = "abc-very-secret"


def _load(tmp_path: Path, text: str = "", flags: dict | None = None, env: dict | None = None) -> Config:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    return load(flags or {}, env or {}, file)


def test_flag_beats_variable_beats_file_beats_default(tmp_path: Path) -> None:
    text = "interval = 5\n"
    assert _load(tmp_path).interval == 1.0
    assert _load(tmp_path, text).interval == 5.0
    assert _load(tmp_path, text, env={"GPUTOP_INTERVAL": "3"}).interval == 3.0
    both = _load(tmp_path, text, {"interval": 2.0}, {"GPUTOP_INTERVAL": "3"})
    assert (both.interval, both.origin("interval")) == (2.0, "--interval")


def test_every_setting_has_a_value_and_words(tmp_path: Path) -> None:
    config = _load(tmp_path)
    for setting in SETTINGS:
        assert getattr(config, setting.name) == setting.default
        assert setting.words.endswith(".")


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 0.01])
def test_an_interval_that_would_spin_or_never_come_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ConfigError, match="--interval"):
        _load(tmp_path, flags={"interval": value})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("intervall = 2", "did you mean interval"),
        ("interval = 'fast'", "must be a number"),
        ("nvml = 1", "must be true or false"),
        ("demo = 'x'", "no such setting"),
        ("= 3", "config.toml"),
        ("[[prometheus]]\nurl = 'ftp://x'", "http"),
        ("[[prometheus]]\nname = 'x'", "url"),
        ("[[prometheus]]\nurl = 'http://x'\nselektor = 'a'", "did you mean selector"),
        ("prometheus = 3", "must be a table"),
        ("[[prometheus]]\nurl = 'http://x'\ntimeout_s = 0", "timeout_s"),
    ],
)
def test_a_mistake_in_the_file_names_file_key_and_reason(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert words in str(caught.value)
    assert "config.toml" in str(caught.value)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    assert load({}, {}, tmp_path / "none.toml").interval == 1.0
    with pytest.raises(ConfigError, match="no such file"):
        load({}, {}, tmp_path / "none.toml", required=True)


def test_an_endpoint_of_the_file_has_its_secrets_from_files_and_variables(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(TOKEN + "\n", encoding="utf-8")
    config = _load(
        tmp_path,
        f"""
        [[prometheus]]
        url = "https://mimir.example/prometheus/"
        username = "ann"
        password_file = "{tmp_path}/password"
        token_env = "MY_TOKEN"
        tenant = "team-a|team-b"
        headers = {{ X-Extra = "{TOKEN}" }}
        """,
        env={"MY_TOKEN": TOKEN},
    )
    (endpoint,) = config.prometheus
    assert endpoint.url == "https://mimir.example/prometheus"
    assert endpoint.password.reveal() == TOKEN
    assert endpoint.token.reveal() == TOKEN
    assert TOKEN not in repr(endpoint)
    assert TOKEN not in str(config.items())


def test_credentials_in_an_address_are_taken_out_and_refused_on_a_command_line(tmp_path: Path) -> None:
    url = f"https://ann:{TOKEN}@prom.example"
    (endpoint,) = _load(tmp_path, env={"GPUTOP_PROMETHEUS_URL": url}).prometheus
    assert (endpoint.url, endpoint.username) == ("https://prom.example", "ann")
    assert endpoint.password.reveal() == TOKEN
    with pytest.raises(ConfigError, match="command line") as caught:
        _load(tmp_path, flags={"prometheus_urls": (url,)})
    assert TOKEN not in str(caught.value)


def test_what_is_named_for_this_run_replaces_the_files_endpoints(tmp_path: Path) -> None:
    text = '[[prometheus]]\nurl = "http://from-file"\n'
    assert [e.url for e in _load(tmp_path, text).prometheus] == ["http://from-file"]
    config = _load(tmp_path, text, {"prometheus_urls": ("http://a", "http://b")})
    assert [e.url for e in config.prometheus] == ["http://a", "http://b"]


def test_variables_complete_a_prometheus_that_was_named(tmp_path: Path) -> None:
    env = {"GPUTOP_PROMETHEUS_TOKEN": TOKEN, "GPUTOP_PROMETHEUS_TENANT": "t", "GPUTOP_PROMETHEUS_INSECURE": "yes"}
    (endpoint,) = _load(tmp_path, flags={"prometheus_urls": ("http://a",)}, env=env).prometheus
    assert (endpoint.token.reveal(), endpoint.tenant, endpoint.insecure) == (TOKEN, "t", True)


def test_a_header_cannot_carry_another(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="header"):
        _load(tmp_path, '[[prometheus]]\nurl = "http://x"\nheaders = { X = "a\\nY: b" }\n')


def test_each_setting_is_a_typed_attribute_that_holds_its_default() -> None:
    types = get_type_hints(Config)
    assert list(types) == [s.name for s in SETTINGS]
    for setting in SETTINGS:
        alternatives = get_args(types[setting.name]) if isinstance(types[setting.name], UnionType) else ()
        allowed = alternatives or (get_origin(types[setting.name]) or types[setting.name],)
        assert isinstance(setting.default, allowed), setting.name


def test_a_switch_that_was_turned_off_is_told_by_the_option_that_did_it(tmp_path: Path) -> None:
    config = _load(tmp_path, flags={"nvml": False, "read_only": False, "mouse": True})
    assert [config.origin(n) for n in ("nvml", "read_only", "mouse")] == ["--no-nvml", "--allow-actions", "--mouse"]


def test_nothing_is_allowed_to_act_by_default(tmp_path: Path) -> None:
    assert _load(tmp_path).read_only is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("interval = 1" + "0" * 400, "between"),
        ("interval = true", "must be a number"),
        ("theme = ['a']", "must be a text"),
        ("prometheus_urls = ['http://a']", "did you mean prometheus"),
        ("[prometheus]\nurl = 'http://a'", "[[prometheus]]"),
        ("a = " + "[" * 5000, "config.toml"),
    ],
    ids=lambda text: str(text)[:30],
)
def test_what_toml_allows_and_a_setting_does_not_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml") as caught:
        _load(tmp_path, text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"), [("GPUTOP_INTERVAL", "fast"), ("GPUTOP_NVML", "2"), ("GPUTOP_TIMEOUT", "0")]
)
def test_a_mistake_in_a_variable_names_it(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: "):
        _load(tmp_path, env={name: value})


def test_a_pipe_in_place_of_the_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(ConfigError, match="no plain file"):
        load({}, {}, tmp_path / "config.toml")


def test_a_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="directory"):
        load({}, {}, tmp_path)


def test_the_logs_path_may_begin_at_home(tmp_path: Path) -> None:
    config = _load(tmp_path, "log_file = '~/g.log'", env={"HOME": "/home/ann"})
    assert config.log_file == "/home/ann/g.log"
    assert _load(tmp_path, "log_file = 'g.log'").log_file == str(tmp_path / "g.log")
    assert _load(tmp_path, flags={"log_file": "g.log"}).log_file == "g.log"


def test_the_panes_that_may_be_named_are_those_there_are() -> None:
    assert [pane.id for pane in SHOWN] == list(PANES)


@pytest.mark.parametrize("name", [*PANES, ""])
def test_every_pane_may_be_named(tmp_path: Path, name: str) -> None:
    assert _load(tmp_path, f"pane = '{name}'").pane == name


def test_a_pane_that_is_none_is_refused_with_the_near_one_and_all_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean memory") as caught:
        _load(tmp_path, flags={"pane": "memori"})
    assert all(name in str(caught.value) for name in PANES)


@pytest.mark.parametrize("text", ["yesterday", "nan", "inf", "2025-13-01", "1e400"])
def test_a_moment_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--at: .*ISO 8601"):
        _load(tmp_path, flags={"at": text})


@pytest.mark.parametrize(
    "text", ["1744635343", "2025-04-14T12:55:43Z", "2025-04-14 14:55:43+02:00", "2025-04-14T12:55:43"]
)
def test_a_moment_is_seconds_or_iso_8601_and_utc_without_a_zone(text: str) -> None:
    assert parse_moment(text) == 1744635343.0


def test_a_bundle_must_be_there_and_each_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert _load(tmp_path, flags={"bundle": (str(tmp_path / "a.txt"),)}).bundle
    with pytest.raises(ConfigError, match=r"^--bundle: .*b\.txt is not there"):
        _load(tmp_path, flags={"bundle": (str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))})


def test_demo_and_bundle_are_not_read_together_but_a_profiles_demo_gives_way(tmp_path: Path) -> None:
    bundle = (str(tmp_path),)
    with pytest.raises(ConfigError, match="cannot both be read"):
        _load(tmp_path, flags={"demo": "default", "bundle": bundle})
    assert _load(tmp_path, flags={"bundle": bundle}, env={"GPUTOP_DEMO": "default"}).bundle == bundle


def test_the_demos_seed_and_size_have_variables(tmp_path: Path) -> None:
    config = _load(tmp_path, env={"GPUTOP_DEMO_SEED": "7", "GPUTOP_DEMO_NODES": "3"})
    assert (config.demo_seed, config.demo_nodes) == (7, 3)
    with pytest.raises(ConfigError, match=r"^GPUTOP_DEMO_NODES: "):
        _load(tmp_path, env={"GPUTOP_DEMO_NODES": "0"})
