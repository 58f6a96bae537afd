"""The settings that a replay compares, as they stand in an address and as people read them.

The baseline is what the page's shared settings say; every other run is written as what differs from it, so a link holds what
its sender changed. A run is named by its settings' digest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from horde_policy.errors import ConfigError
from horde_policy.settings import AllowanceSettings, ReplaySettings, settings_from_pairs
from horde_policy.units import one_or_range
from horde_policy.views.text import count, range_text, seconds

__all__ = ["CLIENTS", "LETTERS", "RULES", "Run", "baseline_of", "opened_run", "run_text", "runs_of", "settings_words"]

LETTERS: Final = ("baseline", "B", "C", "D", "E")
"""How runs are called on the page and in its files, the baseline first."""

RULES: Final[dict[str, str]] = {
    "allowance": "the allowance",
    "old": "the previous rule",
    "jobs": "the jobs rule",
    "everyone_free": "everyone free",
    "no_one_free": "no one free",
}

CLIENTS: Final[dict[str, str]] = {
    "leave": "leaves",
    "resend": "sends again at the allowance",
    "return": "comes back later",
}
"""What a refused client does."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its letter, its settings, and what differs from the baseline, in words."""

    letter: str
    settings: ReplaySettings
    words: str

    @property
    def digest(self) -> str:
        """The digest of the settings, which names the run."""
        return self.settings.digest()

    @property
    def title(self) -> str:
        """The run as one line.

        >>> baseline_of(AllowanceSettings()).title
        'baseline: 4,096 to 512 tokens at 60 to 300 s'
        """
        return f"{self.letter}: {self.words}"


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def run_text(settings: ReplaySettings, baseline: ReplaySettings) -> str:
    """Return what differs from the baseline as ``name=value`` pairs, in the settings' order.

    >>> run_text(ReplaySettings(rule="old", ceiling_tokens=2048), ReplaySettings())
    'ceiling_tokens=2048,rule=old'
    """
    changed = [f.name for f in fields(settings) if getattr(settings, f.name) != getattr(baseline, f.name)]
    return ",".join(f"{name}={_plain(getattr(settings, name))}" for name in changed)


_WORDS: Final[dict[str, str]] = {
    "ceiling_tokens": "ceiling {count}",
    "floor_tokens": "floor {count}",
    "wait_full_s": "full wait {seconds}",
    "wait_floor_s": "floor wait {seconds}",
    "assumed_speed_tok_per_s": "assumed speed {value} tok/s",
    "ahead": "ahead: {value}",
    "count_threads": "threads counted: {value}",
    "jobs_rule_floor_per_thread": "jobs rule's floor at {value} a thread",
    "request_ttl_s": "requests live {seconds}",
    "ageing_kudos": "ageing {value} kudos",
    "ageing_every_s": "ageing every {seconds}",
    "job_timeout_s": "jobs end after {seconds}",
    "rule": "{rule}",
    "client": "a refused client {client}",
    "return_after_s": "back after {seconds}",
    "return_times": "back {value} times",
}


def settings_words(settings: ReplaySettings, baseline: ReplaySettings) -> str:
    """Return what differs from the baseline as people read it.

    >>> settings_words(ReplaySettings(rule="old", wait_floor_s=150), ReplaySettings())
    'floor wait 150 s, the previous rule'
    """
    words = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value == getattr(baseline, field.name):
            continue
        if field.name == "job_timeout_s" and value is None:
            words.append("jobs without a time limit")
            continue
        number = value if isinstance(value, int | float) else None
        words.append(
            _WORDS[field.name].format(
                value=_plain(value),
                count=count(number),
                seconds=seconds(number),
                rule=RULES.get(str(value), ""),
                client=CLIENTS.get(str(value), ""),
            )
        )
    return ", ".join(words) or "as the baseline"


def baseline_of(settings: AllowanceSettings) -> Run:
    """Return the baseline: the page's settings, with a replay's own defaults."""
    lifted = ReplaySettings.lifted(settings)
    words = "" if lifted.rule == "allowance" else f"{RULES[lifted.rule]}, "
    words += (
        f"{range_text(lifted.ceiling_tokens, lifted.floor_tokens)} tokens at "
        f"{one_or_range(seconds(lifted.wait_full_s), seconds(lifted.wait_floor_s))}"
    )
    return Run(LETTERS[0], lifted, words)


def runs_of(texts: Sequence[str], settings: AllowanceSettings) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Return the runs of an address, the baseline first, and a note for each that is left out.

    Parameters
    ----------
    texts
        Each run's ``name=value`` pairs, joined by commas.
    settings
        The page's own settings: the baseline, and what the pairs change.

    Examples
    --------
    >>> runs, notes = runs_of(["rule=old", "floor_tokens=9999", "rule=old,client=leave"], AllowanceSettings())
    >>> [run.title for run in runs][1:]
    ['B: the previous rule']
    >>> for note in notes:
    ...     print(note)
    The settings 'floor_tokens=9999' are left out: setting floor_tokens: 9999 must not be above ceiling_tokens, which is 4096.
    The settings 'rule=old,client=leave' are left out: they are those of B.
    """
    baseline = baseline_of(settings)
    runs, notes = [baseline], []
    for text in texts:
        try:
            given = settings_from_pairs([pair for pair in text.split(",") if pair.strip()], baseline.settings)
        except ConfigError as error:
            notes.append(f"The settings {text!r} are left out: {error}.")
            continue
        same = next((run for run in runs if run.digest == given.digest()), None)
        if same is not None:
            whose = "the baseline" if same is baseline else same.letter
            notes.append(f"The settings {text!r} are left out: they are those of {whose}.")
            continue
        runs.append(Run(LETTERS[len(runs)], given, settings_words(given, baseline.settings)))
    return tuple(runs), tuple(notes)


def opened_run(runs: Sequence[Run], letter: str) -> str:
    """Return the letter of the run that is open: the one asked for, else the first beside the baseline; empty without any.

    >>> runs = runs_of(("rule=old", "rule=jobs"), AllowanceSettings())[0]
    >>> opened_run(runs, "C"), opened_run(runs, "E"), opened_run(runs, ""), opened_run(runs[:1], "B")
    ('C', 'B', 'B', '')
    """
    others = [run.letter for run in runs[1:]]
    return letter if letter in others else next(iter(others), "")
