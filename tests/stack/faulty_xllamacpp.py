"""A stand-in for the module `xllamacpp`, with a way to fail: everything around it in a test is real.

The runner, the supervisor, the gate and pip treat it as they treat the real engine: it comes as a wheel by its hash.
It cannot prove that llama.cpp fails in these ways, only what the product does with an engine that does.
"""

from __future__ import annotations

import json
import mmap
import os
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FAULT = ""  # set in each wheel, with MARK a path of the test's own
MARK = ""

_held = mmap.mmap(os.open(__file__, os.O_RDONLY), 0, prot=mmap.PROT_READ)  # what the gate's identity check looks for


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        drafts = SimpleNamespace(n_max=0, mparams=SimpleNamespace(path=""))
        speculative = SimpleNamespace(types=[], draft=drafts, ngram_simple=SimpleNamespace(size_m=0, size_n=0))
        super().__init__(
            model=SimpleNamespace(path=""), cpuparams=SimpleNamespace(n_threads=0), speculative=speculative
        )


class common_speculative_type:  # noqa: N801 - the real one's name
    COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE = COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE = 1


class Server:
    def __init__(self, params: Any) -> None:
        if FAULT == "dies at start" or (FAULT == "dies at its second start" and Path(MARK).exists()):
            print("E srv load_model: the stand-in was told to die at its start", flush=True)
            raise RuntimeError("told to die")
        if FAULT == "dies at its second start":
            Path(MARK).touch()
        if FAULT.startswith("prints secrets"):
            print(
                "W srv init: HF_TOKEN is hf_abcdefghijklmnopqrstuvwxyz0123, key Bearer sk-0123456789abcdef", flush=True
            )
        Handler.params, self.listening_address = params, params.hostnames[0]
        server = Listening(self.listening_address, Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Listening(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def get_request(self) -> tuple[Any, Any]:
        return super().get_request()[0], ("socket", 0)

    def handle_error(self, *_: Any) -> None: ...


class Handler(BaseHTTPRequestHandler):
    params: Any
    drafts = decoded = running = 0

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        (name,) = self.params.model_alias
        length = self.params.n_ctx // self.params.n_parallel
        if self.path == "/health":
            self.answer(503 if FAULT == "never ready" else 200, {})
        elif self.path == "/v1/models":
            self.answer(200, {"data": [{"id": name, "meta": {"n_ctx": length}}]})
        elif self.path == "/metrics":
            names = {"requests_processing": Handler.running, "requests_deferred": 0, "n_decode_total": Handler.decoded}
            names |= {f"spec_decode_num_{n}_total": Handler.drafts for n in ("drafts", "draft_tokens")}
            names |= {"spec_decode_num_accepted_tokens_total": 0}
            self.answer(200, "".join(f"llamacpp:{n} {value}\n" for n, value in names.items()))
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if FAULT == "dies at its first request":
            print("E srv: the stand-in was told to die at its first request", flush=True)
            sys.stdout.flush()
            os._exit(5)
        if FAULT == "answers 500":
            self.answer(500, {"error": {"message": "told to fail"}})
            return
        Handler.running += 1
        try:
            self.stream()
        finally:
            Handler.running -= 1

    def stream(self) -> None:
        while FAULT.endswith("hangs on completions"):
            time.sleep(0.1)
        (name,) = self.params.model_alias
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        number = 0
        while number < 8 or FAULT == "streams without end":
            self.chunk(name, [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}])
            number += 1
            Handler.decoded += 1
            time.sleep(0.02 if number > 8 else 0)
        if self.params.speculative.draft.n_max:
            Handler.drafts += 8
        self.chunk(name, [{"index": 0, "delta": {}, "finish_reason": "length"}])
        self.chunk(name, [], usage={"prompt_tokens": 3, "completion_tokens": number})
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, name: str, choices: list[Any], **more: Any) -> None:
        model = "somebody-else" if FAULT == "answers with another model's name" else name
        self.wfile.write(b"data: " + json.dumps({"model": model, "choices": choices, **more}).encode() + b"\n\n")
        self.wfile.flush()

    def answer(self, status: int, body: Any) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
