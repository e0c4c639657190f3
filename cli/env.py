"""`sluicegate env`: what the ordinary OpenAI client needs, as shell lines."""

from __future__ import annotations

import shlex
from argparse import Namespace

from .stack import outputs


def run(options: Namespace) -> int:
    found = outputs(options.stack)
    print(f"export OPENAI_BASE_URL={shlex.quote(found['url'] + '/v1')}")
    print(f"export OPENAI_API_KEY={shlex.quote(found['api_key'])}")
    return 0
