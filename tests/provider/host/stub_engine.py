"""A stand-in for an engine: HTTP over a Unix socket, with a flag for each way an engine can go wrong.

It cannot prove anything about a real engine: not that llama.cpp or vLLM name their metrics, print their log lines or
end their streams like this. It proves what the host program does once an engine behaves so.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any


def flags() -> argparse.Namespace:
    p = argparse.ArgumentParser()
    p.add_argument("--socket", default="")
    p.add_argument("--check", action="store_true", help="look at the command line only")
    p.add_argument("--model", default="stub")
    p.add_argument("--max-len", type=int, default=1024)
    p.add_argument("--version", default="1.0")
    p.add_argument("--fingerprint", default="stub-print")
    p.add_argument("--tokens", type=int, default=8)
    p.add_argument("--reasoning", action="store_true", help="all text is reasoning")
    p.add_argument("--say", action="append", default=[], help="a line for the log")
    p.add_argument("--spam", type=int, default=0, help="bytes for the log")
    p.add_argument("--exit-at-start", type=int)
    p.add_argument("--exit-at-completion", type=int, help="of this number, counted from 1")
    p.add_argument("--exit-after-completions", type=int, help="a moment after this many were answered")
    p.add_argument("--exit-when", type=Path, help="exit with 7 once this file is there")
    p.add_argument("--fail-when", type=Path, help="exit with 9 at start if this file is there")
    p.add_argument("--never-ready", action="store_true")
    p.add_argument("--completion-status", type=int, default=200)
    p.add_argument("--hang", action="store_true", help="completions get no answer")
    p.add_argument("--hang-when", type=Path, help="completions get no answer while this file is there")
    p.add_argument("--drip", action="store_true", help="completions get a byte at a time and never end")
    p.add_argument("--endless", action="store_true", help="the stream goes on for ever")
    p.add_argument("--without", choices=["done", "usage", "finish"])
    p.add_argument("--odd-chunk", help="this in place of the second chunk")
    p.add_argument("--drafted", type=int, default=0, help="a completion")
    p.add_argument("--accepted", type=int, default=0, help="a completion")
    p.add_argument("--no-metrics", action="store_true")
    p.add_argument("--map-nothing", action="store_true")
    p.add_argument("--ignore-term", action="store_true")
    p.add_argument("--child", action="store_true", help="start a child that ignores TERM and keeps the output open")
    p.add_argument("--close-output", action="store_true")
    return p.parse_args()


class Stub:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.lock = threading.Lock()
        self.running = self.begun = self.answered = self.chunks = 0

    def metrics(self) -> str:
        n = self.answered
        lines = {
            "stub_running": self.running, "stub_waiting": 0, "stub_chunks_total": self.chunks, "stub_drafts_total": n,
            'stub_draft_tokens_total{kind="a b"}': n * self.args.drafted, "stub_accepted_total": n * self.args.accepted,
        }  # fmt: skip
        return "# HELP stub_running requests\n" + "".join(f"{name} {value}\n" for name, value in lines.items())


class Handler(BaseHTTPRequestHandler):
    stub: Stub

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        args = self.stub.args
        if self.path == "/health":
            self.answer(503 if args.never_ready else 200, b"{}")
        elif self.path == "/version":
            self.answer(200, json.dumps({"version": args.version}).encode())
        elif self.path == "/v1/models":
            data = [{"id": args.model, "meta": {"n_ctx": args.max_len}}]
            self.answer(200, json.dumps({"data": data}).encode())
        elif self.path == "/metrics" and not args.no_metrics:
            self.answer(200, self.stub.metrics().encode())
        elif self.path == "/v1/headers":
            self.answer(200, json.dumps(dict(self.headers.items())).encode())
        else:
            self.answer(404, b"{}")

    def do_POST(self) -> None:
        stub, args = self.stub, self.stub.args
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/size":
            self.answer(200, str(len(body)).encode())
            return
        with stub.lock:
            stub.begun += 1
            stub.running += 1
        if args.hang_when:
            print(f"completion {stub.begun}", flush=True)
        try:
            if stub.begun == args.exit_at_completion:
                os._exit(5)
            while args.hang or (args.hang_when and args.hang_when.exists()):
                time.sleep(0.05)
            if args.completion_status != 200:
                self.answer(args.completion_status, b'{"error":"as asked"}')
            else:
                self.stream(json.loads(body))
        finally:
            with stub.lock:
                stub.running -= 1
                stub.answered += 1
        if stub.answered == args.exit_after_completions:
            os._exit(6)

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, asked: dict[str, Any]) -> None:
        """Ends by closing the connection.

        A prompt `until FILE` makes a word every 20 ms until the file is there; `stuck until FILE` makes none meanwhile.
        """
        args, prompt = self.stub.args, asked["messages"][0]["content"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        while args.drip:
            self.send(b":")
            time.sleep(0.02)
        number = 0
        while number < args.tokens or args.endless:
            if number == 1 and args.odd_chunk:
                self.send(args.odd_chunk.encode() + b"\n\n")
            else:
                self.chunk(delta={"reasoning" if args.reasoning else "content": "word "})
            while number == 0 and "until " in prompt and not Path(prompt.partition("until ")[2]).exists():
                time.sleep(0.02)
                if not prompt.startswith("stuck "):
                    self.chunk(delta={"content": "word "})
            number += 1
            time.sleep(0.01 if args.endless else 0)
        if args.without != "finish":
            self.chunk(delta={}, finish_reason="stop")
        if args.without != "usage":
            usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": args.tokens}
            self.chunk(None, usage=usage)
        if args.without != "done":
            self.send(b"data: [DONE]\n\n")

    def chunk(self, delta: dict[str, Any] | None, finish_reason: str | None = None, **more: Any) -> None:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
        self.stub.chunks += 1
        event = {"model": self.stub.args.model, "system_fingerprint": self.stub.args.fingerprint, "choices": choices}
        self.send(b"data: " + json.dumps(event | more).encode() + b"\n\n")

    def send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def get_request(self) -> tuple[Any, Any]:
        request, _ = super().get_request()
        return request, ("socket", 0)

    def handle_error(self, *_: Any) -> None: ...


def exit_when(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)
    os._exit(7)


def main() -> None:
    args = flags()
    if args.check:
        print("good")
        return
    for line in args.say:
        print(line, flush=True)
    if args.spam:
        sys.stdout.write("spam\n" * (args.spam // 5))
        sys.stdout.flush()
    if args.exit_at_start is not None:
        sys.exit(args.exit_at_start)
    if args.fail_when and args.fail_when.exists():
        sys.exit(9)
    if args.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if args.child:
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code, args.socket])
    if args.close_output:
        os.close(1)
        os.close(2)
    source = Path(os.environ.get("PYTHONPATH", "")) / "stub_engine.py"
    if not args.map_nothing and source.is_file():
        Handler.mapped = mmap.mmap(os.open(source, os.O_RDONLY), 0, prot=mmap.PROT_READ)  # type: ignore[attr-defined]
    if args.exit_when:
        threading.Thread(target=exit_when, args=(args.exit_when,), daemon=True).start()
    Handler.stub = Stub(args)
    with Server(args.socket, Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
