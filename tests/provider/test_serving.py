"""The servicer behind a real gRPC channel: what each outcome is to the engine, and that no secret is in any of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import plugin_pb2, provider_pb2

from sluicegate.provider.front import Front
from sluicegate.provider.resource import FailedError, InitFailedError
from sluicegate.provider.values import SECRET, SIG, UNKNOWN, decode, encode, secret_names
from tests.provider.calls import EMPTY, create, failure, inputs, outputs, update
from tests.provider.conftest import Plugin, init_failed
from tests.provider.fake_host import FakeHost
from tests.provider.resource_cases import BY_NAME, KEY, OUTPUTS, urn


def test_the_plugin_says_what_it_is(plugin: Plugin) -> None:
    plugin.stub.Attach(plugin_pb2.PluginAttach(address=plugin.address))
    assert plugin.stub.GetPluginInfo(EMPTY).version == "0.1.0"
    hello = plugin.stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=plugin.address))
    assert hello.accept_secrets
    ready = plugin.stub.Configure(provider_pb2.ConfigureRequest())
    assert (ready.acceptSecrets, ready.supportsPreview) == (True, True)
    given = encode({"a": 1})
    assert plugin.stub.CheckConfig(provider_pb2.CheckRequest(news=given)).inputs == given
    none = plugin.stub.DiffConfig(provider_pb2.DiffRequest())
    assert none.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_the_schema_has_every_input_and_output_and_marks_the_key(plugin: Plugin) -> None:
    schema = json.loads(plugin.stub.GetSchema(provider_pb2.GetSchemaRequest()).schema)
    assert set(schema["resources"]) == {f"sluicegate:index:{name}" for name in BY_NAME}
    for name, resource in BY_NAME.items():
        said = schema["resources"][f"sluicegate:index:{name}"]
        assert set(said["inputProperties"]) == {*resource.required, *resource.optional}
        assert set(said["properties"]) == {*resource.required, *resource.optional, *resource.outputs}
    assert schema["resources"]["sluicegate:index:Front"]["inputProperties"]["apiKey"]["secret"] is True


@pytest.mark.parametrize("name", list(BY_NAME))
def test_check_gives_the_inputs_back_as_they_came(name: str, plugin: Plugin) -> None:
    answer = plugin.stub.Check(provider_pb2.CheckRequest(urn=urn(name), news=inputs(name)))
    assert answer.inputs == inputs(name)
    assert list(answer.failures) == []


def test_check_names_every_fault_by_its_property(plugin: Plugin) -> None:
    news = encode({"cloud": 1, "name": "c", "sizeGb": True, "size": 2})
    answer = plugin.stub.Check(provider_pb2.CheckRequest(urn=urn("Volume"), news=news))
    assert {f.property: f.reason for f in answer.failures} == {
        "cloud": "expected a string, found a number",
        "sizeGb": "expected a number, found a boolean",
        "keep": "missing; expected a boolean",
        "size": "unknown; allowed: cloud, keep, name, root, sizeGb, throughput",
    }


def test_a_type_that_is_none_of_ours_is_refused(plugin: Plugin) -> None:
    error = failure(lambda: plugin.stub.Check(provider_pb2.CheckRequest(urn=urn("Fleet"))))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_diff_compares_the_inputs_and_heeds_what_is_ignored(plugin: Plugin) -> None:
    request = provider_pb2.DiffRequest(
        urn=urn("Front"), olds=outputs("Front"), old_inputs=inputs("Front"),
        news=inputs("Front", apiKey="another-key-0123456789", paths=["/v1/*", "/x"]),
    )  # fmt: skip
    assert set(plugin.stub.Diff(request).detailedDiff) == {"apiKey", "paths[1]"}
    request.ignoreChanges.append("paths")
    assert set(plugin.stub.Diff(request).detailedDiff) == {"apiKey"}


def test_a_preview_of_a_create_has_no_id_and_what_is_unknown_stays_so(plugin: Plugin) -> None:
    answer = create(plugin, "Front", preview=True, properties=inputs("Front", host=UNKNOWN, domain=None, port=None))
    assert answer.id == ""
    found = decode(answer.properties)
    assert found["host"] is found["url"] is UNKNOWN
    assert secret_names(answer.properties) == {"apiKey"}


def test_what_arrives_secret_leaves_secret_at_any_depth(plugin: Plugin, host: FakeHost) -> None:
    news = inputs("Engine")
    hidden = news.fields["env"].struct_value.fields["TOKEN"].struct_value.fields
    hidden[SIG].string_value = SECRET
    hidden["value"].string_value = "MARK-nested"
    answer = update(plugin, news=news)
    assert "env" in secret_names(answer.properties)
    assert decode(answer.properties)["env"] == {"TOKEN": "MARK-nested"}
    host.jobs["activate"] = RuntimeError("with MARK-nested in it")
    assert "MARK-nested" not in failure(lambda: update(plugin, news=news)).details()


# --- each way to fail ---


class Failing(Front):
    """A Front whose every act fails as it is told, with the key in its text, plain and as JSON has it."""

    def __init__(self, error: Callable[[str], Exception]) -> None:
        self._error = error

    def _fail(self, *_: Any) -> Any:
        raise self._error(f"refused: {KEY}\n{json.dumps(KEY)}")

    check = diff = preview = create = update = read = delete = _fail  # type: ignore[assignment]


CALLS: dict[str, Callable[[Any], Any]] = {
    "Check": lambda s: s.Check(provider_pb2.CheckRequest(urn=urn("Front"), news=inputs("Front"))),
    "Diff": lambda s: s.Diff(provider_pb2.DiffRequest(urn=urn("Front"), olds=outputs("Front"), news=inputs("Front"))),
    "Create": lambda s: s.Create(provider_pb2.CreateRequest(urn=urn("Front"), properties=inputs("Front"))),
    "Update": lambda s: s.Update(
        # The key is in the old outputs only: a rotation must not print the one it retires.
        provider_pb2.UpdateRequest(
            urn=urn("Front"), olds=outputs("Front"), news=inputs("Front", apiKey="another-key-0123456789")
        )
    ),
    "Read": lambda s: s.Read(provider_pb2.ReadRequest(id="i", urn=urn("Front"), properties=outputs("Front"))),
    "Delete": lambda s: s.Delete(provider_pb2.DeleteRequest(id="i", urn=urn("Front"), properties=outputs("Front"))),
}


@pytest.mark.parametrize("call", list(CALLS))
def test_what_failed_and_changed_nothing_is_a_failed_precondition_without_the_secret(
    call: str, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(plugin_resources(), Front.token, Failing(FailedError))
    error = failure(lambda: CALLS[call](plugin.stub))
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert error.details() == 'refused: [secret]\n"[secret]"'


@pytest.mark.parametrize("call", ["Create", "Update", "Read"])
def test_what_is_there_and_does_not_work_carries_id_outputs_and_reason(
    call: str, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = OUTPUTS["Front"] | {"url": None}
    monkeypatch.setitem(plugin_resources(), Front.token, Failing(lambda text: InitFailedError("front-1", there, text)))
    error = failure(lambda: CALLS[call](plugin.stub))
    assert error.code() == grpc.StatusCode.UNKNOWN
    found = init_failed(error)
    assert found.id == "front-1"
    assert list(found.reasons) == ['refused: [secret]\n"[secret]"']
    assert decode(found.properties) == there
    assert secret_names(found.properties) == {"apiKey"}


@pytest.mark.parametrize("call", list(CALLS))
def test_a_fault_of_our_own_is_one_line_with_its_place(
    call: str, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(plugin_resources(), Front.token, Failing(ZeroDivisionError))
    error = failure(lambda: CALLS[call](plugin.stub))
    assert error.code() == grpc.StatusCode.INTERNAL
    text = error.details() or ""
    assert text.startswith("a fault in sluicegate itself (ZeroDivisionError at test_serving.py:")
    assert KEY not in text
    assert "Traceback" not in text
    assert len(text.splitlines()) == 1


def plugin_resources() -> dict[str, Any]:
    from sluicegate.provider.serving import RESOURCES

    return RESOURCES


def test_read_of_what_is_gone_has_no_id_and_an_import_is_refused_plainly(plugin: Plugin, host: FakeHost) -> None:
    request = provider_pb2.ReadRequest(
        id="i", urn=urn("Machine"), properties=outputs("Machine"), inputs=inputs("Machine")
    )
    host.answers["claimed"] = {"machine": {"token": "tok"}}
    answer = plugin.stub.Read(request)
    assert (answer.id, answer.properties, answer.inputs) == ("i", outputs("Machine"), inputs("Machine"))
    host.answers["claimed"] = {"machine": None}
    assert plugin.stub.Read(request).id == ""
    error = failure(lambda: plugin.stub.Read(provider_pb2.ReadRequest(id="i", urn=urn("Machine"))))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "cannot be imported" in (error.details() or "")
