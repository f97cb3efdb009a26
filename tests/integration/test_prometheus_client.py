"""The client against servers that hang, drip, break off, refuse and mislead."""

import gzip
import os
import sys
from base64 import b64encode
from pathlib import Path
from socket import socket

import pytest

from gputop.model.endpoint import Endpoint
from gputop.model.secret import Secret
from gputop.model.status import SourceState
from gputop.sources.base import SourceError
from gputop.sources.prometheus.client import PrometheusClient
from tests.integration.prometheus_rig import Request, StubServer, ask, refused, reply, running, vector

ONE = vector(({"__name__": "up"}, 1))
HIDDEN = "s3cr3t-value"


def test_a_query_is_a_posted_form_however_long_it_is(stub: StubServer) -> None:
    stub.answer = reply(ONE)
    query = "up or " * 20_000 + "up"
    assert ask(stub.url, query) == ["1"]
    (request,) = stub.requests
    assert (request.method, request.path, request.in_url) == ("POST", "/api/v1/query", False)
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.query == query


@pytest.mark.parametrize("status", ["405 Method Not Allowed", "403 Forbidden"])
def test_where_only_get_passes_it_is_learnt_once(stub: StubServer, status: str) -> None:
    def answer(connection: socket, request: Request) -> None:
        (reply(ONE) if request.method == "GET" else reply(b"no", status))(connection, request)

    stub.answer = answer
    client = PrometheusClient(Endpoint(url=stub.url))
    client.ask("query", {"query": "up"})
    client.ask("query", {"query": "up"})
    client.close()
    assert [r.method for r in stub.requests] == ["POST", "GET", "GET"]


def test_a_refusal_of_both_methods_is_a_refusal_and_nothing_is_learnt(stub: StubServer) -> None:
    stub.answer = reply(b"no", "403 Forbidden")
    client = PrometheusClient(Endpoint(url=stub.url))
    for _ in range(2):
        with pytest.raises(SourceError, match="not allowed") as caught:
            client.ask("query", {"query": "up"})
        assert caught.value.state is SourceState.DENIED
    client.close()
    assert [r.method for r in stub.requests] == ["POST", "GET"] * 2


def test_packed_answers_are_read(stub: StubServer) -> None:
    stub.answer = reply(gzip.compress(ONE), more="Content-Encoding: gzip\r\n")
    assert ask(stub.url) == ["1"]
    assert "gzip" in stub.requests[0].headers["accept-encoding"]


def test_nothing_is_tried_again_behind_our_back(stub: StubServer) -> None:
    stub.answer = reply(b"", "503 Service Unavailable", more="Retry-After: 1\r\n")
    assert refused(stub.url).retry_s == 1.0
    assert len(stub.requests) == 1


def test_a_server_that_hangs_is_not_waited_for(stub: StubServer) -> None:
    def answer(_connection: socket, _request: Request) -> None:
        stub.ended.wait(30)

    stub.answer = answer
    assert "no answer within" in refused(stub.url, timeout_s=0.3).reason


def test_a_body_that_drips_ends_at_the_total_time(stub: StubServer) -> None:
    def answer(connection: socket, _request: Request) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
        while not stub.ended.wait(0.05):
            connection.sendall(b" ")

    stub.answer = answer
    assert "not complete" in refused(stub.url, timeout_s=0.5).reason


def test_an_answer_that_breaks_off_is_no_answer(stub: StubServer) -> None:
    stub.answer = reply(ONE[:40], length=len(ONE))
    assert "broke off" in refused(stub.url).reason


def test_a_connection_closed_without_an_answer(stub: StubServer) -> None:
    stub.answer = lambda _connection, _request: None
    assert "closed without an answer" in refused(stub.url).reason


def test_another_protocol_on_the_port(stub: StubServer) -> None:
    stub.answer = lambda connection, _request: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    assert "right port" in refused(stub.url).reason


def test_a_port_where_nobody_listens(stub: StubServer) -> None:
    with running() as other:
        url = other.url
    error = refused(url)
    assert "connection refused" in error.reason
    assert stub.requests == []


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("https://sso.example/login?next=x", "redirected to sso.example/login: not logged in"),
        ("/oauth2/start", "not logged in"),
        ("https://127.0.0.1/api/v1/query", "use an https:// address"),
    ],
)
def test_redirects_are_not_followed_to_a_login_page(stub: StubServer, location: str, words: str) -> None:
    stub.answer = reply(b"", "302 Found", more=f"Location: {location}\r\n")
    assert words in refused(stub.url).reason
    assert len(stub.requests) == 1


def test_a_login_page_with_status_200(stub: StubServer) -> None:
    stub.answer = reply(b"<html><title>Sign in</title></html>", more="Content-Type: text/html\r\n")
    error = refused(stub.url)
    assert "not logged in" in error.reason
    assert error.state is SourceState.DENIED


