"""The configuration file: nothing guessed, every fault at its place, no secret repeated."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.config import Config, ConfigError, load, masked
from bridge.configuration.limit_layers import known_of
from bridge.limits.kinds import Known
from bridge.limits.reading import read as read_lines

TOKEN = "123456:AAbbccddeeffgghhiijjkkllmmnnooppqq"
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
MINIMAL = """\
timezone: Europe/Berlin
model: claude
providers:
  anthropic: {kind: anthropic, api_key: "${ANTHROPIC_API_KEY}"}
models:
  claude: {provider: anthropic, id: claude-haiku-5-5}
"""
PRICE = "haiku-5-5, price: {input: 0, output: 0, as_of: 2026-11-05}}"
PRICED = MINIMAL.replace("haiku-5-5}", PRICE)
ENVIRON = {"ANTHROPIC_API_KEY": KEY, "TELEGRAM_BOT_TOKEN": TOKEN}
TELEGRAM = MINIMAL + "channels:\n  telegram:\n    token: ${TELEGRAM_BOT_TOKEN}\n"


@pytest.fixture
def read(tmp_path: Path):
    """Write a file and load it."""

    def run(text: str | bytes, environ: dict[str, str] | None = None) -> Config:
        path = tmp_path / "config.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(path, ENVIRON if environ is None else environ)

    return run


@pytest.fixture
def faults(read, tmp_path: Path):
    """Write a faulty file and tell what is reported, without the file's name."""

    def run(text: str | bytes, environ: dict[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            read(text, environ)
        prefix = f"{tmp_path / 'config.yaml'}:"
        return [line.removeprefix(prefix) for line in str(caught.value).splitlines()]

    return run


def test_a_small_file_is_enough(read) -> None:
    config = read(MINIMAL)
    assert config.models[config.model].provider == "anthropic"
    assert str(config.zone) == "Europe/Berlin"
    assert config.limits.steps_per_run == 25
    assert not config.local_model


def test_every_fault_of_a_file_is_reported_at_once_with_its_place(faults) -> None:
    reported = faults(
        """\
timezone: Europe/Berln
model: clude
providers:
  anthropic:
    kind: anthropic
    api_key: ${NOT_SET}
    key: 1
models:
  claude:
    provider: antropic
    id: x
    max_output_tokens: many
limits:
  steps_per_run: 0
  steps_per_run: 5
channels:
  telegram:
    ownrs: [1]
""",
    )
    assert [line.split(": ")[0] for line in reported] == [
        "1:1 timezone",
        "2:1 model",
        "6:5 providers.anthropic.api_key",
        "7:5 providers.anthropic.key",
        "10:5 models.claude.provider",
        "12:5 models.claude.max_output_tokens",
        "14:3 limits.steps_per_run",
        "15:3 limits.steps_per_run",
        "17:3 channels.telegram.token",
        "18:5 channels.telegram.ownrs",
    ]
    assert "did you mean Europe/Berlin?" in reported[0]
    assert "did you mean claude?" in reported[1]
    assert "NOT_SET is not set" in reported[2]
    assert "did you mean anthropic?" in reported[4]
    assert "must be a whole number" in reported[5]
    assert "must be 1 or more" in reported[6]
    assert "is missing" in reported[8]
    assert "did you mean owners?" in reported[9]


def test_a_duplicate_key_names_the_line_of_the_first(faults) -> None:
    reported = faults(MINIMAL + "limits:\n  queue_length: 3\n  'queue_length': 4\n")
    assert reported == ["9:3 limits.queue_length: is there twice; first in line 8"]


def test_a_quoted_number_is_the_same_key_as_a_plain_one(faults) -> None:
    reported = faults(MINIMAL.replace("claude:", "-100:", 1) + '  "-100": {}\n')
    assert any(line.startswith("7:3 models.-100: is there twice") for line in reported)


@pytest.mark.parametrize("written", ["-1001234567890", '"-1001234567890"', "'-1001234567890'"])
def test_negative_ids_work_quoted_or_not(read, written: str) -> None:
    config = read(f"{TELEGRAM}    allowed: [{written}]\n")
    assert config.channels.telegram is not None
    assert config.channels.telegram.allowed == ("-1001234567890",)


@pytest.mark.parametrize(
    ("word", "value"),
    [("no", False), ("off", False), ("false", False), ("yes", True), ("on", True), ("True", True)],
)
def test_yes_and_no_are_understood_where_a_switch_is_meant(read, word: str, value: bool) -> None:
    assert read(f"{MINIMAL}log: {{json: {word}}}\n").log.json_lines is value


def test_a_key_of_an_earlier_galata_is_refused_with_its_name_now(faults) -> None:
    (told,) = faults(MINIMAL + "limits: {cost_per_month_usd: 5}\n")
    assert told.endswith(
        "limits.cost_per_month_usd: was renamed: it is installation.cost_per_month_usd now"
    )


@pytest.mark.parametrize(
    "text", ["no", "on", "12:30", "0123", "1e5", "2026-11-30", "1_000", "0x1F", "-100", "1.10"]
)
def test_texts_are_taken_as_written(read, text: str) -> None:
    assert read(f"{MINIMAL}instructions: {text}\n").instructions == text
    assert read(MINIMAL.replace("claude-haiku-5-5", text)).models["claude"].id == text


def test_what_is_no_code_is_no_language(faults) -> None:
    (line,) = faults(MINIMAL + "language: Deutsch\n")
    assert line.startswith("7:1 language: must be auto, or a code such as de or zh-Hans")


@pytest.mark.parametrize("code", ["de", "zh-Hans", "auto", "no"])
def test_a_language_is_the_same_in_a_chats_file_and_at_the_top(code: str, read) -> None:
    assert read(f"{MINIMAL}language: {code}\n").language == code
    assert read_lines(f"language: {code}".encode(), Known()).values == {"language": code}


def test_a_number_where_none_is_meant_is_a_fault_not_a_guess(faults) -> None:
    reported = faults(
        PRICED + "limits: {steps_per_run: 1e2, queue_length: 1.5, cost_per_run_usd: .inf}\n"
    )
    assert len(reported) == 3


@pytest.mark.parametrize(
    "limit",
    [
        "installation: {cost_per_month_usd: 5}",
        "installation: {cost_per_day_usd: 5}",
        "installation: {cost_per_person_per_day_usd: 1}",
        "limits: {cost_per_run_usd: 0.5}",
        "defaults: {cost_per_day_usd: 3}",
        "ceilings: {cost_per_month_usd: 3}",
    ],
)
def test_a_cost_limit_that_is_written_out_needs_a_price(limit: str, read, faults) -> None:
    """Those of the defaults stand for a bot without prices, too, such as one of Ollama."""
    (told,) = faults(MINIMAL + limit + "\n")
    section, key = limit.partition(":")[0], limit.partition("{")[2].partition(":")[0]
    assert told.endswith(f" {section}.{key}: needs models.claude.price, which is missing")
    read(PRICED + limit + "\n")
    assert read(MINIMAL).installation.cost_per_month_usd > 0


def test_the_model_that_writes_notes_needs_a_price_as_well(read, faults) -> None:
    """A chat pays for its notes."""
    notes = "  small: {provider: anthropic, id: x}\nmemory: {notes_model: small}\n"
    (told,) = faults(PRICED + notes + "installation: {cost_per_day_usd: 5}\n")
    assert told.endswith(
        "installation.cost_per_day_usd: needs models.small.price, which is missing"
    )
    known = known_of(read(PRICED + notes))
    assert (known.models, known.unpriced) == (("claude",), ("small",))


def test_prices_need_their_date(read, faults) -> None:
    price = MINIMAL.replace("haiku-5-5}", "haiku-5-5, price: {input: 1, output: 5, as_of: DAY}}")
    config = read(price.replace("DAY", "2026-11-05"))
    assert config.models["claude"].price.as_of == date(2026, 11, 5)
    assert "2026-11-30" in faults(price.replace("DAY", "05.11.2026"))[0]
    assert "as_of: is missing" in faults(price.replace(", as_of: DAY", ""))[0]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("context_tokens: 4000, max_output_tokens: 3900", "at most 2500 is allowed"),
        ("context_tokens: 4000, max_output_tokens: 9000", "leaves 0 of context_tokens (4000)"),
        ("context_tokens: 4000, max_output_tokens: 3600, tools: false", "at most 3500 is allowed"),
        ("context_tokens: 4000", "(4096) leaves 0 of context_tokens (4000)"),
        (
            "context_tokens: 1000, max_output_tokens: 16",
            "context_tokens (1000) must be at least 1516",
        ),
    ],
)
def test_an_answer_leaves_room_for_its_question(keys: str, why: str, read, faults) -> None:
    (line,) = faults(MINIMAL.replace("haiku-5-5}", f"haiku-5-5, {keys}}}"))
    place, _, told = line.partition(" models.claude.max_output_tokens: ")
    assert re.fullmatch(r"\d+:\d+", place)
    assert why in told


