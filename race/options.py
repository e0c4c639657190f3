"""The options of `race`, `load` and `report`, and what of them both of the first two turn into settings."""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import secrets
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .openrouter import BASE_URL
from .prompts import load_prompts
from .targets import Target, parse_target

TARGET_HELP = (
    "an endpoint: NAME=URL,model=MODEL and, as wished, key-env=VARIABLE, precision=fp8, hardware='1x H100', price=USD "
    "per million output tokens, hourly=USD, thinking=template|reasoning|unasked, chunk-usage=yes|no"
)


def _bounded(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not within {low}..{high}")
        return value

    number.__name__ = "whole number"
    return number


def _between(low: float, high: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not within {low:g}..{high:g}")
        return value

    number.__name__ = "number"
    return number


_usd = _between(1e-4, 1e6)


def _list_of(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def items(text: str) -> list[Any]:
        return sorted({kind(item) for item in text.split(",")})

    items.__name__ = "list of numbers"
    return items


def _common(parser: ArgumentParser, result: str) -> None:
    parser.add_argument("--target", action="append", default=[], metavar="NAME=URL,...", help=TARGET_HELP)
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="JSON object of name to text, instead of the six")
    parser.add_argument("--max-tokens", type=_bounded(2, 1_000_000), default=512, help="per answer (default 512)")
    parser.add_argument(
        "--timeout", type=_between(1e-3, 1e5), default=120.0, metavar="S", help="per request (default 120)"
    )
    parser.add_argument("--seed", type=int, help="of the order and the arrivals (default: drawn, and recorded)")
    parser.add_argument(
        "--salt",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a first line in each prompt that keeps it out of prefix caches (default: yes)",
    )
    parser.add_argument("--json", type=Path, default=Path(result), metavar="FILE", help=f"default {result}")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="a line per request")
    parser.add_argument("--html", type=Path, metavar="FILE", help="the page (needs the race extra)")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier result")
    parser.add_argument("--resume", action="store_true", help="go on with the result in --json FILE, same options")


def add_race(parser: ArgumentParser) -> None:
    """The options of `race`."""
    _common(parser, "race-final.json")
    parser.add_argument("--openrouter", metavar="AUTHOR/MODEL", help="race OpenRouter's providers of this model too")
    parser.add_argument("--providers", metavar="A,B|all", help="which of them, by name, slug or tag")
    parser.add_argument("--openrouter-key-env", default="OPENROUTER_API_KEY", metavar="VARIABLE")
    parser.add_argument("--openrouter-url", default=BASE_URL, metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=_bounded(1, 1000), default=4, help="of all prompts (default 4)")
    parser.add_argument("--concurrency", type=_bounded(1, 256), default=1, help="in flight over all (default 1)")
    parser.add_argument("--back-to-back", action="store_true", help="one target after another, not interleaved")


def add_load(parser: ArgumentParser) -> None:
    """The options of `load`."""
    _common(parser, "load.json")
    parser.add_argument("--up-to", type=_bounded(1, 512), metavar="N", help="1, 2, 4 ... N in flight (default 16)")
    parser.add_argument("--levels", type=_list_of(_bounded(1, 512)), metavar="1,4,16", help="these numbers in flight")
    parser.add_argument(
        "--rates", type=_list_of(_between(1e-3, 1e4)), metavar="0.5,1,2", help="requests/s arriving at random"
    )
    parser.add_argument("--requests", type=_bounded(1, 100_000), metavar="N", help="per step (default: 24 or more)")
    parser.add_argument(
        "--limit-ttft-ms", type=_between(1e-3, 1e7), metavar="MS", help="goodput: answers that start by then"
    )
    parser.add_argument(
        "--limit-speed", type=_between(1e-3, 1e6), metavar="TOK/S", help="goodput: and that are this fast"
    )
    parser.add_argument("--hourly", type=_usd, metavar="USD", help="the machine's price per hour")
    parser.add_argument("--against", type=_usd, metavar="USD", help="a price per million output tokens to beat")


def add_report(parser: ArgumentParser) -> None:
    """The options of `report`."""
    parser.add_argument("results", type=Path, nargs="+", metavar="FILE", help="JSON results of race or load")
    parser.add_argument("--html", type=Path, required=True, metavar="FILE")


def settings_from(args: Namespace) -> dict[str, Any]:
    """What every request of a run has in common. Raises ValueError or OSError on a bad prompts file."""
    return {
        "prompts": load_prompts(args.prompts) if args.prompts else load_prompts(),
        "max_tokens": args.max_tokens,
        "temperature": 0.7,
        "top_p": 0.8,
        "thinking": "off",
        "timeout_s": args.timeout,
        "seed": random.SystemRandom().randrange(2**32) if args.seed is None else args.seed,
        "salt": secrets.token_hex(8) if args.salt else None,
    }


def targets_from(args: Namespace, more: Sequence[Target]) -> list[Target]:
    """The targets asked directly. Raises ValueError on a bad one, or on two of one name."""
    targets = [*more, *map(parse_target, args.target)]
    distinct([target.name for target in targets])
    return targets


def distinct(names: Sequence[str]) -> None:
    """Raises ValueError when two targets have one name: their rows could not be told apart."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two targets are called {twice[0]}")


def check_outputs(args: Namespace) -> None:
    """Find out before anything is sent whether the files can be written. Raises ValueError."""
    outputs = [path for path in (args.json, args.csv, args.html) if path]
    if len({path.absolute() for path in outputs}) < len(outputs):
        raise ValueError("two of --json, --csv and --html name the same file")
    for path in outputs:
        if not path.absolute().parent.is_dir() or path.is_dir():
            raise ValueError(f"{path} cannot be written: no such folder, or a folder itself")
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise ValueError(f"{path} cannot be written: permission denied")
    if args.overwrite and args.resume:
        raise ValueError("--overwrite throws an earlier result away, --resume goes on with it: give one")
    if args.json.exists() and not args.overwrite and not args.resume:
        raise ValueError(f"{args.json} holds an earlier result: --overwrite replaces it, --json names another file")
    if args.html:
        check_html()


def check_html() -> None:
    """Raises ValueError when the plotting library is not there."""
    if importlib.util.find_spec("plotly") is None:
        raise ValueError("--html needs the race extra: pip install 'sluicegate[race]'")
