"""What an SDK alone costs for a streamed answer: `python -m bench.sdk_alone`.

Asked by lines of JSON (`kind`, `base_url`, `api_key`, `chars`, `chunks`); answers with the CPU
seconds of one call on a warm client.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

MODEL = "test-model"


async def _anthropic(client: Any, question: str) -> int:
    messages = [{"role": "user", "content": question}]
    length = 0
    async with await client.messages.create(
        model=MODEL, max_tokens=4096, messages=messages, stream=True
    ) as events:
        async for event in events:
            if event.type == "content_block_delta":
                length += len(event.delta.text)
    return length


async def _openai(client: Any, question: str) -> int:
    messages = [{"role": "user", "content": question}]
    length = 0
    async with await client.chat.completions.create(
        model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True}
    ) as chunks:
        async for chunk in chunks:
            if chunk.choices:
                length += len(chunk.choices[0].delta.content or "")
    return length


def _client(kind: str, base_url: str, api_key: str) -> Any:
    if kind == "anthropic":
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(base_url=base_url, api_key=api_key, max_retries=0)
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0)


async def main() -> None:
    """Answer until standard input ends."""
    calls = {"anthropic": _anthropic, "openai": _openai}
    clients: dict[str, Any] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        kind, call = asked["kind"], calls[asked["kind"]]
        if kind not in clients:
            clients[kind] = _client(kind, asked["base_url"], asked["api_key"])
            await call(clients[kind], "answer 100 in 20")
        before = time.process_time()
        length = await call(clients[kind], f"answer {asked['chars']} in {asked['chunks']}")
        cpu_s = time.process_time() - before
        print(json.dumps({"cpu_s": cpu_s, "length": length}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
