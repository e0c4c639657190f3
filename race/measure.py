"""One exchange as figures. Times count from the moment the request was handed to the kernel, in milliseconds.

TTFT is the first chunk with text in it, thought or answer: not the role chunk, not a comment. Output speed is the
completion tokens after the first over the time from the first token to the last; tokens come from the server's usage,
and chunks are never taken for tokens. The (n - 1) form is biased when the first chunk holds several tokens; where the
stream tells its tokens, `unbiased_speed` is (n - n1) over the same time.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import Any

from .exchange import Exchange
from .refusal import refusal, retry_after
from .stream import Stream, read_stream, whole


class ImpossibleError(Exception):
    """Figures that contradict each other: a fault of this program, never a row of a result."""


@dataclass(slots=True)
class Measurement:
    """One request's figures; None = not known. `_ms` milliseconds from the send, speeds in tokens per second."""

    error: str | None = None
    status: int | None = None
    ttft_ms: float | None = None
    first_answer_ms: float | None = None
    output_speed: float | None = None
    completion_tokens: int | None = None
    chunks: int | None = None
    longest_gap_ms: float | None = None
    unbiased_speed: float | None = None
    peak_speed: float | None = None  # of the equal parts of at least 1 s, the fastest; needs tokens told per chunk
    first_chunk_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str | None = None
    provider: str | None = None
    answered_model: str | None = None
    reused_connection: bool = False
    connect_ms: float | None = None  # TCP, before the send; None on a kept connection
    tls_ms: float | None = None
    queue_ms: float | None = None  # from the planned time to the send, in an open loop
    sent_ms: float | None = None
    first_byte_ms: float | None = None
    headers_ms: float | None = None
    role_ms: float | None = None
    first_reasoning_ms: float | None = None
    last_token_ms: float | None = None
    usage_ms: float | None = None
    end_ms: float | None = None
    client_lag_ms: float | None = None  # how late this client read what the kernel had stamped, at worst
    retry_after_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The row of a result file: times to a microsecond, speeds to a thousandth."""
        return {k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(self).items()}


def measure(exchange: Exchange, provider: str | None = None) -> Measurement:
    """The figures of one exchange; with `provider`, an answer from any other is a failure. Raises ImpossibleError."""
    row = Measurement(reused_connection=exchange.reused, error=exchange.fault)
    if exchange.connected is not None:
        row.connect_ms = (exchange.connected - exchange.begun) * 1000
        row.tls_ms = None if exchange.secured is None else (exchange.secured - exchange.connected) * 1000
    if exchange.started is None or exchange.response is None:
        return row
    start, response = exchange.started, exchange.response

    def since(at: float | None) -> float | None:
        return None if at is None else (at - start) * 1000

    row.queue_ms = None if exchange.call.due is None else (start - exchange.call.due) * 1000
    row.end_ms, row.client_lag_ms = since(exchange.ended), exchange.lag_s * 1000
    row.first_byte_ms, row.headers_ms = since(response.first_byte_at), since(response.headers_at)
    # Over loopback an answer can come before the system call that sent the request has returned.
    row.sent_ms = min((t for t in (since(exchange.sent), row.first_byte_ms) if t is not None), default=None)
    row.status = response.status
    refused = refusal(response)
    if refused is not None or response.status is None:
        row.error = refused or row.error
        row.retry_after_s = retry_after(response)
        return row
    stream = read_stream(response)
    row.role_ms, row.usage_ms = since(stream.role_at), since(stream.usage_at)
    row.first_reasoning_ms, row.first_answer_ms = since(stream.first_reasoning_at), since(stream.first_answer_at)
    row.chunks, row.finish_reason, row.answered_model = len(stream.tokens), stream.finish_reason, stream.model
    row.provider = ", ".join(sorted(stream.providers)[:3]) or None
    _usage(row, stream)
    if stream.tokens:
        times = [at for at, _ in stream.tokens]
        row.ttft_ms, row.last_token_ms = since(times[0]), since(times[-1])
        row.longest_gap_ms = max((b - a for a, b in itertools.pairwise(times)), default=0.0) * 1000
        _speeds(row, stream, times[-1] - times[0])
    row.error = stream.error or row.error or stream.unreadable or _fault(stream, provider)
    _check(row)
    return row


def _usage(row: Measurement, stream: Stream) -> None:
    usage = stream.usage or {}
    row.completion_tokens, row.prompt_tokens = whole(usage.get("completion_tokens")), whole(usage.get("prompt_tokens"))
    for parent, name, key in (
        ("prompt_tokens_details", "cached_tokens", "cached_tokens"),
        ("completion_tokens_details", "reasoning_tokens", "reasoning_tokens"),
    ):
        details = usage.get(parent)
        setattr(row, key, whole(details.get(name)) if isinstance(details, dict) else None)


def _speeds(row: Measurement, stream: Stream, span: float) -> None:
    total = row.completion_tokens
    hidden = bool(row.reasoning_tokens) and stream.first_reasoning_at is None
    if total is None or total < 2 or span <= 0 or hidden:  # hidden thought is in the count but not in the time
        return
    row.output_speed = (total - 1) / span
    counts = [count for _, count in stream.tokens]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts) or known != sorted(known) or not 0 < known[0] < total or known[-1] > total:
        return
    known[-1] = total
    row.first_chunk_tokens, row.unbiased_speed = known[0], (total - known[0]) / span
    parts = int(span)
    if parts:
        sums, first = [0] * parts, stream.tokens[0][0]
        for (at, _), count, before in zip(stream.tokens[1:], known[1:], known, strict=False):
            sums[min(int((at - first) / span * parts), parts - 1)] += count - before
        row.peak_speed = max(sums) * parts / span


def _fault(stream: Stream, provider: str | None) -> str | None:
    """Why a stream that came without an error is still no whole answer, or None."""
    if provider is not None and {name.lower() for name in stream.providers} != {provider.lower()}:
        return (
            f"answered by {', '.join(sorted(stream.providers)[:3]) or 'a provider it does not name'}, not by {provider}"
        )
    if not stream.done:
        return "the stream ended without its end mark [DONE]"
    if stream.finish_reason in (None, "error"):
        return "the stream ended without a reason" if stream.finish_reason is None else "the stream ended in an error"
    return None if stream.tokens else "the answer has no text"


def _check(row: Measurement) -> None:
    """An impossible pair is a bug here, not a row."""
    pairs = [
        ("first answer before first token", row.ttft_ms, row.first_answer_ms),
        ("last token before first", row.ttft_ms, row.last_token_ms),
        ("first token before first byte", row.first_byte_ms, row.ttft_ms),
        ("headers before first byte", row.first_byte_ms, row.headers_ms),
        ("end before last token", row.last_token_ms, row.end_ms),
        ("peak below mean", row.unbiased_speed, row.peak_speed),
        ("unbiased above the (n - 1) form", row.unbiased_speed, row.output_speed),
    ]
    for name, low, high in pairs:
        if low is not None and high is not None and low > high * (1 + 1e-9) + 1e-6:
            raise ImpossibleError(f"{name}: {low} > {high} ({row})")
