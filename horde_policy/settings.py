"""The settings of both decisions, read from the environment, a TOML file or ``name=value`` pairs, and refused where senseless.

Rules: A2, A3 (the four figures), A4 (what is refused), A6 (their environment names), A7 (``ahead``, ``count_threads``),
A8 (assumed speed), A30 (jobs rule). Replay settings: ``replay.md``, "Inputs". The environment is always an argument.
"""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args

from horde_policy.errors import ConfigError, InputError
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = [
    "ENVIRONMENT_NAMES",
    "LARGEST_SETTING",
    "SMALLEST_DIVISOR",
    "Ahead",
    "AllowanceSettings",
    "Client",
    "ReplaySettings",
    "Rule",
    "is_broken_address",
    "load_settings",
    "settings_from_environment",
    "settings_from_file",
    "settings_from_pairs",
]

LARGEST_SETTING = 1e9
"""The most that a mark of the wait in seconds (thirty years), an assumed speed or a jobs rule's threads may be (A4)."""

SMALLEST_DIVISOR = 0.001
"""The least that what is divided by may be, an assumed speed or a jobs rule's threads: every wait stays finite (A4)."""

Ahead = Literal["queue_order", "all"]
Rule = Literal["allowance", "old", "jobs", "everyone_free", "no_one_free"]
Client = Literal["leave", "resend", "return"]

ENVIRONMENT_NAMES: Mapping[str, str] = {
    "ceiling_tokens": "HORDE_TEXT_FREE_OUTPUT_CEILING",
    "floor_tokens": "HORDE_TEXT_FREE_OUTPUT_FLOOR",
    "wait_full_s": "HORDE_TEXT_FREE_OUTPUT_WAIT_FULL_SECONDS",
    "wait_floor_s": "HORDE_TEXT_FREE_OUTPUT_WAIT_FLOOR_SECONDS",
    "assumed_speed_tok_per_s": "HORDE_POLICY_ASSUMED_SPEED_TOK_PER_S",
    "ahead": "HORDE_POLICY_AHEAD",
    "count_threads": "HORDE_POLICY_COUNT_THREADS",
    "jobs_rule_floor_per_thread": "HORDE_POLICY_JOBS_RULE_FLOOR_PER_THREAD",
    "request_ttl_s": "HORDE_POLICY_REQUEST_TTL_S",
    "ageing_kudos": "HORDE_POLICY_AGEING_KUDOS",
    "ageing_every_s": "HORDE_POLICY_AGEING_EVERY_S",
    "job_timeout_s": "HORDE_POLICY_JOB_TIMEOUT_S",
    "rule": "HORDE_POLICY_RULE",
    "client": "HORDE_POLICY_CLIENT",
    "return_after_s": "HORDE_POLICY_RETURN_AFTER_S",
    "return_times": "HORDE_POLICY_RETURN_TIMES",
}
"""Setting → its name in the environment (A6; ``HORDE_POLICY_…`` for what A6 does not name)."""


_RULES: Mapping[str, str] = {
    "ceiling_tokens": "A4",
    "floor_tokens": "A4",
    "wait_full_s": "A4",
    "wait_floor_s": "A4",
    "assumed_speed_tok_per_s": "A4",
    "jobs_rule_floor_per_thread": "A4",
    "ahead": "A7",
    "count_threads": "A7",
}
"""Setting → the numbered rule that says what it may be; what only a replay has follows none of the server's."""


def _check_whole(setting: str, value: object, least: int, most: int | None = None) -> None:
    span = f"a whole number of at least {least}" + (f" and at most {most}" if most is not None else "")
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        raise ConfigError(setting, value, f"must be {span}")


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every double
        return False