def test_an_answer_may_take_the_rest(read) -> None:
    keys = "context_tokens: 4000, max_output_tokens: 2500"
    made = read(MINIMAL.replace("haiku-5-5}", f"haiku-5-5, {keys}}}"))
    assert made.models["claude"].max_output_tokens == 2500


def test_only_groups_can_have_one_memory_together(read, faults) -> None:
    shared = "memory:\n  shared: [telegram:-1001234, slack:C012AB3CD{more}]\n"
    made = read(MINIMAL + shared.format(more=""))
    assert made.memory.shared == ("telegram:-1001234", "slack:C012AB3CD")
    (fault,) = faults(MINIMAL + shared.format(more=", telegram:42"))
    assert "memory.shared[2]" in fault
    assert "what was said in private is never part of a memory that groups share" in fault


def test_a_budget_needs_room_beside_the_reserve_for_the_answer(faults) -> None:
    (line,) = faults(MINIMAL + "context: {budget_tokens: 5000}\n")
    assert "budget_tokens: (5000) must be at least 5596" in line
    assert "max_output_tokens (4096)" in line


@pytest.mark.parametrize("key", ["fallback_models", "models_for_chats"])
def test_a_budget_needs_that_room_for_every_model_that_may_answer(faults, key: str) -> None:
    other = "  big: {provider: anthropic, id: claude-haiku-5-5, max_output_tokens: 8000}\n"
    (line,) = faults(MINIMAL + other + f"context: {{budget_tokens: 6000}}\n{key}: [big]\n")
    assert (
        "budget_tokens: (6000) must be at least 9500: models.big.max_output_tokens (8000)" in line
    )


