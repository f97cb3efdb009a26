"""TLS and proxies on the way to the server: what is trusted, who is shown, and each refusal in its own words."""

import ssl
from pathlib import Path
from select import select
from socket import create_connection, socket

import pytest

from gputop.config.config import load
from gputop.model.secret import Secret
from gputop.model.status import SourceState
from tests.integration.certificates import Authority, serving
from tests.integration.prometheus_rig import Request, ask, refused, reply, running, vector

ONE = vector(({"__name__": "up"}, 1))
HIDDEN = "s3cr3t-value"


class Made:
    """Certificates that all tests share, as making keys takes its time."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "own", "gputop test authority")
        self.other = Authority(folder / "other", "another authority")
        self.server = self.authority.give("server", names="IP:127.0.0.1,DNS:localhost")
        self.elsewhere = self.authority.give("elsewhere", names="DNS:elsewhere.example,IP:192.0.2.1")
        self.expired = self.authority.give("expired", expired=True)
        self.client = self.authority.give("client", client=True)
        self.stranger = self.other.give("stranger", client=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("certificates"))


def test_an_authority_of_the_configuration_is_trusted_whatever_the_environment_says(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, made.other.path)
    with running(serving(made.server)) as stub:
        stub.answer = reply(ONE)
        file = tmp_path / "config.toml"
        file.write_text(f'[[prometheus]]\nurl = "{stub.url}"\nca_file = "{made.authority.path}"\n', encoding="utf-8")
        (endpoint,) = load({}, {}, file).prometheus
        assert ask(endpoint.url, ca_file=endpoint.ca_file) == ["1"]
        assert "not trusted" in refused(stub.url).reason


def test_an_authority_of_the_environment_is_trusted_where_none_is_configured(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", made.authority.path)
    with running(serving(made.server)) as stub:
        stub.answer = reply(ONE)
        assert ask(stub.url) == ["1"]


@pytest.mark.parametrize(
    ("shown", "trusted", "words"),
    [
        ("server", "", "the certificate is not trusted (ca_file)"),
        ("server", "other", "the certificate is not trusted (ca_file)"),
        ("elsewhere", "authority", "the certificate is for another name"),
        ("expired", "authority", "the certificate has expired"),
    ],
)
def test_a_certificate_that_is_not_accepted(made: Made, shown: str, trusted: str, words: str) -> None:
    with running(serving(getattr(made, shown))) as stub:
        stub.answer = reply(ONE)
        error = refused(stub.url, ca_file=getattr(made, trusted).path if trusted else "")
        assert words in error.reason
        assert stub.url.removeprefix("https://") in error.reason
        # No request has gone out to a server that is not known.
        assert stub.requests == []


def test_what_is_wrong_with_a_certificate_is_told_by_one_thing_only(made: Made) -> None:
    with running(serving(made.elsewhere)) as stub:
        assert "not trusted" not in refused(stub.url, ca_file=made.authority.path).reason


def test_insecure_asks_whoever_answers_and_is_silent_about_it(made: Made, recwarn: pytest.WarningsRecorder) -> None:
    with running(serving(made.expired)) as stub:
        stub.answer = reply(ONE)
        assert ask(stub.url, insecure=True) == ["1"]
    assert not recwarn.list


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_client_certificates(made: Made, version: str) -> None:
    context = serving(made.server, clients_of=made.authority)
    context.maximum_version = context.minimum_version = ssl.TLSVersion[version]
    with running(context) as stub:
        stub.answer = reply(ONE)
        trust = {"ca_file": made.authority.path}
        both = Path(made.client.path).with_suffix(".both")
        both.write_text(Path(made.client.path).read_text() + Path(made.client.key).read_text())
        assert ask(stub.url, **trust, client_cert=made.client.path, client_key=made.client.key) == ["1"]
        assert ask(stub.url, **trust, client_cert=str(both)) == ["1"]
        none = refused(stub.url, **trust)
        stranger = refused(stub.url, **trust, client_cert=made.stranger.path, client_key=made.stranger.key)
    assert "client certificate" in none.reason
    assert "client certificate" in stranger.reason
    assert none.state is stranger.state is SourceState.DENIED


@pytest.mark.parametrize("key", ["ca_file", "client_cert", "client_key"])
@pytest.mark.parametrize("trouble", ["missing", "empty", "folder"])
def test_files_that_cannot_be_used_are_named(made: Made, tmp_path: Path, key: str, trouble: str) -> None:
    file = tmp_path / "file.pem"
    if trouble == "empty":
        file.touch()
    elif trouble == "folder" and key != "ca_file":
        file.mkdir()
    files = {"ca_file": made.authority.path, "client_cert": made.client.path, "client_key": made.client.key}
    with running(serving(made.server)) as stub:
        error = refused(stub.url, **files | {key: str(file)})
    assert error.reason.startswith(key)
    assert error.state is SourceState.DENIED


def test_a_key_of_another_certificate(made: Made) -> None:
    with running(serving(made.server)) as stub:
        error = refused(
            stub.url, ca_file=made.authority.path, client_cert=made.client.path, client_key=made.stranger.key
        )
    assert "client_key" in error.reason
    assert error.state is SourceState.DENIED


def test_a_key_with_a_pass_phrase_is_refused_and_nobody_is_asked_for_it(made: Made, tmp_path: Path) -> None:
    # OpenSSL would ask on the terminal, in the middle of the screen, and wait.
    locked = tmp_path / "locked.key"
    made.authority.lock(made.client.key, locked, HIDDEN)
    with running(serving(made.server)) as stub:
        error = refused(stub.url, ca_file=made.authority.path, client_cert=made.client.path, client_key=str(locked))
    assert "pass phrase" in error.reason
    assert error.state is SourceState.DENIED


def test_plain_http_where_https_was_meant(made: Made) -> None:
    with running() as stub:
        assert "use http://" in refused(stub.url.replace("http://", "https://"), ca_file=made.authority.path).reason


def _tunnel(connection: socket, request: Request) -> None:
    """Do what a proxy does for https: connect, say so, and carry bytes both ways."""
    host, _, port = request.path.partition(":")
    with create_connection((host, int(port)), timeout=10) as far:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        ends = {connection: far, far: connection}
        while ready := select(list(ends), [], [], 10)[0]:
            for end in ready:
                data = end.recv(65536)
                if not data:
                    return
                ends[end].sendall(data)


def test_https_goes_through_a_proxy_and_is_checked_all_the_same(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as proxy, running(serving(made.server)) as stub:
        proxy.answer, stub.answer = _tunnel, reply(ONE)
        monkeypatch.setenv("https_proxy", proxy.url.replace("://", f"://ann:{HIDDEN}@"))
        assert ask(stub.url, ca_file=made.authority.path) == ["1"]
        assert proxy.requests[0].method == "CONNECT"
        assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")
        # The credentials of the server are none of the proxy's business.
        ask(stub.url, ca_file=made.authority.path, token=Secret(HIDDEN))
        assert "authorization" not in proxy.requests[-1].headers
        assert "not trusted" in refused(stub.url, ca_file=made.other.path).reason
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        before = len(proxy.requests)
        assert ask(stub.url, ca_file=made.authority.path) == ["1"]
        assert len(proxy.requests) == before


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("407 Proxy Authentication Required", "the proxy wants a login"),
        ("403 Forbidden", "the proxy refuses the connection: 403 Forbidden"),
        ("502 Bad Gateway", "the proxy refuses the connection: 502 Bad Gateway"),
    ],
)
def test_a_proxy_that_refuses_a_tunnel(made: Made, monkeypatch: pytest.MonkeyPatch, status: str, words: str) -> None:
    with running() as proxy, running(serving(made.server)) as stub:
        proxy.answer = reply(b"<html>no</html>", status, more="Content-Type: text/html\r\n")
        monkeypatch.setenv("https_proxy", proxy.url.replace("://", f"://ann:{HIDDEN}@"))
        error = refused(stub.url, ca_file=made.authority.path)
    assert words in error.reason
    assert HIDDEN not in error.reason
    assert error.state is (SourceState.DOWN if status.startswith("5") else SourceState.DENIED)


def test_a_proxy_that_is_not_there_or_is_none(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as proxy:
        url = proxy.url
    with running(serving(made.server)) as stub:
        monkeypatch.setenv("https_proxy", url)
        assert "proxy of the environment" in refused(stub.url, ca_file=made.authority.path).reason
        with running() as proxy:
            proxy.answer = lambda connection, _request: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            monkeypatch.setenv("https_proxy", proxy.url)
            assert "proxy" in refused(stub.url, ca_file=made.authority.path).reason
        monkeypatch.setenv("https_proxy", "socks5h://127.0.0.1:1")
        assert "proxy" in refused(stub.url, ca_file=made.authority.path).reason
        monkeypatch.setenv("https_proxy", "http://[::1")
        assert "proxy" in refused(stub.url, ca_file=made.authority.path).reason
