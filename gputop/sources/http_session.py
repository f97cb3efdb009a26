"""The `requests` session of an HTTP source, set up as its endpoint says and as the environment may not undo.

Importing it loads requests, so only what is about to ask does.
"""

from typing import Any, Final

import requests
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3 import disable_warnings
from urllib3.exceptions import InsecureRequestWarning

from gputop import __version__
from gputop.model.endpoint import Endpoint

__all__ = ["CONNECT_S", "HttpSession"]

CONNECT_S: Final = 3.0
"""Longest wait for a connection."""


class _Authorization(AuthBase):
    """Basic or bearer credentials, given here and nowhere else.

    Without an `auth` of its own, a session takes what ~/.netrc has for the host and overwrites a bearer token
    with it (psf/requests#3929).
    """

    def __init__(self, endpoint: Endpoint) -> None:
        # As bytes in UTF-8 (RFC 7617 2.1): requests would write texts in Latin-1, which has no "€".
        user, password = endpoint.username.encode(), endpoint.password.reveal().encode()
        self._basic = HTTPBasicAuth(user, password) if user else None
        self.token = ""

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the credentials to a request."""
        if self.token:
            r.headers["Authorization"] = f"Bearer {self.token}"
            return r
        return self._basic(r) if self._basic is not None else r


class HttpSession(requests.Session):
    """A session with the credentials, certificates and headers of an endpoint.

    Its own certificates win: requests lets REQUESTS_CA_BUNDLE override a session's `verify`
    (psf/requests#3829).

    Args:
        endpoint: As whom to ask, and whom to trust.
        accept: Value of the Accept header.
    """

    def __init__(self, endpoint: Endpoint, accept: str) -> None:
        super().__init__()
        if endpoint.insecure:
            # Said once by whoever set it; for each request it would be written across the screen.
            disable_warnings(InsecureRequestWarning)
        self._own_verify: bool | str | None = False if endpoint.insecure else endpoint.ca_file or None
        self._authorization = self.auth = _Authorization(endpoint)
        self.headers.update({"User-Agent": f"gputop/{__version__}", "Accept": accept})
        if endpoint.tenant:
            self.headers["X-Scope-OrgID"] = endpoint.tenant
        for name, value in endpoint.headers:
            self.headers[name] = value.reveal()
        if endpoint.client_cert:
            self.cert = (endpoint.client_cert, endpoint.client_key) if endpoint.client_key else endpoint.client_cert

    def use_token(self, token: str) -> None:
        """Send a bearer token with what follows; "" for none."""
        self._authorization.token = token

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:  # noqa: ANN401 - as in requests
        """Return settings with the proxies of the environment and the certificates of the configuration."""
        settings = super().merge_environment_settings(url, proxies, stream, verify, cert)
        if self._own_verify is not None:
            settings["verify"] = self._own_verify
        return settings
