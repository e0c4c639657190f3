"""The only reader of stack config: every key checked, every fault in one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pulumi
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import ValidationError

from sluicegate.recipes.faults import Fault, Faults, RecipeError
from sluicegate.recipes.files import recipe_folders
from sluicegate.recipes.pins import Locked, load_locked

CLOUDS = ("local",)  # those with an adapter in this version, of local, ssh, aws, nebius
RUNTIMES = {"local": ("process",)}
SECRETS = ("apiKey", "hfToken", "registryAuth", "sshKey")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class MachineSettings(_Section):
    regions: tuple[str, ...] = ()
    markets: tuple[str, ...] = ()
    max_price: float | None = Field(None, gt=0)
    price: float | None = Field(None, gt=0)
    disk_gb: float | None = Field(None, gt=0)
    replace: Literal["new-first", "one-at-a-time"] = "new-first"
    root: str | None = None


class CacheSettings(_Section):
    size_gb: float = Field(200, gt=0)
    keep: bool = True


class EndpointSettings(_Section):
    domain: str | None = Field(None, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    port: int | None = Field(None, ge=1, le=65535)
    paths: tuple[str, ...] = Field(("/v1/*",), min_length=1)
    hold_s: int = Field(120, ge=0, le=3600)
    gate_deadline_s: float = Field(1200, gt=0)
    retry: int = Field(0, ge=0)
    key_rotation: str = "1"
    key_overlap_s: float = Field(60, ge=0)


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
    acceptance: str = "any"
    accepted: bool = False
    own_key: bool = False  # whether apiKey is set; its value stays an Output
    project: Path = field(default_factory=Path.cwd)


class SettingsError(pulumi.RunError):
    """The stack's config cannot be deployed; the message lists every fault."""


# Key -> what its value must be, as Pulumi.yaml declares it.
KEYS: Mapping[str, str] = {
    "recipe": "string", "cloud": "string", "runtime": "string", "pins": "object", "machine": "object",
    "cache": "object", "endpoint": "object", "acceptance": "string", "hostSetup": "array", "ssh": "object",
    "aws": "object", "nebius": "object", **dict.fromkeys(SECRETS, "string"),
}  # fmt: skip


def load(stack: str, project_name: str, project: Path, raw: Mapping[str, str], secret_keys: set[str]) -> Settings:
    """Check the whole config of a stack. `raw` has full keys (`project:key`) as Pulumi passes them.

    Pure: reads recipe and lock files under `project`, nothing else. Raises SettingsError with every fault.
    """
    faults = Faults()
    prefix = f"{project_name}:"
    mine = {k.removeprefix(prefix): v for k, v in raw.items() if k.startswith(prefix) and v != ""}
    values = {k: v for k, v in ((k, _parsed(k, v, faults)) for k, v in mine.items()) if v is not None}
    for key in set(mine) - set(KEYS):
        faults.add(key, mine[key], f"one of: {', '.join(KEYS)}", f"pulumi config rm {prefix}{key} --stack {stack}")
    for key in set(SECRETS) & set(mine) - {k.removeprefix(prefix) for k in secret_keys}:
        faults.add(key, "[in clear]", "a secret", f"pulumi config set --secret {prefix}{key} --stack {stack}")
    cloud = _word(values, "cloud", CLOUDS, stack, faults)
    runtime = _word(values, "runtime", RUNTIMES.get(cloud, ("container", "process")), stack, faults)
    acceptance = _word({"acceptance": "any"} | values, "acceptance", ("any", "required"), stack, faults)
    machine = _section(MachineSettings, "machine", values, faults)
    cache = _section(CacheSettings, "cache", values, faults)
    endpoint = _section(EndpointSettings, "endpoint", _rotation_as_text(values), faults)
    folders = recipe_folders(project)
    recipe = values.get("recipe")
    locked = None
    if recipe is None:
        faults.add(
            "recipe", None, "the name of a recipe, as smollm2-135m/q4", f"pulumi config set recipe NAME --stack {stack}"
        )
    else:
        try:
            locked = load_locked(recipe, values.get("pins", {}), folders)
        except RecipeError as error:
            faults.found += [_for_stack(fault, stack) for fault in error.faults]
    if locked and cloud == "local" and locked.lock.gpu.type != "cpu":
        mend = "choose a recipe for cpu, or another cloud"
        faults.add("recipe", recipe, f"a recipe whose gpu.type is cpu on cloud local, not {locked.lock.gpu.type}", mend)
    accepted = bool(locked and _record(locked, folders))
    if acceptance == "required" and locked and not accepted:
        allowed = f"a lock with a record in recipes/{locked.recipe_name.partition('/')[0]}/accepted/"
        faults.add("acceptance", "required", allowed, "deploy it on a trial stack and commit its record")
    if faults.found:
        count = len(faults.found)
        head = f"stack {stack} cannot be deployed: {count} fault{'s' if count > 1 else ''} in its config"
        raise SettingsError("\n".join([head, *(f"  {fault}" for fault in faults.found)]))
    assert locked, "a recipe that is not locked has left a fault"
    return Settings(
        locked,
        cloud,
        runtime,
        machine,
        cache,
        endpoint,
        tuple(values.get("hostSetup", ())),
        acceptance,
        accepted,
        "apiKey" in values,
        project,
    )