def test_a_budget_with_room_is_taken(read) -> None:
    assert read(MINIMAL + "context: {budget_tokens: 5596}\n").context.budget_tokens == 5596


def test_a_fallback_must_be_a_model_that_is_described(faults) -> None:
    (line,) = faults(MINIMAL + "fallback_models: [other]\n")
    assert "fallback_models[0]: is no key of models" in line


@pytest.mark.parametrize("nothing", ["", "~", "null", '""', "''"])
def test_an_empty_value_is_a_fault(faults, nothing: str) -> None:
    (line,) = faults(f"{MINIMAL}language: {nothing}\n")
    assert line.startswith("7:1 language: is empty")


def test_an_empty_list_is_a_value(read) -> None:
    assert read(TELEGRAM + "    owners: []\n").channels.telegram.owners == ()


def test_a_list_is_asked_for_where_one_is_meant(faults) -> None:
    (line,) = faults(TELEGRAM + "    owners: 12345\n")
    assert "must be a list" in line


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("\ttimezone: UTC\n", "1:1", "tab"),
        ("limits:\n\tqueue_length: 3\n", "2:1", "tab"),
        ("a: [1, 2\n", "2:1", "never closed"),
        ("a: 1\nb: {x: 1]\n", "2:9", "expected"),
        ("a: 'open\n", "2:1", "never closed"),
        ("a: b: c\n", "1:5", "quote"),
        (b"a: 1\nb: \xe4\n", "2:4", "UTF-8"),
        ("a: 1\n".encode("utf-16"), "1:1", "UTF-8"),
        ("a: 1\nb: \x07\n", "2:4", "unprintable"),
        ("", "1:1", "empty"),
        ("# nothing\n", "1:1", "empty"),
        ("- a\n- b\n", "1:1", "key: value"),
        ("text\n", "1:1", "key: value"),
        ("a: 1\n---\nb: 2\n", "2:1", "second document"),
        ("%YAML 1.1\n---\na: 1\n", "1:1", "%YAML"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", "1:1", "%YAML"),
        ("a: !secret!x 1\n", "1:4", "tags"),
        ("a: " + "[" * 5_000, "1:19", "nested"),
        ("a: " + "{b: " * 5_000, "1:61", "nested"),
        ("#" + "x" * 300_000, "1:1", "larger than"),
    ],
)
def test_what_cannot_be_parsed_is_reported_alone(faults, text, place: str, words: str) -> None:
    (line,) = faults(text)
    assert line.startswith(f"{place} syntax: ")
    assert words in line


