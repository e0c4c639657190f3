"""Questions to a hub through its own client: bounded in time and size, asked again where that can help.

The client is imported at the first question: it takes longer than everything else of `recipe check`. Its calls that
page have no time limit, wait for as long as they are told and send the token to any host: pages are followed here.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from .faults import Fault, RecipeError
from .hub_answers import fault_of, later_of
from .images import loopback
from .patience import LaterError, patiently

if TYPE_CHECKING:
    from huggingface_hub import HfApi

TIMEOUT_S = 30.0
LARGEST = 16 * 1024 * 1024  # bytes of one answer: a page of 1,000 files has 0.3 MB
MOST_PAGES = 200

T = TypeVar("T")


class HubHttp:
    """A hub. `endpoint` None: that of HF_ENDPOINT; `token` None: that of HF_TOKEN or `hf auth login`."""

    def __init__(
        self, token: str | None = None, endpoint: str | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._token, self._endpoint, self.sleep = token, endpoint, sleep
        self._api: HfApi | None = None

    @property
    def api(self) -> HfApi:
        """The client. Raises RecipeError for an address that names and hashes must not come from."""
        if self._api is None:
            # Unset, the first call of a machine would ask the hub for a list that only its telemetry needs.
            os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
            from huggingface_hub import HfApi

            api = HfApi(endpoint=self._endpoint, token=self._token)
            parts = urlsplit(api.endpoint)
            if parts.scheme != "https" and not (parts.scheme == "http" and loopback(parts.netloc)):
                allowed = "https://…, or http:// on this machine: names and hashes come from there"
                raise RecipeError([Fault("HF_ENDPOINT", api.endpoint, allowed, "correct HF_ENDPOINT, or unset it")])
            self._api = api
        return self._api

    def token(self) -> str | None:
        """The token that is sent."""
        from huggingface_hub import get_token

        return self._token or get_token()

    def body(self, url: str) -> tuple[bytes, Any]:
        """One answer's bytes, and its link to the next page."""
        from huggingface_hub import get_session, hf_raise_for_status

        token = self.token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT_S, follow_redirects=True) as answer:
            if answer.status_code >= 400:
                answer.read()  # the client puts it into its error
            hf_raise_for_status(answer)
            body = bytearray()
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > LARGEST:
                    raise ValueError(f"more than {LARGEST} bytes")
            link = answer.links.get("next", {}).get("url")
            return bytes(body), urljoin(url, link) if link else None

    def pages(self, url: str, repo: str, revision: str | None, key: str) -> Iterator[dict[str, Any]]:
        """The maps of a list that comes in pages. Never follows a link away from the hub: the token goes along."""
        home, following = urlsplit(self.api.endpoint).netloc, url
        for _ in range(MOST_PAGES):
            if urlsplit(following).netloc != home:
                allowed = f"pages of {home} itself, not of {urlsplit(following).netloc}"
                raise RecipeError([Fault("HF_ENDPOINT", self.api.endpoint, allowed, "use another mirror")])
            page, link = self.ask(partial(self._page, following), repo, revision, key)
            yield from page
            if not link:
                return
            following = link
        raise RecipeError([Fault(f"{key}.repo", repo, f"at most {MOST_PAGES} pages", "name another repository")])

    def _page(self, url: str) -> tuple[list[dict[str, Any]], str | None]:
        body, link = self.body(url)
        page = json.loads(body)
        if not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
            raise ValueError("no list of maps")
        return page, link

    def ask(self, call: Callable[[], T], repo: str, revision: str | None, key: str) -> T:
        """The call's answer, asked for again where that can help. Raises RecipeError for everything else."""
        endpoint = self.api.endpoint
        from httpx2 import HTTPError
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

        def once() -> T:
            try:
                return call()
            except HTTPError as error:
                if later := later_of(error):
                    raise later from error
                raise

        try:
            return patiently(once, self.sleep)
        except LaterError as error:
            wait = f"; it wants {error.after_s:.0f} s of rest" if error.after_s else ""
            mend = "check the network and HF_ENDPOINT, then pin again" if error.network else "pin again later"
            raise RecipeError([Fault(f"{key}.repo", repo, f"an answer of {endpoint}: {error}{wait}", mend)]) from None
        except OfflineModeIsEnabled:
            raise RecipeError([Fault("HF_HUB_OFFLINE", "1", "not set: pinning asks the hub", "unset it")]) from None
        except HfHubHTTPError as error:
            raise RecipeError([fault_of(error, repo, revision, key, endpoint, bool(self.token()))]) from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            allowed = f"what a hub answers, of {endpoint} ({type(error).__name__})"
            raise RecipeError([Fault(f"{key}.repo", repo, allowed, "correct HF_ENDPOINT, or unset it")]) from None
