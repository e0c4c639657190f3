"""Reading YAML and JSON as plain data: bounded, without aliases, without a key said twice."""

from __future__ import annotations

import json
from typing import Any

import yaml

from .faults import Fault, RecipeError

RECIPE_BYTES = 256 * 1024
LOCK_BYTES = 64 * 1024 * 1024  # a repository of 1,000 files takes 0.2 MB


class _RefusedError(ValueError):
    """What this reader does not take, worded as what is allowed instead."""


class _Loader(yaml.SafeLoader):
    """SafeLoader without aliases (a few lines expand to gigabytes), dates (text here) and double keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise _RefusedError("YAML without aliases: write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _RefusedError(f"text keys only; line {key_node.start_mark.line + 1} has {key!r}")
            if key in seen:
                raise _RefusedError(f"each key once; {key!r} comes again in line {key_node.start_mark.line + 1}")
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:timestamp",)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(data: bytes, where: str, mend: str) -> object:
    """Plain data of one YAML document. Raises RecipeError under the key `where`."""
    _bounded(data, RECIPE_BYTES, where, mend)
    try:
        return yaml.load(data.decode("utf-8"), _Loader)
    except UnicodeDecodeError:
        raise RecipeError([Fault(where, None, "UTF-8 text", mend)]) from None
    except RecursionError:
        raise RecipeError([Fault(where, None, "shallower nesting", mend)]) from None
    except _RefusedError as error:
        raise RecipeError([Fault(where, None, str(error), mend)]) from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RecipeError([Fault(where, problem, f"valid YAML{line}", mend)]) from None


def load_json(data: bytes, where: str, mend: str) -> object:
    """Plain data of one JSON document. Raises RecipeError under the key `where`."""
    _bounded(data, LOCK_BYTES, where, mend)
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise RecipeError([Fault(where, None, "UTF-8 text", mend)]) from None
    except RecursionError:
        raise RecipeError([Fault(where, None, "shallower nesting", mend)]) from None
    except _RefusedError as error:
        raise RecipeError([Fault(where, None, str(error), mend)]) from None
    except ValueError as error:
        raise RecipeError([Fault(where, str(error), "valid JSON", mend)]) from None


def _bounded(data: bytes, limit: int, where: str, mend: str) -> None:
    if len(data) > limit:
        raise RecipeError([Fault(where, f"{len(data)} bytes", f"at most {limit} bytes", mend)])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _RefusedError(f"each key once; {next(key for key in keys if keys.count(key) > 1)!r} comes again")
    return found


def _no_constant(name: str) -> object:
    raise _RefusedError(f"finite numbers; found {name}")