def from_stack() -> Settings:
    """The settings of the stack this program runs for."""
    from pulumi.runtime import config

    raw = {**config.get_config_env(), **config.CONFIG.get()}
    secrets = {*config.get_config_secret_keys_env(), *config._SECRET_KEYS.get()}
    return load(pulumi.get_stack(), pulumi.get_project(), Path.cwd(), raw, secrets)


def _parsed(key: str, value: str, faults: Faults) -> Any:
    kind = KEYS.get(key, "string")
    if kind == "string":
        return value
    shape = {"object": dict, "array": list}[kind]
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = value
    if not isinstance(parsed, shape):
        faults.add(key, value, f"an {kind}", f"pulumi config rm {key}, then set it with --path")
        return None
    if key == "hostSetup" and not all(isinstance(step, str) and step for step in parsed):
        faults.add(key, parsed, "a list of shell commands", "pulumi config set --path 'hostSetup[0]' 'COMMAND'")
        return None
    return parsed


def _word(values: Mapping[str, Any], key: str, allowed: tuple[str, ...], stack: str, faults: Faults) -> str:
    value = values.get(key)
    if value not in allowed:
        mend = f"pulumi config set {key} {allowed[0]} --stack {stack}"
        faults.add(key, value, ", ".join(allowed) + " in this version", mend)
    return str(value)


def _rotation_as_text(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """`keyRotation: 2` is as good as `"2"`: YAML and `pulumi config set` make a number of it."""
    endpoint = values.get("endpoint", {})
    rotation = endpoint.get("keyRotation")
    if isinstance(rotation, int) and not isinstance(rotation, bool):
        return {**values, "endpoint": {**endpoint, "keyRotation": str(rotation)}}
    return values


def _section(model: type[Any], key: str, values: Mapping[str, Any], faults: Faults) -> Any:
    try:
        return model.model_validate_json(json.dumps(values.get(key, {})), strict=True)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_context=False):
            path = ".".join([key, *(str(part) for part in item["loc"])])
            if item["type"] == "extra_forbidden":
                allowed = "one of: " + ", ".join(to_camel(name) for name in model.model_fields)
                faults.add(path, item["input"], allowed, f"pulumi config rm --path {path}")
            else:
                allowed = item["msg"][0].lower() + item["msg"][1:]
                faults.add(path, item["input"], allowed, f"pulumi config set --path {path} VALUE")
        return None


def _for_stack(fault: Fault, stack: str) -> Fault:
    mend = f"{fault.mend} --stack {stack}" if fault.mend.startswith("sluicegate recipe pin") else fault.mend
    return Fault(fault.key, fault.value, fault.allowed, mend)


def _record(locked: Locked, folders: list[Path]) -> Path | None:
    """The committed acceptance record of this lock on its GPU type and count, if there is one."""
    model, _, name = locked.recipe_name.partition("/")
    gpu = locked.lock.gpu
    file = f"{name}-{locked.digest.removeprefix('sha256:')[:12]}-{gpu.type}x{gpu.count}.json"
    for folder in folders:
        path = folder / model / "accepted" / file
        try:
            if json.loads(path.read_text())["lock"] == locked.digest:
                return path
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