def test_tenant_and_further_headers_and_basic_credentials_are_sent(stub: StubServer) -> None:
    stub.answer = reply(ONE)
    ask(stub.url, tenant="team-a|team-b", headers=(("X-Extra", Secret("e")),), username="u", password=Secret("p"))
    sent = stub.requests[0].headers
    assert (sent["x-scope-orgid"], sent["x-extra"], sent["authorization"]) == ("team-a|team-b", "e", "Basic dTpw")


def test_a_password_is_sent_in_utf_8(stub: StubServer) -> None:
    stub.answer = reply(ONE)
    ask(stub.url, username="ann", password=Secret("p€:@/"))
    assert stub.requests[0].headers["authorization"] == "Basic " + b64encode("ann:p€:@/".encode()).decode()


def test_a_token_is_not_replaced_by_what_netrc_has(stub: StubServer, own_environment: Path) -> None:
    netrc = own_environment / ".netrc"
    netrc.write_text("machine 127.0.0.1 login other password wrong\n")
    netrc.chmod(0o600)
    stub.answer = reply(ONE)
    ask(stub.url, token=Secret("abc"))
    ask(stub.url)
    assert [r.headers.get("authorization") for r in stub.requests] == ["Bearer abc", None]


def test_a_token_file_is_read_again_when_it_changes(stub: StubServer, tmp_path: Path) -> None:
    stub.answer = reply(ONE)
    token = tmp_path / "token"
    client = PrometheusClient(Endpoint(url=stub.url, token_file=str(token)))
    for n, text in enumerate(("one\n", "two\n")):
        token.write_text(text)
        os.utime(token, ns=(n, n))
        client.ask("query", {"query": "up"})
    token.unlink()
    with pytest.raises(SourceError, match="token file") as caught:
        client.ask("query", {"query": "up"})
    client.close()
    assert caught.value.state is SourceState.DENIED
    assert [r.headers["authorization"] for r in stub.requests] == ["Bearer one", "Bearer two"]


def test_a_command_is_run_again_when_its_token_was_refused(stub: StubServer, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"p = {str(count)!r}; open(p, 'a').write('x'); print('token-%d' % len(open(p).read()))"

    def answer(connection: socket, request: Request) -> None:
        good = request.headers.get("authorization") == "Bearer token-2"
        (reply(ONE) if good else reply(b"expired", "401 Unauthorized"))(connection, request)

    stub.answer = answer
    assert ask(stub.url, token_command=(sys.executable, "-c", script)) == ["1"]
    assert count.read_text() == "xx"


def test_a_token_that_stays_refused_ends_it_after_one_more_try(stub: StubServer) -> None:
    stub.answer = reply(b"no", "401 Unauthorized")
    assert refused(stub.url, token_command=(sys.executable, "-c", "print(1)")).state is SourceState.DENIED
    assert len(stub.requests) == 2


def test_a_command_that_fails_is_told_without_what_it_printed(stub: StubServer) -> None:
    script = f"import sys; print({HIDDEN!r}); sys.exit(3)"
    error = refused(stub.url, token_command=(sys.executable, "-c", script))
    assert "exit code 3" in error.reason
    assert HIDDEN not in error.reason


def test_secrets_are_in_no_error_and_no_repr(stub: StubServer) -> None:
    secret = Secret(HIDDEN)
    endpoint = Endpoint(
        url=stub.url, username="u", password=secret, token=secret, headers=(("X-Key", secret),), timeout_s=0.3
    )
    client = PrometheusClient(endpoint)
    shown = [repr(endpoint), repr(client), str(client.__dict__)]
    for answer in (reply(b"x", "401 Unauthorized"), reply(b"<html>", "502 Bad Gateway"), lambda _c, _r: None):
        stub.answer = answer
        with pytest.raises(SourceError) as caught:
            client.ask("query", {"query": "up"})
        shown += [repr(caught.value), caught.value.reason]
    client.close()
    assert not any(HIDDEN in text for text in shown)


def test_credentials_in_a_proxys_address_are_not_shown(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as dead:
        port = dead.url.rpartition(":")[2]
    monkeypatch.setenv("http_proxy", f"http://user:{HIDDEN}@127.0.0.1:{port}")
    error = refused("http://prometheus.example:9090", timeout_s=2.0)
    assert HIDDEN not in error.reason
    assert "proxy" in error.reason


def test_the_proxy_of_the_environment_is_used(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.answer = reply(ONE)
    monkeypatch.setenv("http_proxy", stub.url)
    assert ask("http://prometheus.example:9090") == ["1"]
    assert stub.requests[0].headers["host"] == "prometheus.example:9090"