def _check_real(
    setting: str, value: object, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> None:
    lower = f"above {above:g}" if above is not None else f"of at least {least:g}" if least is not None else ""
    bound = lower if most is None else f"{lower} and at most {most:,.0f}"
    ok = not isinstance(value, bool) and isinstance(value, int | float) and _finite(value)
    if ok and isinstance(value, int | float):
        ok = (above is None or value > above) and (least is None or value >= least) and (most is None or value <= most)
    if not ok:
        raise ConfigError(setting, value, f"must be a finite number {bound}".rstrip())


def _check_choice(setting: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(setting, value, "must be one of " + ", ".join(choices))


def _check_flag(setting: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(setting, value, "must be true or false")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowanceSettings:
    """The settings of the free output allowance (A2–A4, A7, A8, A30); senseless combinations raise :class:`ConfigError`.

    Attributes
    ----------
    ceiling_tokens, floor_tokens
        Output tokens at a wait at or below ``wait_full_s`` and at or above ``wait_floor_s``; 1 ≤ floor ≤ ceiling ≤ 16384.
    wait_full_s, wait_floor_s
        The two marks in seconds; 0 ≤ full < floor ≤ 1e9.
    assumed_speed_tok_per_s
        What an unmeasured worker counts (A8); 0.001 to 1e9.
    ahead
        What counts as queued ahead (A7): by ``queue_order``, or ``all`` that waits.
    count_threads
        Whether a worker's speed counts once for each of its threads (A7; off by default).
    jobs_rule_floor_per_thread
        Competing jobs per eligible thread at which the jobs rule (A30) reaches the floor; 0.001 to 1e9.

    Examples
    --------
    >>> AllowanceSettings().ceiling_tokens
    4096
    >>> AllowanceSettings(floor_tokens=5000)
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting floor_tokens: 5000 must not be above ceiling_tokens, which is 4096
    """

    ceiling_tokens: int = 4096
    floor_tokens: int = 512
    wait_full_s: float = 60.0
    wait_floor_s: float = 300.0
    assumed_speed_tok_per_s: float = 10.0
    ahead: Ahead = "queue_order"
    count_threads: bool = False
    jobs_rule_floor_per_thread: float = 4.0

    def __post_init__(self) -> None:
        _check_whole("floor_tokens", self.floor_tokens, 1)
        _check_whole("ceiling_tokens", self.ceiling_tokens, 1, MAX_LENGTH_LIMIT_TOKENS)
        if self.floor_tokens > self.ceiling_tokens:
            rule = f"must not be above ceiling_tokens, which is {self.ceiling_tokens}"
            raise ConfigError("floor_tokens", self.floor_tokens, rule)
        _check_real("wait_full_s", self.wait_full_s, least=0, most=LARGEST_SETTING)
        _check_real("wait_floor_s", self.wait_floor_s, above=0, most=LARGEST_SETTING)
        if self.wait_full_s >= self.wait_floor_s:
            raise ConfigError("wait_full_s", self.wait_full_s, f"must be below wait_floor_s, which is {self.wait_floor_s}")
        _check_real("assumed_speed_tok_per_s", self.assumed_speed_tok_per_s, least=SMALLEST_DIVISOR, most=LARGEST_SETTING)
        _check_choice("ahead", self.ahead, get_args(Ahead))
        _check_flag("count_threads", self.count_threads)
        _check_real("jobs_rule_floor_per_thread", self.jobs_rule_floor_per_thread, least=SMALLEST_DIVISOR, most=LARGEST_SETTING)

    def changed(self, **changes: object) -> Self:
        """Return the settings with some values replaced, checked again.

        >>> AllowanceSettings().changed(ceiling_tokens=2048).ceiling_tokens
        2048
        """
        _check_names(type(self), changes)
        return replace(self, **changes)  # type: ignore[arg-type]

    def digest(self, digits: int = 8) -> str:
        """Return hexadecimal digits, eight by default, that name these settings; equal settings have equal digests.

        >>> AllowanceSettings().digest() == AllowanceSettings(wait_full_s=60).digest()
        True
        >>> AllowanceSettings().digest(16).startswith(AllowanceSettings().digest())
        True
        """
        values = {name: float(v) if isinstance(v, int) and not isinstance(v, bool) else v for name, v in asdict(self).items()}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:digits]

    def differences(self) -> dict[str, object]:
        """Return the settings that differ from the defaults, by name.

        >>> AllowanceSettings(floor_tokens=256).differences()
        {'floor_tokens': 256}
        """
        default = type(self)()
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(default, f.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings(AllowanceSettings):
    """Allowance settings and what a replay needs besides (``replay.md``, "Inputs" and "Other rules").

    Attributes
    ----------
    request_ttl_s
        A waiting request expires this long after its creation; above 0.
    ageing_kudos, ageing_every_s
        Every waiting request gains so many kudos each so many seconds; the second is above 0.
    job_timeout_s
        A job that would take longer ends then, uncompleted; null for none (A32: the server's is 150).
    rule
        ``allowance``, the old rule (A29), the jobs rule (A30), everyone free, or no one free.
    client, return_after_s, return_times
        What a refused client does: ``leave``, ``resend`` at the stated allowance, or ``return`` later.

    Examples
    --------
    >>> ReplaySettings(request_ttl_s=0)
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting request_ttl_s: 0 must be a finite number above 0
    """

    request_ttl_s: float = 1200.0
    ageing_kudos: float = 50.0
    ageing_every_s: float = 10.0
    job_timeout_s: float | None = None
    rule: Rule = "allowance"
    client: Client = "leave"
    return_after_s: float = 60.0
    return_times: int = 1

    def __post_init__(self) -> None:
        # slots make a new class, which zero-argument super() does not know
        AllowanceSettings.__post_init__(self)
        _check_real("request_ttl_s", self.request_ttl_s, above=0)
        _check_real("ageing_kudos", self.ageing_kudos)
        _check_real("ageing_every_s", self.ageing_every_s, above=0)
        if self.job_timeout_s is not None:
            _check_real("job_timeout_s", self.job_timeout_s, least=0)
        _check_choice("rule", self.rule, get_args(Rule))
        _check_choice("client", self.client, get_args(Client))
        _check_real("return_after_s", self.return_after_s, least=0)
        _check_whole("return_times", self.return_times, 0, 1000)

    @classmethod
    def lifted(cls, settings: AllowanceSettings) -> "ReplaySettings":
        """Return the settings as replay settings; what allowance settings do not carry gets its default.

        >>> ReplaySettings.lifted(AllowanceSettings(floor_tokens=256)).floor_tokens
        256
        """
        return settings if isinstance(settings, cls) else cls(**asdict(settings))


S = TypeVar("S", bound=AllowanceSettings)

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_WHOLE = frozenset({"ceiling_tokens", "floor_tokens", "return_times"})
_FLAGS = frozenset({"count_threads"})
_WORDS = frozenset({"ahead", "rule", "client"})


def _check_names(kind: type[AllowanceSettings], given: Mapping[str, object]) -> None:
    known = [f.name for f in fields(kind)]
    for name in given:
        if name not in known:
            raise ConfigError(name, given[name], "is not a setting; the settings are " + ", ".join(known))


def _typed(setting: str, text: str) -> object:
    """Turn the text of a setting into its type; a value that cannot be of that type raises ConfigError."""
    word = text.strip()
    if setting in _WORDS:
        return word
    if setting in _FLAGS:
        if word.lower() in _TRUE or word.lower() in _FALSE:
            return word.lower() in _TRUE
        raise ConfigError(setting, text, "must be true or false")
    if setting == "job_timeout_s" and word.lower() in {"", "none", "null"}:
        return None
    try:
        return int(word) if setting in _WHOLE else float(word)
    except ValueError:
        kind = "a whole number" if setting in _WHOLE else "a number"
        raise ConfigError(setting, text, f"must be {kind}") from None


@contextmanager
def _placed(places: Mapping[str, str]) -> Iterator[None]:
    """Say of a refused setting by which rule, and where it stands; ``places`` names where each setting that is given does.

    What is refused beside another setting is given where that one is, or where both are.
    """
    try:
        yield
    except ConfigError as error:
        named = {setting for setting in places if setting == error.setting or setting in error.rule.split(", ")[0].split()}
        where = list(dict.fromkeys(place for setting, place in places.items() if setting in named))
        rule = [f"rule {_RULES[error.setting]}"] if error.setting in _RULES else []
        raise ConfigError(error.setting, error.value, error.rule, hint="; ".join([*rule, *where]) or None) from None


def settings_from_pairs(pairs: list[str] | tuple[str, ...], base: S, *, option: str | None = None) -> S:
    """Return ``base`` changed by ``name=value`` pairs as typed on a command line; what is refused names the ``option``.

    >>> settings_from_pairs(["floor_tokens=256", "ahead=all"], AllowanceSettings()).ahead
    'all'
    """
    if option is not None:
        with _placed({pair.partition("=")[0].strip(): f"given by {option}" for pair in pairs}):
            return settings_from_pairs(pairs, base)
    changes: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(pair, pair, "must have the form name=value")
        _check_names(type(base), {name.strip(): text})
        changes[name.strip()] = _typed(name.strip(), text)
    return base.changed(**changes)


def settings_from_environment(environment: Mapping[str, str], base: S) -> S:
    """Return ``base`` changed by the environment's names of A6 and ``HORDE_POLICY_…``; an empty value counts as absent.

    >>> settings_from_environment({"HORDE_TEXT_FREE_OUTPUT_FLOOR": "256"}, AllowanceSettings()).floor_tokens
    256
    """
    own = {f.name for f in fields(base)}
    given = {s: name for s, name in ENVIRONMENT_NAMES.items() if s in own and environment.get(name, "").strip()}
    with _placed({setting: f"{name} in the environment" for setting, name in given.items()}):
        return base.changed(**{setting: _typed(setting, environment[name]) for setting, name in given.items()})


def settings_from_file(path: Path, base: S) -> S:
    """Return ``base`` changed by a TOML file of ``name = value`` lines.

    Raises
    ------
    InputError
        The file cannot be read, or is not TOML.
    ConfigError
        A name is not a setting, or a value breaks its rule.
    """
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("settings file", "", str(path), f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # not TOML, not UTF-8, or a number of more digits than Python reads
        raise InputError("settings file", "", str(path), f"is not TOML: {error}") from error
    with _placed(dict.fromkeys(content, f"in {path}")):
        return base.changed(**content)


def load_settings(
    base: S, *, environment: Mapping[str, str], file: Path | None = None, pairs: list[str] | tuple[str, ...] = ()
) -> S:
    """Return the settings in force: ``base``, then the environment, then the file, then the pairs; the later wins.

    >>> load_settings(AllowanceSettings(), environment={}, pairs=["wait_full_s=30"]).wait_full_s
    30.0
    """
    settings = settings_from_environment(environment, base)
    if file is not None:
        settings = settings_from_file(file, settings)
    return settings_from_pairs(pairs, settings, option="--set")


_WHOLE_ADDRESS = re.compile(r"[a-z][a-z0-9+]*://(?!/)", re.IGNORECASE)
_NO_HOST = re.compile(r"(?:sqlite|postgresql)[a-z0-9+]*:///", re.IGNORECASE)
_BROKEN_ADDRESS = re.compile(
    # a driver's own form
    r"(?:^|\s)(?:host|hostaddr|port|user|username|password|passfile|dbname|database|service|sslmode)\s*=\s*\S"
    r"|^[a-z][a-z0-9+.]+:[/\\]"  # a scheme without its two slashes
    r"|^(?:postgres(?:ql)?|mysql|mariadb|mssql|oracle|redis)[a-z0-9+]*:"
    r"|[^/\\\s]:[^\s]*@",  # a user and a password, without the scheme
    re.IGNORECASE,
)


def is_broken_address(store: str) -> bool:
    """Return whether what names a store is meant as a database's address, but is neither a whole URL nor the path of a file.

    Such a text may hold a password: it must neither be opened as a file nor be shown.

    Examples
    --------
    >>> [is_broken_address(s) for s in ("host=127.0.0.1 user=u password=x", "postgresql:/u:x@h/d", "u:x@h/d")]
    [True, True, True]
    >>> [is_broken_address(s) for s in ("ledger.db", "/var/lib/a=b/ledger.db", "C:/ledger.db", "postgresql://u:x@h/d")]
    [False, False, False, False]
    """
    if _WHOLE_ADDRESS.match(store):
        return False
    return _BROKEN_ADDRESS.search(_NO_HOST.sub("", store, count=1)) is not None
