"""What a script with the asynchronous OpenAI client measures, a stamp per parsed event; run by the race's bench.

`python openai_peer.py BASE_URL IN_FLIGHT REQUESTS` prints rows of [prompt, ttft_ms, tok/s, end_ms], cpu_s and rss_mb.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time

from openai import AsyncOpenAI


async def run(base: str, in_flight: int, requests: int) -> list[list[object]]:
    client, slots, rows = AsyncOpenAI(base_url=base, api_key="x"), asyncio.Semaphore(in_flight), list[list[object]]()

    async def one(number: int) -> None:
        async with slots:
            start, times, tokens = time.perf_counter(), list[float](), 0
            answer = await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": str(number)}],
                stream=True,
                stream_options={"include_usage": True},
            )
            async for event in answer:
                at = time.perf_counter()
                tokens = event.usage.completion_tokens if event.usage else tokens
                if event.choices and event.choices[0].delta.content:
                    times.append(at)
            end_ms, speed = (time.perf_counter() - start) * 1000, (tokens - 1) / (times[-1] - times[0])
            rows.append([str(number), (times[0] - start) * 1000, speed, end_ms])

    await asyncio.gather(*(one(number) for number in range(requests)))
    return rows


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    begun = time.process_time()
    measured = asyncio.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    used = time.process_time() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": measured, "cpu_s": used, "rss_mb": memory}))
