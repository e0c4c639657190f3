"""The only reader of stack config: every key checked, every fault in one message."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import recipe_folders
from sluicegate.recipes.pins import Locked, load_locked

from .config_faults import ConfigFaults
from .sections import CacheSettings, EndpointSettings, MachineSettings, read_section

CLOUDS = ("local",)  # those with an adapter in this version, of local, ssh, aws, nebius
RUNTIMES = {"local": ("process",)}
SECRETS = ("apiKey", "hfToken", "registryAuth", "sshKey")
KEY = re.compile(r"(?=.{16})[!-~]*[!-)+-~]")  # as the Front resource and the host have it
ELSEWHERE = ("ssh", "aws", "nebius")  # sections that say how one cloud is reached

# Key -> what its value must be, as Pulumi.yaml declares it.
KEYS: Mapping[str, str] = {
    "recipe": "string", "cloud": "string", "runtime": "string", "pins": "object", "machine": "object",
    "cache": "object", "endpoint": "object", "acceptance": "string", "hostSetup": "array",
    **dict.fromkeys(ELSEWHERE, "object"), **dict.fromkeys(SECRETS, "string"),
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Everything a stack's config says, checked."""

    locked: Locked
    cloud: str
    runtime: str
    machine: MachineSettings
    cache: CacheSettings
    endpoint: EndpointSettings
    host_setup: tuple[str, ...] = ()
    host_setup_secret: bool = False
    acceptance: str = "any"
    accepted: bool = False
    own_key: bool = False  # whether apiKey is set; its value stays an Output
    project: Path = field(default_factory=Path.cwd)


class SettingsError(pulumi.RunError):
    """The stack's config cannot be deployed; the message lists every fault."""


def load(stack: str, project_name: str, project: Path, raw: Mapping[str, str], secret_keys: set[str]) -> Settings:
    """Check the whole config of a stack. `raw` has full keys (`project:key`) as Pulumi passes them.

    Pure: reads recipe and lock files under `project`, nothing else. Raises SettingsError with every fault.
    """
    prefix = f"{project_name}:"
    mine = {k.removeprefix(prefix): v for k, v in raw.items() if k.startswith(prefix) and v != ""}
    secret = {k.removeprefix(prefix) for k in secret_keys}
    faults = ConfigFaults(stack, prefix, secret)
    values = {k: v for k, v in ((k, _parsed(k, v, faults)) for k, v in mine.items()) if v is not None}
    for key in sorted(set(mine) - set(KEYS)):
        faults.add(key, mine[key], f"one of: {', '.join(KEYS)}", faults.remove(key, whole=True))
    for key in sorted(set(SECRETS) & set(mine) - secret):
        faults.add(key, "[in clear]", "a secret", f"pulumi config set --secret {prefix}{key} --stack {stack}")
    for key in sorted(secret & set(mine) & set(KEYS) - {*SECRETS, "hostSetup"}):
        faults.add(key, "[a secret in it]", "no secrets: it is compared and shown in previews", faults.remove(key))
    if "apiKey" in mine and "apiKey" in secret and not KEY.fullmatch(mine["apiKey"]):
        allowed = "16 or more printable ASCII characters, no spaces, no * at the end"
        faults.add("apiKey", "[not shown]", allowed, f"pulumi config set --secret {prefix}apiKey --stack {stack}")
    cloud = _word(values, "cloud", CLOUDS, faults)
    runtime = _word(values, "runtime", RUNTIMES.get(cloud, RUNTIMES["local"]), faults)
    acceptance = _word({"acceptance": "any"} | values, "acceptance", ("any", "required"), faults)
    for key in ELSEWHERE:
        if cloud in CLOUDS and key != cloud and values.get(key):
            faults.add(key, values[key], f"nothing: it has no effect on cloud {cloud}", faults.remove(key))
    machine = read_section(MachineSettings, "machine", values, faults)
    cache = read_section(CacheSettings, "cache", values, faults)
    endpoint = read_section(EndpointSettings, "endpoint", values, faults)
    folders = recipe_folders(project)
    locked = _locked(values, folders, faults)
    if locked and cloud == "local" and locked.lock.gpu.type != "cpu":
        mend = "choose a recipe for cpu, or another cloud"
        allowed = f"a recipe whose gpu.type is cpu on cloud local, not {locked.lock.gpu.type}"
        faults.add("recipe", locked.recipe_name, allowed, mend)
    accepted = bool(locked and _record(locked, folders))
    if acceptance == "required" and locked and not accepted:
        allowed = f"a lock with a record in recipes/{locked.recipe_name.partition('/')[0]}/accepted/"
        faults.add("acceptance", "required", allowed, "deploy it on a trial stack and commit its record")
    if faults.found:
        count = len(faults.found)
        head = f"stack {stack} cannot be deployed: {count} fault{'s' if count > 1 else ''} in its config"
        raise SettingsError("\n".join([head, *(f"  {fault}" for fault in faults.shown())]))
    assert locked, "a recipe that is not locked has left a fault"
    return Settings(
        locked=locked, cloud=cloud, runtime=runtime, machine=machine, cache=cache, endpoint=endpoint,
        host_setup=tuple(values.get("hostSetup", ())),
        host_setup_secret="hostSetup" in secret, acceptance=acceptance, accepted=accepted,
        own_key="apiKey" in values, project=project,
    )  # fmt: skip


