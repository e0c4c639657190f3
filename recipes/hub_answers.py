"""What a hub refuses, told apart: no token, licence not accepted, no such repository, no such revision, not now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .faults import Fault
from .patience import LaterError, reason_of, retry_after

if TYPE_CHECKING:
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError

_TOKEN = "set HF_TOKEN, run `hf auth login`, or name a variable with --token-env"


def later_of(error: HTTPError) -> LaterError | None:
    """The same as something to wait for; None where asking again cannot help."""
    from huggingface_hub.errors import HfHubHTTPError

    if not isinstance(error, HfHubHTTPError):
        return LaterError(f"not reachable ({reason_of(error)})", network=True)
    status, headers = error.response.status_code, error.response.headers
    if status != 429 and status < 500:
        return None
    after = retry_after(headers)
    if after is None and status == 429 and (limit := re.search(r";\s*t=(\d{1,9})", headers.get("RateLimit") or "")):
        after = float(limit[1])
    return LaterError("rate limit (HTTP 429)" if status == 429 else f"HTTP {status}", after)


def fault_of(error: HfHubHTTPError, repo: str, revision: str | None, key: str, endpoint: str, has_token: bool) -> Fault:
    """The fault that a refusal is, with what mends it."""
    # GatedRepoError is a kind of RepositoryNotFoundError: the order matters.
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    status, where = error.response.status_code, f"{key}.repo"
    said = error.response.headers.get("X-Error-Message") or ""
    if isinstance(error, RevisionNotFoundError):
        allowed = f"a branch, tag or commit that {repo} has"
        return Fault(f"{key}.revision", revision or "main", allowed, "correct the revision in the recipe")
    if isinstance(error, GatedRepoError):
        if status == 401 or not has_token:
            return Fault(where, repo, "a token: this repository is gated, and none was sent (401)", _TOKEN)
        page = f"{endpoint}/{repo}"
        allowed = "a token whose owner has accepted its licence (403): this repository is gated"
        return Fault(where, repo, allowed, f"accept the licence at {page} as the token's owner, then pin again")
    if (
        status == 401
        and has_token
        and ("Invalid credentials" in said or not isinstance(error, RepositoryNotFoundError))
    ):
        allowed = f"a token that {endpoint} knows: it refuses the one that was sent (401)"
        return Fault(where, repo, allowed, f"make a new token: {_TOKEN}")
    if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
        if has_token:
            allowed = f"a repository of {endpoint} that is there and that the token may read ({status})"
            return Fault(where, repo, allowed, "correct the repository's name, or use a token that may read it")
        allowed = f"a repository of {endpoint} that is there; a private one needs a token, and none was sent ({status})"
        return Fault(where, repo, allowed, f"correct the repository's name, or {_TOKEN}")
    if status == 403:
        allowed = "a token with the right to read it (403)"
        return Fault(where, repo, allowed, "give the token the right to read this repository's contents")
    return Fault(where, repo, f"an answer of {endpoint}: HTTP {status}", "check HF_ENDPOINT, then pin again")
