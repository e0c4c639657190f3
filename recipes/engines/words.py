"""The words around an engine's own arguments: a shell's, `docker run`'s, and the program that is started."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ..faults import Fault, Faults, RecipeError
from .speculative import EDIT

_PREFIXES = {"sudo", "exec", "nohup", "time", "env", "command", "uvx", "$"}
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_OPERATORS = {"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"}

_GPUS, _PLACE = "gpu.count GPUs of the machine are given to the engine", "weights and caches have places of their own"
_NET, _LIFE = "the engine listens on a socket, the front on the network", "the host starts, names, watches and ends it"
_MEMORY, _LOG = "the host gives the engine its shared memory", "the host keeps the engine's log"
_RIGHTS = "the host says who runs the engine and what it may"
VALUED = {
    "-p": _NET, "--publish": _NET, "--expose": _NET, "--network": _NET, "--net": _NET, "--add-host": _NET,
    "--dns": _NET, "-h": _NET, "--hostname": _NET, "--ip": _NET,
    "-v": _PLACE, "--volume": _PLACE, "--mount": _PLACE, "--tmpfs": _PLACE, "-w": _PLACE, "--workdir": _PLACE,
    "--gpus": _GPUS, "--device": _GPUS, "--runtime": _GPUS,
    "--ipc": _MEMORY, "--shm-size": _MEMORY, "-m": _MEMORY, "--memory": _MEMORY, "--memory-swap": _MEMORY,
    "--cpus": _MEMORY, "--cpuset-cpus": _MEMORY, "--ulimit": _MEMORY, "--pid": _LIFE, "--cgroupns": _LIFE,
    "--name": _LIFE, "--restart": _LIFE, "--stop-timeout": _LIFE, "--stop-signal": _LIFE, "--health-cmd": _LIFE,
    "--health-interval": _LIFE, "--health-timeout": _LIFE, "--health-retries": _LIFE,
    "--health-start-period": _LIFE, "-l": _LIFE, "--label": _LIFE, "--cidfile": _LIFE, "--platform": _LIFE,
    "--pull": "the image is fetched by its digest", "--log-driver": _LOG, "--log-opt": _LOG,
    "-u": _RIGHTS, "--user": _RIGHTS, "--group-add": _RIGHTS, "--cap-add": _RIGHTS, "--cap-drop": _RIGHTS,
    "--security-opt": _RIGHTS, "--userns": _RIGHTS,
}  # fmt: skip
PLAIN = {
    "-d": _LIFE, "--detach": _LIFE, "--rm": _LIFE, "-i": _LIFE, "--interactive": _LIFE, "-t": _LIFE, "--tty": _LIFE,
    "--init": _LIFE, "--no-healthcheck": _LIFE, "-P": _NET, "--publish-all": _NET, "--privileged": _RIGHTS,
    "--read-only": _RIGHTS,
}  # fmt: skip
_IMAGES = (("vllm", "vllm"), ("sglang", "sglang"), ("llama.cpp", "llamacpp"))


@dataclass
class Command:
    """A command line taken apart; `left_out` says (flag, why) of what a recipe has no word for."""

    engine: str | None = None
    image: str | None = None
    env: dict[str, str | None] = field(default_factory=dict)  # None: the caller's own value was meant
    words: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def split(text: str) -> list[str]:
    """The words of a command line as a shell takes them, over several lines too. Raises RecipeError."""
    joined = re.sub(r"[ \t]*(?:\\|`|\^)[ \t]*\r?\n", " ", text)  # a line goes on after \, ` (PowerShell) or ^ (cmd)
    try:
        return shlex.split(joined, comments=True)
    except ValueError as error:
        raise RecipeError([Fault("command line", text, f"quotes that are closed ({error})", EDIT)]) from None


def take_apart(words: list[str]) -> Command:
    """A command line without what is around the engine's arguments. Raises RecipeError, every fault with its flag."""
    faults, found = Faults(), Command()
    for word in words:
        if word in _OPERATORS:
            faults.add("command line", word, "one command", EDIT)
        elif re.match("[\u2010-\u2015\u2212]", word):
            allowed = "a flag that begins with hyphens: a page made a dash of them"
            faults.add("command line", word, allowed, EDIT)
    faults.raise_any()
    rest = _without_prefixes(words, found)
    if len(rest) > 1 and PurePosixPath(rest[0]).name in ("docker", "podman", "nerdctl"):
        skip = 3 if rest[1:3] == ["container", "run"] else 2
        if rest[skip - 1] != "run":
            faults.add(rest[0], rest[1], "run", EDIT)
        else:
            rest = _docker(rest[skip:], found, faults)
    faults.raise_any()
    found.words = _program(rest, found)
    if found.engine is None:
        faults.add(
            "program", rest[0] if rest else None, "`vllm serve`, `sglang serve`, `llama-server` or an image", EDIT
        )
    faults.raise_any()
    return found


def _without_prefixes(words: list[str], found: Command) -> list[str]:
    at = 0
    while at < len(words):
        if match := _ASSIGNED.fullmatch(words[at]):
            found.env[match[1]] = match[2]
        elif words[at : at + 2] == ["uv", "run"]:
            at += 1
        elif words[at] not in _PREFIXES and not (at and words[at - 1] == "sudo" and words[at].startswith("-")):
            break
        at += 1
    return words[at:]


def _docker(words: list[str], found: Command, faults: Faults) -> list[str]:
    """Takes in the flags of `docker run` and the image; the words after it."""
    at, program = 0, []
    while at < len(words) and words[at].startswith("-"):
        word, at = words[at], at + 1
        if re.fullmatch("-[ditP]+", word):
            found.left_out += [(f"-{letter}", PLAIN[f"-{letter}"]) for letter in word[1:]]
            continue
        flag, said, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if flag in PLAIN:
            found.left_out.append((flag, PLAIN[flag]))
            continue
        if flag not in VALUED and flag not in ("-e", "--env", "--env-file", "--entrypoint"):
            faults.add(flag, word, "a flag of `docker run` that is known here", "leave it out")
            return []
        if not said:
            if at == len(words):
                faults.add(flag, None, "a value", EDIT)
                return []
            value, at = words[at], at + 1
        if flag in ("-e", "--env"):
            match = _ASSIGNED.fullmatch(value)
            found.env[match[1] if match else value] = match[2] if match else None
        elif flag == "--entrypoint":
            program = [value]
        elif flag == "--env-file":
            faults.add(flag, value, "each variable by -e NAME=VALUE; what is secret belongs in stack config", EDIT)
        else:
            found.left_out.append((flag, VALUED[flag]))
    if at == len(words):
        faults.add("docker run", None, "an image", EDIT)
        return []
    found.image = words[at]
    return program + words[at + 1 :]


def _program(words: list[str], found: Command) -> list[str]:
    """The engine's own arguments; says which engine it is, by the program or else by the image's name."""
    name = PurePosixPath(words[0]).name if words else ""
    if name in ("vllm", "sglang") and words[1:2] == ["serve"]:
        found.engine = name
        return words[2:]
    if name.startswith("python") and words[1:2] == ["-m"] and len(words) > 2:
        module = words[2].partition(".")[0]
        found.engine = module if module in ("vllm", "sglang") else found.engine
        return words[3:] if found.engine else words
    if name == "llama-server":
        found.engine = "llamacpp"
        return words[1:]
    if found.image is not None:
        last = found.image.rpartition("/")[2]
        found.engine = next((engine for part, engine in _IMAGES if part in last), "openai")
    return words