def test_anchors_aliases_and_tags_are_reported_with_all_other_faults(faults) -> None:
    text = MINIMAL + (
        "language: &x d_e\nlog: {level: *x, json: !!bool yes}\n&y limit: 1\n"
        "limits: &z {queue_length: 0}\n<<: *z\n"
    )
    reported = faults(text)
    assert [line.split(" ")[1] for line in reported] == [
        *("language:", "language:", "log.level:", "log.json:", "limit:", "limit:"),
        *("limits:", "limits.queue_length:", "<<:"),
    ]
    assert sum("anchors (&) and aliases" in line for line in reported) == 5
    assert sum("tags (!)" in line for line in reported) == 1


def test_aliases_of_aliases_do_not_grow(faults) -> None:
    grown = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    reported = faults("a0: &a0 [x]\n" + grown)
    assert sum("aliases" in line for line in reported) == 12 + 11 * 9


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ("owners: [-100123]", "must be a person's numeric id, such as 123456789"),
        ("owners: [-100123]", "belong into allowed"),
        ("owners: [ana]", "/whoami tells it"),
        ("allowed: [team]", "or of a group, such as -1001234567890"),
        ("base_url: example.org", "must begin with http:// or https://"),
    ],
)
def test_an_id_of_another_form_is_told_what_it_must_be(faults, ids: str, words: str) -> None:
    (line,) = faults(f"{TELEGRAM}    {ids}\n")
    assert words in line
    assert "^" not in line, "no regular expressions"


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf" + MINIMAL.encode(),
                                 MINIMAL.replace("\n", "\r\n").encode(),
                                 b"---\n" + MINIMAL.encode() + b"...\n"])  # fmt: skip
def test_byte_order_marks_crlf_and_document_marks_are_accepted(read, raw: bytes) -> None:
    assert read(raw) == read(MINIMAL)


def test_keys_that_are_no_text_are_faults(faults) -> None:
    reported = faults(MINIMAL + "? [a]\n: 1\n~: 2\n")
    assert [line.split(" ")[0] for line in reported] == ["7:3", "9:1"]


def test_a_merge_key_is_an_unknown_key(faults) -> None:
    assert faults(MINIMAL + "<<: {language: en}\n")[0].startswith("7:1 <<: unknown key")


def test_a_file_that_is_not_there_is_one_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.yaml", {})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, {})


@pytest.mark.parametrize("key", ["providers", "models", "model"])
def test_what_an_answer_needs_must_be_there(faults, key: str) -> None:
    sections = {
        "model": " m\n",
        "providers": "\n  a: {kind: anthropic, api_key: x}\n",
        "models": "\n  m: {provider: a, id: x}\n",
    }
    text = "timezone: UTC\n" + "".join(
        f"{name}:{value}" for name, value in sections.items() if name != key
    )
    (line,) = faults(text)
    assert line.startswith(f"1:1 {key}: is missing")


def test_a_left_out_value_is_not_reported_twice(faults) -> None:
    """A missing app token must not be called a wrong combination of tokens as well."""
    slack = "channels:\n  slack: {bot_token: xoxb-1-a, app_token: '${NOT_SET}'}\n"
    (line,) = faults(MINIMAL + slack)
    assert "slack.app_token: NOT_SET is not set" in line
    (line,) = faults(f"{TELEGRAM}    owners: [~]\n")
    assert "owners[0]: is empty" in line


def test_an_endpoint_of_ones_own_needs_no_key(read, faults) -> None:
    text = (
        "model: m\nproviders:\n  o: {kind: openai, WHERE}\nmodels:\n  m: {provider: o, id: x}\n"
        "timezone: UTC\n"
    )
    read(text.replace("WHERE", "base_url: http://127.0.0.1:11434/v1"))
    (line,) = faults(text.replace(", WHERE", ""))
    assert line.startswith("3:3 providers.o.api_key: is missing")


