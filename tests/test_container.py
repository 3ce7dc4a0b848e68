"""Dockerfile and compose.yaml, as far as they can be checked without a Docker engine: what they name
exists, what must not be in an image is not, and the steps that install work in a clean folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from ruamel.yaml import YAML

from bridge.cli.parser import parse
from bridge.operation.signals import PATIENCE_S

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Step:
    word: str
    rest: str

    @property
    def as_list(self) -> list[str]:
        """The words of the JSON form."""
        words: list[str] = json.loads(self.rest)
        return words


def stages() -> list[list[Step]]:
    """The steps of the Dockerfile, by stage."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / "Dockerfile").read_text())
    found: list[list[Step]] = []
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = " ".join(line.split()).partition(" ")
        if word == "FROM":
            found.append([])
        if word:
            found[-1].append(Step(word, rest))
    return found


def copied(stage: list[Step]) -> list[str]:
    """What comes from the checkout."""
    return [
        source
        for step in stage
        if step.word == "COPY" and not step.rest.startswith("--from")
        for source in step.rest.split()[:-1]
    ]


def the(word: str) -> Step:
    """The only step of its kind in the last stage."""
    (step,) = [step for step in stages()[-1] if step.word == word]
    return step


def test_every_base_has_a_version() -> None:
    for first, *_ in stages():
        image = first.rest.split()[0]
        name, _, tag = image.partition(":")
        assert name == "python"
        assert re.fullmatch(r"3\.\d+-slim-\w+", tag)


def test_only_what_is_there_and_needed_goes_into_the_image() -> None:
    sources = [source for stage in stages() for source in copied(stage)]
    for source in sources:
        assert (ROOT / source).exists(), source
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {package.rstrip("*") for package in packages} <= set(sources)
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines[0] == "*"  # all but:
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == set(sources)


def test_it_does_not_run_as_root_and_keeps_everything_in_one_volume() -> None:
    assert the("USER").rest == "galata"
    volume = the("VOLUME").rest
    name, options = parse(the("CMD").as_list, {})
    assert name == "run:run"
    assert options.data == Path(volume)
    assert options.config is not None
    assert options.config.parent == Path(volume)
    assert the("ENTRYPOINT").as_list == ["galata"]
    steps = [step.word for step in stages()[-1]]
    assert steps.index("USER") < steps.index("ENTRYPOINT")


def test_its_health_is_that_of_the_bot_on_the_volume() -> None:
    _, _, command = the("HEALTHCHECK").rest.partition(" CMD ")
    program, *words = json.loads(command)
    name, options = parse(words, {})
    assert (program, name) == ("galata", "status:show")
    assert options.data == Path(the("VOLUME").rest)


def test_the_steps_install_a_galata_that_runs(tmp_path: Path) -> None:
    """The RUN steps of the first stage in a clean folder. What the step with the lock would fetch is
    lent by the environment of the tests."""
    build, *_ = stages()
    venv, source = tmp_path / "galata", tmp_path / "src"
    for name in copied(build):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, source / name)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_NO_INDEX": "1"}
    for step in (step.rest for step in build if step.word == "RUN"):
        words = step.replace("/opt/galata", str(venv)).replace("python ", f"{sys.executable} ", 1)
        if "--requirement" in words or " -r " in words:
            assert (source / words.split()[-1]).is_file()
            assert "--require-hashes" in words
            lent = sysconfig.get_path("purelib", vars={"base": str(venv), "platbase": str(venv)})
            ours = sysconfig.get_path("purelib")
            # Before its own: a new venv of Python 3.11 has a setuptools from before our metadata.
            Path(lent, "lent.pth").write_text(f"import sys; sys.path.insert(0, {ours!r})\n")
            continue
        subprocess.run(words.split(), cwd=source, env=environ, check=True, capture_output=True)
    found = subprocess.run(
        [venv / "bin" / "python", "-P", "-c", "import bridge; print(bridge.__file__)"],
        cwd=tmp_path, env=environ, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout.startswith(str(venv))
    spoken = subprocess.run(
        [venv / "bin" / "galata", "chat", "--data", "d"],
        cwd=tmp_path,
        env={**environ, "OPENAI_BASE_URL": "http://127.0.0.1:9"},
        input="/whoami\n",
        check=True,
        capture_output=True,
        text=True,
    )
    assert "`local`" in spoken.stdout  # migrations and texts are in the package


@pytest.fixture
def compose() -> dict[str, Any]:
    read = YAML(typ="safe").load  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return cast("dict[str, Any]", read((ROOT / "compose.yaml").read_text()))


def test_compose_is_short_and_says_what_there_is(compose: dict[str, Any]) -> None:
    assert len((ROOT / "compose.yaml").read_text().splitlines()) <= 20
    assert set(compose) == {"services", "volumes"}
    ((_, service),) = compose["services"].items()
    known = {"build", "image", "volumes", "restart", "stop_grace_period", "init", "read_only"}
    assert set(service) <= known | {"tmpfs", "cap_drop", "security_opt"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert service["image"] == f"galata:{project['version']}"
    (mount,) = service["volumes"]
    name, _, target = mount.partition(":")
    assert name in compose["volumes"]
    assert target == the("VOLUME").rest
    assert int(service["stop_grace_period"].removesuffix("s")) > PATIENCE_S + 10


def test_the_commands_that_compose_yaml_tells_are_ours() -> None:
    (setup,) = re.findall(
        r"docker compose run --rm galata (.+)", (ROOT / "compose.yaml").read_text()
    )
    name, options = parse(setup.split(), {})
    assert name == "setup:setup"
    assert options.config is not None
    assert {options.data, options.config.parent} == {Path(the("VOLUME").rest)}
