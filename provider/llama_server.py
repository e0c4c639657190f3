"""llama.cpp's own HTTP server out of the `xllamacpp` wheel, with the flags of `llama-server`.

A file of its own that imports nothing of ours, so that the process runtime can run it against whichever pinned wheel
lies on PYTHONPATH, and a container image can hold it as it is. Flags it does not know end it with exit code 2, as
llama-server does; `--check` only looks at the command line and the files' headers.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

# llama-server's names of the speculation methods this file passes on -> xllamacpp's.
SPECULATION = {"ngram-simple": "NGRAM_SIMPLE", "draft-simple": "DRAFT_SIMPLE"}
SOCKET_PATH_BYTES = 107


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    p.add_argument("-m", "--model", required=True)
    p.add_argument("--alias", required=True)
    p.add_argument("-c", "--ctx-size", type=int, required=True, help="tokens over all slots")
    p.add_argument("-np", "--parallel", type=int, default=1, help="requests at the same time, each ctx-size/parallel")
    p.add_argument("--host", required=True, help="address, or the path of a Unix socket (ends in .sock)")
    p.add_argument("--port", type=int, default=8080)
    p.add_argument("--metrics", action="store_true")
    p.add_argument("-t", "--threads", type=int, default=-1)
    p.add_argument("-b", "--batch-size", type=int)
    p.add_argument("--spec-type", choices=SPECULATION)
    p.add_argument("--model-draft")
    p.add_argument("--draft-max", type=int)
    p.add_argument("--spec-ngram-size-n", type=int, default=12, help="words of context that must repeat")
    p.add_argument("--check", action="store_true", help="check the command line and exit")
    return p


def check(args: argparse.Namespace, fail: argparse.ArgumentParser) -> None:
    """What can be known of a command line without loading anything."""
    if args.parallel < 1 or args.ctx_size < args.parallel:
        fail.error(f"--ctx-size {args.ctx_size} gives {args.parallel} slots no room")
    if bool(args.spec_type) != bool(args.draft_max):
        fail.error("--spec-type and --draft-max go together")
    if (args.spec_type == "draft-simple") != bool(args.model_draft):
        fail.error("--spec-type draft-simple and --model-draft go together")
    if args.spec_type == "ngram-simple" and args.draft_max < args.spec_ngram_size_n:
        # llama.cpp throws away drafts that are shorter than the n-gram they were found by.
        fail.error(f"--draft-max {args.draft_max} below --spec-ngram-size-n {args.spec_ngram_size_n} never drafts")
    if args.host.endswith(".sock") and len(os.fsencode(args.host)) > SOCKET_PATH_BYTES:
        fail.error(f"--host is longer than the {SOCKET_PATH_BYTES} bytes that a Unix socket's path may have")
    for path in filter(None, (args.model, args.model_draft)):
        try:
            with Path(path).open("rb") as f:
                magic = f.read(4)
        except OSError as e:
            fail.error(f"cannot read {path}: {e.strerror}")
        if magic != b"GGUF":
            fail.error(f"{path} is no GGUF file: it starts with {magic!r}")


def params(args: argparse.Namespace):  # type: ignore[no-untyped-def] # xllamacpp has no stubs
    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path = args.model
    p.model_alias = {args.alias}
    p.n_ctx = args.ctx_size
    p.n_parallel = args.parallel
    p.hostnames = [args.host]
    p.port = args.port
    p.endpoint_metrics = args.metrics
    p.ui = False
    p.fit_params = False  # a pinned context length is served or refused, never quietly made smaller
    p.cpuparams.n_threads = args.threads
    if args.batch_size:
        p.n_batch = args.batch_size
    if args.spec_type:
        kind = f"COMMON_SPECULATIVE_TYPE_{SPECULATION[args.spec_type]}"
        p.speculative.types = [getattr(xllamacpp.common_speculative_type, kind)]
        p.speculative.draft.n_max = args.draft_max
        p.speculative.ngram_simple.size_m = args.draft_max
        p.speculative.ngram_simple.size_n = args.spec_ngram_size_n
        if args.model_draft:
            p.speculative.draft.mparams.path = args.model_draft
    return p


def main(argv: list[str] | None = None) -> int:
    p = parser()
    args = p.parse_args(argv)
    check(args, p)
    import xllamacpp

    if args.check:
        print(f"command line is good for {Path(xllamacpp.__file__).parent}")
        return 0
    stop = threading.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: stop.set())
    began = time.monotonic()
    try:
        server = xllamacpp.Server(params(args))
    except RuntimeError as e:
        time.sleep(0.3)  # llama.cpp logs why in a thread of its own, which ends with us
        print(f"llama-server: {e}", file=sys.stderr, flush=True)
        return 1
    print(f"serving {args.alias} on {server.listening_address} after {time.monotonic() - began:.2f} s", flush=True)
    stop.wait()
    # Whoever sends SIGTERM has drained first. The server's own orderly end can wait for ever when it is told to stop
    # before its main loop has begun, so there is none: the kernel takes the threads and the connections.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
