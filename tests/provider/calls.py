"""Calls of the plugin as the engine makes them, with good values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from sluicegate.provider.values import encode
from tests.provider.conftest import Plugin
from tests.provider.resource_cases import INPUTS, OUTPUTS, urn

EMPTY = empty_pb2.Empty()
SECRETS = {"Front": ("apiKey",)}


def inputs(name: str, **change: Any) -> Any:
    return encode(INPUTS[name] | change, SECRETS.get(name, ()))


def outputs(name: str, **change: Any) -> Any:
    return encode(OUTPUTS[name] | change, SECRETS.get(name, ()))


def create(plugin: Plugin, name: str = "Engine", **more: Any) -> Any:
    request = {"urn": urn(name), "properties": inputs(name)} | more
    return plugin.stub.Create(provider_pb2.CreateRequest(**request), timeout=30)


def update(plugin: Plugin, name: str = "Engine", **more: Any) -> Any:
    request = {"id": "id", "urn": urn(name), "olds": outputs(name), "news": inputs(name)} | more
    return plugin.stub.Update(provider_pb2.UpdateRequest(**request), timeout=30)


def failure(call: Callable[[], Any]) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value