def from_stack() -> Settings:
    """The settings of the stack this program runs for."""
    from pulumi.runtime import config

    raw = {**config.get_config_env(), **config.CONFIG.get()}
    secrets = {*config.get_config_secret_keys_env(), *config._SECRET_KEYS.get()}
    return load(pulumi.get_stack(), pulumi.get_project(), Path.cwd(), raw, secrets)


def _parsed(key: str, value: str, faults: ConfigFaults) -> Any:
    kind = KEYS.get(key, "string")
    if kind == "string":
        return value
    shape = {"object": dict, "array": list}[kind]
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = value
    if not isinstance(parsed, shape):
        faults.add(key, value, f"an {kind}", faults.remove(key))
        return None
    if key == "hostSetup":
        good = [isinstance(s, str) and bool(s.strip()) and "\0" not in s for s in parsed]
        if not all(good):
            mend = faults.put(f"hostSetup[{good.index(False)}]", "'COMMAND'")
            faults.add(key, parsed, "a list of shell commands", mend)
            return None
    return parsed


def _word(values: Mapping[str, Any], key: str, allowed: tuple[str, ...], faults: ConfigFaults) -> str:
    value = values.get(key)
    if value not in allowed:
        faults.add(key, value, ", ".join(allowed) + " in this version", faults.put(key, allowed[0]))
    return str(value)


def _locked(values: Mapping[str, Any], folders: list[Path], faults: ConfigFaults) -> Locked | None:
    """The locked recipe of these pins. Without a recipe the pins are judged by themselves, if there are any."""
    recipe, pins = values.get("recipe"), values.get("pins", {})
    if recipe is None:
        faults.add("recipe", None, "the name of a recipe, as smollm2-135m/q4", faults.put("recipe", "NAME"))
        if not pins:
            return None
    if faults.has("pins"):
        return None
    try:
        return load_locked(recipe or "", pins, folders)
    except RecipeError as error:
        faults.of_recipe([fault for fault in error.faults if recipe is not None or fault.key != "recipe"])
        return None


def _record(locked: Locked, folders: list[Path]) -> Path | None:
    """The committed acceptance record of this lock on its GPU type and count, if there is one."""
    model, _, name = locked.recipe_name.partition("/")
    gpu = locked.lock.gpu
    file = f"{name}-{locked.digest.removeprefix('sha256:')[:12]}-{gpu.type}x{gpu.count}.json"
    for folder in folders:
        path = folder / model / "accepted" / file
        try:
            if json.loads(path.read_bytes())["lock"] == locked.digest:
                return path
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
