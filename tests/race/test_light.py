"""The room is light: what importing its commands may bring along. Proves no second, only what costs them."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.race.asking import ENVIRONMENT


def test_the_commands_bring_no_tokenizer_no_plotting_and_nothing_of_the_rest_of_sluicegate() -> None:
    code = "import json, sys; from sluicegate.race import race_command, load_command; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=True, capture_output=True, text=True)
    names = set(json.loads(done.stdout))
    heavy = {"plotly", "numpy", "pandas", "torch", "transformers", "tokenizers", "tiktoken", "openai", "httpx"}
    assert not names & (heavy | {"requests", "pulumi", "grpc", "yaml", "asyncio"})
    assert {name for name in names if name.startswith("sluicegate.")} == {
        name for name in names if name.startswith("sluicegate.race")
    }
