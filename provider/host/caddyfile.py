"""The front's whole configuration as text. What goes into it is looked at first: it must never become more than a word.

Its upstream never changes, so that a swap of engines needs no reload (which would answer held requests 502).
"""

from __future__ import annotations

import re
from typing import Any

from .places import Places


class FrontFailed(Exception):
    """The front does not come up, or not as asked."""

    kind = "front"

    def __init__(self, text: str, transient: bool = False) -> None:
        super().__init__(text)
        self.transient = transient


_PATH = re.compile(r"/[A-Za-z0-9._~/-]*\*?")
_DOMAIN = re.compile(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


def check(places: Places, spec: dict[str, Any]) -> None:
    """Raises FrontFailed, naming the key, for what the configuration cannot say safely."""
    if not spec["paths"]:
        raise FrontFailed("paths: none given; without one every request would be answered 404")
    for path in spec["paths"]:
        if not (isinstance(path, str) and _PATH.fullmatch(path)):
            raise FrontFailed(f"paths: {path!r} is not usable; allowed: / letters digits . _ ~ - and one * at the end")
    domain, port, hold = spec.get("domain"), spec.get("port"), spec["hold_s"]
    if domain and not (isinstance(domain, str) and _DOMAIN.fullmatch(domain)):
        raise FrontFailed(
            f"domain: {domain!r} is no domain; allowed: names of small letters, digits and - with dots between"
        )
    if port is not None and not (type(port) is int and 0 < port < 65536):
        raise FrontFailed(f"port: {port!r} is no port; allowed: 1 to 65535")
    if type(hold) not in (int, float) or not 0 <= hold <= 86400:
        raise FrontFailed(f"hold_s: {hold!r} is not usable; allowed: 0 to 86400 seconds")
    for place in (places.front, places.run):
        if re.search(r'["`{}\\\x00-\x1f]', str(place)):
            raise FrontFailed(f"places: {str(place)!r} has a quote, brace, backslash or line break in it")
    key = spec["key"]
    # A star at the end would match every key that begins like this one.
    if not (isinstance(key, str) and re.fullmatch(r"[!-~]*[!-)+-~]", key)):
        raise FrontFailed("key: not usable; allowed: printable ASCII characters without spaces, no * at the end")


def caddyfile(places: Places, spec: dict[str, Any]) -> str:
    """Listens on loopback without a domain, else on the domain with TLS. `spec` has gone through `check`."""
    folder, upstream = places.front, f'"unix/{places.current_sock}"'
    # An address before the port would only be compared with the Host header: `bind` is what keeps strangers out.
    address = spec.get("domain") or f"http://:{spec['port']}"
    bind = "" if spec.get("domain") else "\n\tbind 127.0.0.1"
    paths = " ".join(spec["paths"])
    keys = "\n".join(f'\t\theader Authorization "Bearer {{file.{folder}/{name}}}"' for name in ("key", "key.previous"))
    return f"""{{
	admin "unix/{places.run}/front-admin.sock"
	persist_config off
	storage file_system "{folder}/caddy"
	log {{
		output stderr
		level WARN
		exclude admin
	}}
}}
{address} {{{bind}
	@draining {{
		path /lb-health
		file {{
			root "{folder}"
			try_files draining
		}}
	}}
	@known {{
{keys}
	}}
	handle @draining {{
		respond 503
	}}
	handle /lb-health {{
		rewrite * /health
		reverse_proxy {upstream} {{
			transport http {{
				keepalive off
				response_header_timeout 5s
			}}
		}}
	}}
	@open path {paths}
	handle @open {{
		handle @known {{
			reverse_proxy {upstream} {{
				transport http {{
					keepalive off
				}}
				header_up -Authorization
				lb_try_duration {int(spec["hold_s"])}s
				lb_try_interval 50ms
				flush_interval -1
				request_buffers 8MB
			}}
		}}
		handle {{
			header WWW-Authenticate Bearer
			respond `{{"error":{{"message":"wrong or missing API key","type":"invalid_request_error","code":"invalid_api_key"}}}}` 401
		}}
	}}
	handle {{
		respond 404
	}}
	handle_errors 502 503 504 {{
		header Retry-After 5
		respond `{{"error":{{"message":"the engine is being changed; try again","type":"unavailable_error","code":503}}}}` 503
	}}
}}
"""  # noqa: E501 - the two JSON bodies stay whole
