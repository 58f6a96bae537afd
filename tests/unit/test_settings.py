"""Settings from the environment, a file and pairs, and everything that A4 refuses."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from horde_policy.errors import ConfigError, InputError, shown
from horde_policy.settings import (
    ENVIRONMENT_NAMES,
    AllowanceSettings,
    ReplaySettings,
    load_settings,
    settings_from_environment,
    settings_from_file,
    settings_from_pairs,
)
from tests.unit.policy import strategies as some


def test_the_defaults_are_those_of_the_decision() -> None:
    found = AllowanceSettings()
    assert (found.ceiling_tokens, found.floor_tokens, found.wait_full_s, found.wait_floor_s) == (4096, 512, 60.0, 300.0)
    assert (found.assumed_speed_tok_per_s, found.ahead, found.count_threads) == (10.0, "queue_order", False)
    assert found.jobs_rule_floor_per_thread == 4.0
    assert found.differences() == {}
    replay = ReplaySettings()
    assert (replay.request_ttl_s, replay.ageing_kudos, replay.ageing_every_s) == (1200.0, 50.0, 10.0)
    assert (replay.job_timeout_s, replay.rule, replay.client) == (None, "allowance", "leave")


def test_every_setting_has_a_name_in_the_environment_and_the_four_figures_have_the_server_s() -> None:
    assert set(ENVIRONMENT_NAMES) == {f.name for f in fields(ReplaySettings)}
    assert len(set(ENVIRONMENT_NAMES.values())) == len(ENVIRONMENT_NAMES)
    assert [ENVIRONMENT_NAMES[n] for n in ("ceiling_tokens", "floor_tokens", "wait_full_s", "wait_floor_s")] == [
        "HORDE_TEXT_FREE_OUTPUT_CEILING",
        "HORDE_TEXT_FREE_OUTPUT_FLOOR",
        "HORDE_TEXT_FREE_OUTPUT_WAIT_FULL_SECONDS",
        "HORDE_TEXT_FREE_OUTPUT_WAIT_FLOOR_SECONDS",
    ]


VALUES: dict[str, tuple[str, object]] = {
    "ceiling_tokens": ("2048", 2048),
    "floor_tokens": (" 256 ", 256),
    "wait_full_s": ("30", 30.0),
    "wait_floor_s": ("400.5", 400.5),
    "assumed_speed_tok_per_s": ("7.5", 7.5),
    "ahead": ("all", "all"),
    "count_threads": ("yes", True),
    "jobs_rule_floor_per_thread": ("2", 2.0),
    "request_ttl_s": ("600", 600.0),
    "ageing_kudos": ("0", 0.0),
    "ageing_every_s": ("1", 1.0),
    "job_timeout_s": ("150", 150.0),
    "rule": ("old", "old"),
    "client": ("resend", "resend"),
    "return_after_s": ("0", 0.0),
    "return_times": ("3", 3),
}


@pytest.mark.parametrize("setting", VALUES)
def test_each_setting_is_read_from_the_environment_and_from_a_pair(setting: str) -> None:
    text, value = VALUES[setting]
    from_environment = settings_from_environment({ENVIRONMENT_NAMES[setting]: text}, ReplaySettings())
    from_pair = settings_from_pairs([f"{setting}={text}"], ReplaySettings())
    assert from_environment == from_pair
    assert getattr(from_pair, setting) == value
    assert type(getattr(from_pair, setting)) is type(value)
    assert from_pair.differences() == {setting: value}


def test_all_settings_have_a_value_above() -> None:
    assert set(VALUES) == set(ENVIRONMENT_NAMES)


def test_an_empty_or_foreign_variable_changes_nothing() -> None:
    environment = {"HORDE_TEXT_FREE_OUTPUT_FLOOR": " ", "HORDE_POLICY_RULE": "old", "PATH": "/bin"}
    assert settings_from_environment(environment, AllowanceSettings()) == AllowanceSettings()


@pytest.mark.parametrize("word", ["none", "null", ""])
def test_no_job_timeout_can_be_said(word: str) -> None:
    assert settings_from_pairs([f"job_timeout_s={word}"], ReplaySettings(job_timeout_s=1.0)).job_timeout_s is None


@pytest.mark.parametrize(
    ("word", "value"), [("TRUE", True), ("1", True), ("on", True), ("false", False), ("0", False), ("off", False)]
)
def test_a_switch_can_be_said_in_several_words(word: str, *, value: bool) -> None:
    assert settings_from_pairs([f"count_threads={word}"], AllowanceSettings()).count_threads is value


def test_a_file_gives_settings_and_the_later_source_wins(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('floor_tokens = 200\nwait_full_s = 20\nahead = "all"\n', encoding="utf-8")
    environment = {"HORDE_TEXT_FREE_OUTPUT_FLOOR": "100", "HORDE_TEXT_FREE_OUTPUT_CEILING": "3000"}
    found = load_settings(AllowanceSettings(), environment=environment, file=file, pairs=["wait_full_s=10"])
    assert found.differences() == {"ceiling_tokens": 3000, "floor_tokens": 200, "wait_full_s": 10.0, "ahead": "all"}
    assert load_settings(AllowanceSettings(), environment={}) == AllowanceSettings()


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"floor_tokens = ", InputError, "is not TOML"),
        (b"\xff\xfe", InputError, "is not TOML"),
        (b"floor_tokens = " + b"9" * 5000, InputError, "is not TOML"),
        (b"floor = 3", ConfigError, "setting floor: 3 is not a setting"),
        (b"floor_tokens = '512'", ConfigError, "setting floor_tokens: '512' must be a whole number"),
        (b"floor_tokens = 512.0", ConfigError, "setting floor_tokens: 512.0 must be a whole number"),
        (b"count_threads = 1", ConfigError, "setting count_threads: 1 must be true or false"),
        (b"wait_full_s = nan", ConfigError, "setting wait_full_s: nan must be a finite number"),
        (b"[allowance]\nfloor_tokens = 3", ConfigError, "is not a setting"),
        (b"floor_tokens = 5000", ConfigError, "must not be above ceiling_tokens, which is 4096"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, content: bytes, error: type[Exception], says: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(content)
    with pytest.raises(error, match=says):
        settings_from_file(file, AllowanceSettings())


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        settings_from_file(tmp_path / "none.toml", AllowanceSettings())


NO_NUMBERS: list[Any] = [float("nan"), float("inf"), "60", None, True, 10**400]
SENSELESS: list[tuple[str, Any]] = [
    *(("floor_tokens", value) for value in (0, -1, 1.5, "512", None, True, 4097, 10**30)),
    *(("ceiling_tokens", value) for value in (0, 511, 16385, 4096.0, True)),
    *(("wait_full_s", value) for value in (-0.001, 300.0, 301.0, 1e308, *NO_NUMBERS)),
    *(("wait_floor_s", value) for value in (0.0, -1.0, 60.0, 59.0, 1_000_000_000.1, 1.7e308, *NO_NUMBERS)),
    *(("assumed_speed_tok_per_s", value) for value in (0.0, -1.0, 0.0009, 1e-303, 1_000_000_000.1, 1e308, *NO_NUMBERS)),
    *(("jobs_rule_floor_per_thread", value) for value in (0.0, -1.0, 0.0009, 1e-303, 1_000_000_000.1, *NO_NUMBERS)),
    *(("ahead", value) for value in ("some", "", None)),
    *(("count_threads", value) for value in (1, "yes", None)),
]
SENSELESS_REPLAY: list[tuple[str, Any]] = [
    *(("request_ttl_s", value) for value in (0.0, -1.0, *NO_NUMBERS)),
    *(("ageing_kudos", value) for value in NO_NUMBERS),
    *(("ageing_every_s", value) for value in (0.0, -1.0, *NO_NUMBERS)),
    *(("job_timeout_s", value) for value in (-1.0, float("nan"), float("inf"), "150", True)),
    *(("return_after_s", value) for value in (-1.0, *NO_NUMBERS)),
    *(("return_times", value) for value in (-1, 1001, 1.0, True)),
    ("rule", "new"),
    ("client", "sue"),
]


@pytest.mark.parametrize(("setting", "value"), SENSELESS, ids=shown)
def test_a_senseless_allowance_setting_is_refused_by_name(setting: str, value: Any) -> None:
    for base in (AllowanceSettings(), ReplaySettings()):
        with pytest.raises(ConfigError) as refused:
            base.changed(**{setting: value})
        assert refused.value.setting in {setting, "floor_tokens", "wait_full_s"}
        assert "must" in str(refused.value)


@pytest.mark.parametrize(("setting", "value"), SENSELESS_REPLAY, ids=shown)
def test_a_senseless_replay_setting_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        ReplaySettings().changed(**{setting: value})
    assert refused.value.setting == setting


@pytest.mark.parametrize(
    "changes",
    [
        {"floor_tokens": 1, "ceiling_tokens": 1},
        {"floor_tokens": 16384, "ceiling_tokens": 16384},
        {"wait_full_s": 0, "wait_floor_s": 5e-324},
        {"wait_full_s": 999_999_999.0, "wait_floor_s": 1e9},
        {"assumed_speed_tok_per_s": 0.001, "jobs_rule_floor_per_thread": 0.001},
        {"assumed_speed_tok_per_s": 1e9, "jobs_rule_floor_per_thread": 1e9},
    ],
)
def test_what_is_just_sensible_is_taken(changes: dict[str, Any]) -> None:
    assert AllowanceSettings().changed(**changes).differences().keys() == changes.keys()


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("floor_tokens", "must have the form name=value"),
        ("floor=3", "is not a setting; the settings are ceiling_tokens, floor_tokens"),
        ("floor_tokens=3.5", "must be a whole number"),
        ("floor_tokens=", "must be a whole number"),
        ("wait_full_s=soon", "must be a number"),
        ("wait_full_s=nan", "must be a finite number"),
        ("count_threads=maybe", "must be true or false"),
        ("rule=old", "is not a setting"),
    ],
)
def test_a_pair_that_makes_no_sense_is_refused(pair: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        settings_from_pairs([pair], AllowanceSettings())


def test_a_hostile_value_cannot_fill_a_page() -> None:
    with pytest.raises(ConfigError) as refused:
        settings_from_pairs(["ahead=" + "x" * 10_000], AllowanceSettings())
    assert len(str(refused.value)) < 200


@given(settings=some.settings())
def test_equal_settings_have_equal_digests_and_pairs_bring_them_back(settings: AllowanceSettings) -> None:
    pairs = [f"{name}={value!r}".replace("'", "") for name, value in settings.differences().items()]
    ordered = sorted(pairs, key=lambda pair: pair.startswith("floor"))
    back = settings_from_pairs(ordered, AllowanceSettings())
    assert back == settings
    assert back.digest() == settings.digest()
    assert (settings.digest() == AllowanceSettings().digest()) is (settings == AllowanceSettings())


def test_replay_settings_carry_allowance_settings_along() -> None:
    lifted = ReplaySettings.lifted(AllowanceSettings(floor_tokens=256))
    assert lifted.differences() == {"floor_tokens": 256}
    assert ReplaySettings.lifted(lifted) is lifted


@pytest.mark.parametrize("setting", list(ENVIRONMENT_NAMES))
def test_what_is_refused_names_where_it_stands_and_its_rule(setting: str, tmp_path: Path) -> None:
    name, file = ENVIRONMENT_NAMES[setting], tmp_path / "settings.toml"
    file.write_text(f'{setting} = "nonsense"\n', encoding="utf-8")
    rule = "A4" if setting.startswith(("ceiling", "floor", "wait", "assumed", "jobs")) else "A7"
    numbered = f"rule {rule}; " if setting in {f.name for f in fields(AllowanceSettings)} else ""
    ways: list[tuple[dict[str, Any], str]] = [
        ({"environment": {name: "nonsense"}}, f"{name} in the environment"),
        ({"environment": {}, "file": file}, f"in {file}"),
        ({"environment": {}, "pairs": [f"{setting}=nonsense"]}, "given by --set"),
    ]
    for told_by, where in ways:
        with pytest.raises(ConfigError) as refused:
            load_settings(ReplaySettings(), **told_by)
        told = str(refused.value)
        assert told.startswith(f"setting {setting}: 'nonsense' must be ")
        assert told.endswith(f" ({numbered}{where})")


def test_what_is_refused_beside_another_setting_names_the_one_that_is_given() -> None:
    low, high = ENVIRONMENT_NAMES["floor_tokens"], ENVIRONMENT_NAMES["ceiling_tokens"]
    for environment, where in (
        ({low: "0"}, f"{low} in the environment"),
        ({high: "256"}, f"{high} in the environment"),
        ({low: "600", high: "500"}, f"{high} in the environment; {low} in the environment"),
        ({low: "5000", ENVIRONMENT_NAMES["wait_full_s"]: "30"}, f"{low} in the environment"),
    ):
        with pytest.raises(ConfigError) as refused:
            load_settings(AllowanceSettings(), environment=environment)
        assert str(refused.value).startswith("setting floor_tokens: ")
        assert str(refused.value).endswith(f" (rule A4; {where})")
    with pytest.raises(ConfigError, match=r"setting floor: '3' is not a setting.* \(given by --set\)$"):
        load_settings(AllowanceSettings(), environment={}, pairs=["floor=3"])