# ---- references -----------------------------------------------------------------------------------


def test_a_secret_comes_from_the_environment_else_from_the_env_file(read, tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text("ANTHROPIC_API_KEY='from-$the-file'\nTELEGRAM_BOT_TOKEN=\n")
    key = read(MINIMAL, {}).providers["anthropic"].api_key
    assert key.get_secret_value() == "from-$the-file"
    key = read(MINIMAL, {"ANTHROPIC_API_KEY": "theirs"}).providers["anthropic"].api_key
    assert key.get_secret_value() == "theirs"


def test_a_missing_variable_is_named(faults, tmp_path: Path) -> None:
    (line,) = faults(TELEGRAM, {"ANTHROPIC_API_KEY": KEY, "TELEGRAM_BOT_TOKEN": ""})
    assert line == (
        "9:5 channels.telegram.token: TELEGRAM_BOT_TOKEN is not set: set it in the environment or "
        f"in {tmp_path / '.env'}"
    )


def test_a_provider_that_no_answer_needs_may_lack_its_key(read) -> None:
    other = "  openai: {kind: openai, api_key: '${OPENAI_API_KEY}'}\nmodels:"
    config = read(MINIMAL.replace("models:", other))
    assert config.providers["openai"].api_key is None


@pytest.mark.parametrize(
    "wrong", ["{}\n", "{}\nX-Forged: 1", "{} ", "Bearer {}", "{}\t", "‘{}’", "{}é"]
)
def test_a_key_that_no_header_can_carry_is_a_fault_at_its_line(faults, wrong: str) -> None:
    (line,) = faults(MINIMAL, {"ANTHROPIC_API_KEY": wrong.format(KEY)})
    assert line.startswith("4:32 providers.anthropic.api_key: holds a blank, a line break or a ")
    assert KEY not in line
    assert "Forged" not in line


def test_an_organization_that_no_header_can_carry_is_a_fault(faults) -> None:
    (line,) = faults(MINIMAL.replace("{kind: anthropic,", "{kind: openai, organization: 'org a',"))
    assert line.startswith("4:29 providers.anthropic.organization: holds a blank")


def test_a_secret_can_be_a_file(read, faults, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text(f"{KEY}\n")
    text = MINIMAL.replace("${ANTHROPIC_API_KEY}", "${file:" + str(secret) + "}")
    assert read(text, {}).providers["anthropic"].api_key.get_secret_value() == KEY
    secret.write_text("\n")
    assert "is empty" in faults(text, {})[0]
    secret.write_bytes(b"\xff\xfe")
    assert "UTF-8" in faults(text, {})[0]
    secret.unlink()
    assert "No such file" in faults(text, {})[0]
    assert "must begin with /" in faults(text.replace(str(secret), "key"), {})[0]


def test_references_are_resolved_after_parsing_and_within_a_value(read) -> None:
    text = MINIMAL.replace("kind: anthropic,", "kind: anthropic, proxy: 'http://u:${PW}@p:1',")
    evil = "x: y\n- z # {}"
    config = read(text, {"ANTHROPIC_API_KEY": KEY, "PW": evil})
    assert config.providers["anthropic"].proxy.get_secret_value() == f"http://u:{evil}@p:1"


@pytest.mark.parametrize("text", ["${", "${}", "${A B}", "${a-b}", "${A", "x ${ y"])
def test_a_reference_of_the_wrong_form_is_a_fault(faults, text: str) -> None:
    (line,) = faults(f"{MINIMAL}instructions: '{text}'\n")
    assert "${NAME}" in line


def test_a_doubled_dollar_is_a_plain_one(read) -> None:
    assert read(f"{MINIMAL}instructions: 'cost $${{x}} $5'\n").instructions == "cost ${x} $5"


def test_an_unreadable_env_file_is_a_fault(read, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(ConfigError, match=r"\.env:1:1 is not UTF-8 text"):
        read(MINIMAL)


def test_every_fault_of_an_env_file_is_named_with_its_line_and_nothing_of_it(
    read, tmp_path: Path
) -> None:
    text = "# keys\n\nK1=s3cret\nBAD s3cret\n\n=s3cret\nK1=s3cret\nexport K2='a b'\n"
    (tmp_path / ".env").write_text(text)
    with pytest.raises(ConfigError) as raised:
        read(MINIMAL)
    lines = [line.partition(".env:")[2] for line in str(raised.value).splitlines()]
    assert lines == [
        "4:1 is no line of the form NAME=value",
        "6:1 is no line of the form NAME=value",
        "7:1 K1: stands in line 3 already",
    ]


# ---- secrets --------------------------------------------------------------------------------------

SECRET = "s3cr3t-v4lue-that-nobody-may-see"
WRONG_PLACES = [
    MINIMAL + f"language: {SECRET}\n",
    MINIMAL + f"timezon: {SECRET}\n",
    MINIMAL + f"limits: {{steps_per_run: {SECRET}}}\n",
    MINIMAL + f"limits: {SECRET}\n",
    MINIMAL + f"instructions: '{SECRET}${{'\n",
    MINIMAL.replace("claude-haiku", f"*{SECRET} "),
    MINIMAL.replace('"${ANTHROPIC_API_KEY}"', f"!{SECRET}!x y"),
    MINIMAL.replace('"${ANTHROPIC_API_KEY}"', f'"\\q{SECRET}"'),
    MINIMAL.replace('"${ANTHROPIC_API_KEY}"', f"'{SECRET}"),
    MINIMAL.replace('"${ANTHROPIC_API_KEY}"', f"[{SECRET}]"),
    MINIMAL.replace("model: claude", f"model: {SECRET}"),
    MINIMAL + f"channels: {{telegram: {{token: {SECRET}, owners: [{SECRET}]}}}}\n",
    MINIMAL + f"channels: {{telegram: {{token: {TOKEN}, proxy: {SECRET}}}}}\n",
    MINIMAL + f"channels: {{slack: {{bot_token: {SECRET}, app_token: {SECRET}}}}}\n",
    MINIMAL.replace("kind: anthropic,", f"kind: anthropic, base_url: {SECRET},"),
]


@pytest.mark.parametrize("text", WRONG_PLACES)
def test_no_message_repeats_a_value(faults, text: str) -> None:
    for line in faults(text):
        assert SECRET not in line


def test_a_token_in_place_of_a_key_is_not_repeated(faults) -> None:
    for line in faults(f"{MINIMAL}'{TOKEN}': x\n{KEY}: y\n"):
        assert TOKEN not in line
        assert KEY not in line


def test_secrets_are_masked_and_collected(read) -> None:
    text = TELEGRAM.replace("kind: anthropic,", "kind: anthropic, proxy: 'http://me:hunter22@p:1',")
    text = text.replace("haiku-5-5}", "haiku-5-5}").replace(
        "token: ${", "base_url: http://u:passw%40rd@b\n    token: ${"
    )
    config = read(text)
    shown = masked(config) + repr(config)
    for secret in (TOKEN, KEY, "hunter22", "passw%40rd"):
        assert secret in config.secrets()
    assert "passw@rd" in config.secrets()
    for secret in (TOKEN, KEY, "hunter22"):
        assert secret not in shown
    assert "passw%40rd" not in masked(config)


def test_the_masked_form_has_the_shape_of_the_file(read) -> None:
    from bridge.yaml_source import parse

    shown = parse(masked(read(TELEGRAM + "    allowed: [-100]\n")).encode()).values
    assert shown["channels"] == {
        "telegram": {
            "token": "[secret]",
            "owners": [],
            "allowed": ["-100"],
            "access": "listed",
            "members_of": [],
        }
    }
    assert shown["log"] == {"level": "INFO", "json": "false"}


# ---- laws -----------------------------------------------------------------------------------------


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_give_a_config_or_faults(tmp_path_factory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert all(fault.message for fault in caught.value.faults)
    assert len(str(caught.value).splitlines()) == len(caught.value.faults)


@given(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=40))
def test_any_text_survives_quoting(tmp_path_factory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "quoted.yaml"
    quoted = text.replace("'", "''").replace("${", "$${")
    path.write_text(f"{MINIMAL}instructions: 'x{quoted}'\n", encoding="utf-8")
    assert load(path, ENVIRON).instructions == f"x{text}"
