"""What the host is told of each engine: plain data of one shape, and patterns that read the engine's log."""

from __future__ import annotations

import json
import re

import pytest

from sluicegate.recipes.engines import NAMES, adapter
from tests.recipes.engine_cases import RECIPES


@pytest.mark.parametrize("name", NAMES)
def test_host_facts_are_plain_data_with_the_same_keys_for_every_engine(name: str) -> None:
    facts = adapter(name).host_facts(RECIPES[name])
    assert json.loads(json.dumps(facts)) == facts
    assert set(facts) == {
        *(
            "health",
            "version",
            "models",
            "max_len_field",
            "metrics",
            "fingerprint",
            "check",
            "steady_s",
            "drain_s",
            "stop_s",
        ),
        *("patterns", "prompts", "max_model_len", "acceptance_floor", "not_helping", "speculation", "stall"),
    }
    assert set(facts["metrics"]) == {"path", "drafts", "draft_tokens", "accepted", "running", "waiting", "moving"}
    assert (facts["metrics"]["accepted"] is not None) == facts["speculation"], "what is not counted cannot be judged"
    for pattern in facts["patterns"]:
        re.compile(pattern["match"])
        assert set(pattern) in ({"match", "phase"}, {"match", "cause", "transient", "mend"})


@pytest.mark.parametrize(
    ("engine", "line", "said"),
    [
        # llama.cpp's lines are as xllamacpp 2026.10.11549 printed them when it was made to fail.
        ("llamacpp", "0.00.007 I srv    load_model: loading model '/m.gguf'", "load"),
        ("llamacpp", "0.01.063 I srv          init: model loaded", "first_token"),
        ("llamacpp", "0.00.007 E srv    load_model: failed to load model, '/m.gguf'", "the model file is missing"),
        (
            "llamacpp",
            "E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 9",
            "too little memory",
        ),
        ("llamacpp", "E srv start: couldn't bind HTTP server socket, hostname: /x.sock, port: 0", "socket is taken"),
        ("llamacpp", "llama-server: error: unrecognized arguments: --x", "does not take this command line"),
        # vLLM's are from its source and its own output.
        ("vllm", "INFO Loading weights took 12.3 seconds", "compile"),
        ("vllm", "ValueError: No available memory for the cache blocks.", "no memory for the KV cache"),
        ("vllm", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "out of GPU memory"),
        ("vllm", "ValueError: User-specified max_model_len (9) is greater than the derived max_model_len", "made for"),
        ("vllm", "ValueError: Model Runner V1 does not support: DFlash candidate-head drafts", "needs CUDA and Triton"),
        ("vllm", "vllm: error: unrecognized arguments: --disable-log-requests", "does not know an argument"),
        ("vllm", "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0", "driver is too old"),
        ("vllm", "EngineDeadError: EngineCore encountered an issue", "died while serving"),
        # SGLang's are from its source.
        ("sglang", "Load weight begin. avail mem=78.21 GB", "load"),
        ("sglang", "Memory pool end. avail mem=9.10 GB", "graphs"),
        ("sglang", "The server is fired up and ready to roll!", "first_token"),
        ("sglang", "Not enough memory. Please try to increase --mem-fraction-static.", "no memory for the KV cache"),
        ("sglang", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "out of GPU memory"),
        (
            "sglang",
            "Warning: User-specified context_length (9) is greater than the derived context_length (8). This may",
            "above what the model was made for",
        ),
        ("sglang", "launch_server.py: error: unrecognized arguments: --x", "does not know an argument"),
        ("openai", "port: the engine exited with code 137", "killed from outside"),
    ],
)
def test_a_log_line_is_read_as_its_phase_or_cause(engine: str, line: str, said: str) -> None:
    patterns = adapter(engine).host_facts(RECIPES[engine])["patterns"]
    hit = next(pattern for pattern in patterns if re.search(pattern["match"], line))
    assert said in hit.get("phase", hit.get("cause"))
