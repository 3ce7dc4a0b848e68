"""From answers to what is written: a first configuration, or changes to an earlier one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agent.settings import ModelSettings, PriceSettings
from bridge.cli.options import CommandFailed
from bridge.cli.setup_answers import Answers, Endpoint, number
from bridge.cli.setup_config import OneLine, Section, edited, literal, new_text, reference
from bridge.cli.setup_earlier import Earlier
from bridge.config import Config
from bridge.limits.checks import policy_faults
from bridge.yaml_source import Path, parse

MODEL_NAME = "default"
_MOST_OF_A_NAME = 37  # characters of the 40: a number may follow
_Edits = dict[Path, "str | Section"]


@dataclass(frozen=True, slots=True)
class Written:
    """The text of the configuration, and the new secrets of `.env` by their variables."""

    config: str
    secrets: Mapping[str, str]


def first(answers: Answers) -> Written:
    """Everything, in 15 lines at most."""
    provider = answers.provider
    section: Section = {
        **({"timezone": answers.timezone} if answers.timezone else {}),
        "model": MODEL_NAME,
        "providers": {provider.name: _endpoint(provider, _variables(provider))},
        "models": {MODEL_NAME: _model(answers.model)},
        "channels": {
            channel.name: _endpoint(channel, _variables(channel)) for channel in answers.channels
        },
        "installation": {"cost_per_month_usd": number(answers.limit_usd)},
    }
    secrets = {
        endpoint.variable(key): value
        for endpoint in (provider, *answers.channels)
        for key, value in endpoint.secrets.items()
    }
    return Written(new_text(section), secrets)


def again(earlier: Earlier, answers: Answers) -> Written:
    """What differs from the earlier answers, and nothing else. Raises `CommandFailed`, also where a
    limit is answered that could not be kept to: another model has no price."""
    config = earlier.config
    edits: _Edits = {}
    secrets: dict[str, str] = {}
    for group, endpoint in (
        ("providers", answers.provider),
        *(("channels", channel) for channel in answers.channels),
    ):
        path = (group, endpoint.name)
        changed = _changed if earlier.section(path) else _added
        edits |= changed(earlier, path, endpoint, secrets)
    edits |= _chosen(config, answers.model)
    if answers.timezone and answers.timezone != config.timezone:
        edits["timezone",] = answers.timezone
    if answers.limit_usd != config.installation.cost_per_month_usd:
        edits["installation", "cost_per_month_usd"] = number(answers.limit_usd)
    text = edited(earlier.text, edits) if edits else earlier.text
    if faults := policy_faults(parse(text.encode())):
        told = "\n".join(f"{fault.key}: {fault.message}" for fault in faults)
        raise CommandFailed(f"{told}\nNothing was written.")
    return Written(text, secrets)


def _added(earlier: Earlier, path: Path, endpoint: Endpoint, secrets: dict[str, str]) -> _Edits:
    """A section that is new; its secrets are put into `secrets`."""
    variables = {
        key: _free_variable(variable, earlier) for key, variable in _variables(endpoint).items()
    }
    secrets |= {variables[key]: value for key, value in endpoint.secrets.items()}
    return {path: _endpoint(endpoint, variables)}


def _changed(earlier: Earlier, path: Path, endpoint: Endpoint, secrets: dict[str, str]) -> _Edits:
    """The secrets of a section that have changed. One that stood in the file itself moves to a
    variable."""
    edits: _Edits = {}
    for key, value in endpoint.secrets.items():
        here = (*path, key)
        if value == earlier.secret(here):
            continue
        variable = earlier.variable(here)
        if variable is None:
            variable = _free_variable(endpoint.variable(key), earlier)
            edits[here] = reference(variable)
        secrets[variable] = value
    return edits


def _chosen(config: Config, model: ModelSettings) -> _Edits:
    """The model that answers: an entry that is there, else a new one."""
    for name in (config.model, *config.models):
        entry = config.models[name]
        if (entry.provider, entry.id) == (model.provider, model.id):
            edits: _Edits = {} if name == config.model else {("model",): name}
            if model.price is not None and entry.price is None:
                edits["models", name, "price"] = _price(model.price)
            return edits
    name = free_name(model.id, config.models)
    return {("models", name): _model(model), ("model",): name}


def free_name(wanted: str, taken: Collection[str]) -> str:
    """A name for an entry of the configuration that is like `wanted` and not taken."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).lstrip("._-")[:_MOST_OF_A_NAME] or MODEL_NAME
    name, count = stem, 1
    while name in taken:
        count += 1
        name = f"{stem}-{count}"
    return name


def _variables(endpoint: Endpoint) -> dict[str, str]:
    return {key: endpoint.variable(key) for key in endpoint.secrets}


def _free_variable(usual: str, earlier: Earlier) -> str:
    """A variable that nothing else in the configuration is taken from."""
    name, count = usual, 1
    while "${" + name + "}" in repr(earlier.values):
        count += 1
        name = f"{usual}_{count}"
    return name


def _endpoint(endpoint: Endpoint, variables: Mapping[str, str]) -> OneLine:
    section = OneLine()
    if endpoint.is_provider:
        section["kind"] = endpoint.kind
    for key in endpoint.secrets:
        section[key] = reference(variables[key])
    if endpoint.base_url is not None:
        section["base_url"] = literal(endpoint.base_url)
    return section


def _model(model: ModelSettings) -> Section:
    section: dict[str, str | Section] = {
        "provider": model.provider,
        "id": literal(model.id),
        "context_tokens": str(model.window),
    }
    if model.price is not None:
        section["price"] = _price(model.price)
    return section


def _price(price: PriceSettings) -> OneLine:
    values = price.model_dump(mode="json", exclude_none=True)
    return OneLine({key: str(value) for key, value in values.items()})
