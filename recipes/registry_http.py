"""Requests to an image registry: login challenges answered, refusals told apart, patience. Bytes, never parsed.

The protocol is four requests. The kept clients of it hand out parsed manifests; a digest is of the bytes as they came.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from .faults import Fault, RecipeError
from .images import Image, loopback
from .patience import LaterError, patiently, reason_of, retry_after
from .registry_login import Login, find_login

if TYPE_CHECKING:
    import requests

LARGEST = 8 * 1024 * 1024  # bytes of a manifest or a config: real ones have some KB
TIMEOUT_S = (10, 30)
MAKE_SURE = "make sure of the image's name"
_PARAMETER = re.compile(r'([a-z]+)="([^"]*)"', re.IGNORECASE)


class RegistryHttp:
    """One image's registry. `sleep` and `login` are passed in; `asked` has the address of every request."""

    def __init__(
        self,
        image: Image,
        key: str = "engine.image",
        sleep: Callable[[float], None] = time.sleep,
        login: Callable[[str, str], Login | None] = find_login,
    ) -> None:
        import requests

        self.image, self.key, self.sleep, self.find_login = image, key, sleep, login
        self.session = requests.Session()
        self.session.max_redirects = 5
        self.header: str | None = None
        self.login: Login | None = None
        self.asked: list[str] = []

    def object(self, body: bytes) -> dict[str, Any]:
        """The JSON map that a body is. Raises RecipeError for anything else."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            self.refuse("an image registry's answer, which is a JSON map", MAKE_SURE)
        return dict(data)

    def get(self, path: str, accept: str) -> tuple[bytes, str | None]:
        """The body below the repository's address, and its Docker-Content-Digest. Raises RecipeError."""
        try:
            return patiently(lambda: self._try(path, accept), self.sleep)
        except LaterError as error:
            wait = f"; it wants {error.after_s:.0f} s of rest" if error.after_s else ""
            mend = "check the name and the network, then pin again" if error.network else "pin again later"
            self.refuse(f"an answer of {self.image.registry}: {error}{wait}", mend)

    def _try(self, path: str, accept: str) -> tuple[bytes, str | None]:
        answer = self._send("GET", self.image.api + path, {"Accept": accept}, self.header)
        if answer.status_code == 401 and self._authorize(answer.headers.get("WWW-Authenticate", "")):
            answer = self._send("GET", self.image.api + path, {"Accept": accept}, self.header)
        if answer.status_code != 200:
            self._refuse_status(answer, path)
        body = self._body(answer)
        return body, answer.headers.get("Docker-Content-Digest")

    def _send(
        self, method: str, url: str, headers: dict[str, str], authorization: str | None, **options: Any
    ) -> requests.Response:
        import requests

        self.asked.append(url)
        if authorization:
            headers = headers | {"Authorization": authorization}
        try:
            # An `auth` of our own keeps requests from putting what ~/.netrc says over the header.
            answer = self.session.request(
                method, url, headers=headers, timeout=TIMEOUT_S, stream=True, auth=lambda r: r, **options
            )
        except requests.RequestException as error:
            raise LaterError(f"not reachable ({reason_of(error)})", network=True) from None
        if answer.status_code == 429 or answer.status_code >= 500:
            raise LaterError(f"HTTP {answer.status_code}", retry_after(answer.headers))
        return answer

    def _body(self, answer: requests.Response) -> bytes:
        import requests

        body = bytearray()
        try:
            for chunk in answer.iter_content(65536):
                body += chunk
                if len(body) > LARGEST:
                    self.refuse(f"an answer of at most {LARGEST} bytes", MAKE_SURE)
        except requests.RequestException as error:
            raise LaterError(f"the answer was cut ({reason_of(error)})", network=True) from None
        declared = answer.headers.get("Content-Length", "")
        if declared.isdecimal() and "Content-Encoding" not in answer.headers and len(body) < int(declared):
            raise LaterError("the answer was cut", network=True)  # requests takes a short body for a whole one
        return bytes(body)

    def _authorize(self, challenge: str) -> bool:
        """Answer a login challenge; False where nothing new can be said."""
        kind, _, rest = challenge.partition(" ")
        parameters = {name.lower(): value for name, value in _PARAMETER.findall(rest)}
        self.login = self.login or self.find_login(self.image.registry, self.image.repository)
        before = self.header
        if kind.lower() == "basic" and self.login and not self.login.identity:
            self.header = _basic(self.login)
        elif kind.lower() == "bearer" and parameters.get("realm"):
            self.header = f"Bearer {self._token(parameters)}"
        return self.header != before

    def _token(self, parameters: dict[str, str]) -> str:
        realm, login = parameters["realm"], self.login
        parts = urlsplit(realm)
        if parts.scheme != "https" and not (parts.scheme == "http" and loopback(parts.netloc)):
            self.refuse(f"a token service over https, not {realm}", MAKE_SURE)
        scope = parameters.get("scope") or f"repository:{self.image.repository}:pull"
        asked = {"service": parameters.get("service", ""), "scope": scope}
        if login and login.identity:
            form = asked | {"grant_type": "refresh_token", "refresh_token": login.password, "client_id": "sluicegate"}
            answer = self._send("POST", realm, {}, None, data=form)
        else:
            answer = self._send("GET", realm, {}, _basic(login) if login else None, params=asked)
        if answer.status_code != 200:
            self._refuse_status(answer, "token")
        data = self.object(self._body(answer))
        token = data.get("token") or data.get("access_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            self.refuse(f"a token of {parts.netloc}", MAKE_SURE)
        return str(token)

    def _refuse_status(self, answer: requests.Response, path: str) -> NoReturn:
        status, image, registry = answer.status_code, self.image, self.image.registry
        if status in (401, 403):
            if self.login is None:
                missing = (
                    f"an image that {registry} hands out without a login, or a login for it (it answered {status})"
                )
                self.refuse(missing, f"run `docker login {registry}`, or correct the image's name")
            self.refuse(
                f"a login that may read it ({registry} answered {status} to the one there is)",
                f"run `docker login {registry}` as a user who may read {image.repository}",
            )
        if status == 404:
            what = f"a tag or digest of {image.name} that is there, not {image.wanted}"
            self.refuse(what if "/manifests/" in path else f"a whole image: {path} is missing", "correct the image")
        self.refuse(f"an image registry at {registry}: it answered HTTP {status}", MAKE_SURE)

    def refuse(self, allowed: str, mend: str) -> NoReturn:
        shown = f"{self.image.name}{'@' if self.image.digest else ':'}{self.image.wanted}"
        raise RecipeError([Fault(self.key, shown, allowed, mend)])


def _basic(login: Login) -> str:
    return "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
