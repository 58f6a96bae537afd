"""What the review pages show as one frozen value, and the address that carries it; the links of findings are such addresses.

What cannot be read falls back to its default with a note, what equals the default is not written.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Self
from urllib.parse import urlencode

from horde_policy.errors import ConfigError, InputError, shown
from horde_policy.review.bounds import RATIO
from horde_policy.review.decompose import DIMENSIONS, WORDS
from horde_policy.review.finding import Target
from horde_policy.review.ranges import TimeRange
from horde_policy.review.verdict import ABOVE, OVER_S
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.address_values import (
    Parameter,
    Query,
    UnreadableValue,
    in_calendar,
    matching,
    number,
    number_text,
    one,
    one_of,
    read_values,
    whole,
)
from horde_policy.views.parameters import as_written

__all__ = ["PARAMETERS", "ReviewState", "parse_review_state", "range_from_text", "range_text", "target_address"]

_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?")

MOST_RATIO = 1_000_000.0
MOST_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewState:
    """What a review page shows.

    Attributes
    ----------
    data, against
        Keys of the data reviewed, and of those compared with; empty for the first there are, and for none.
    start, end, against_start, against_end
        The ranges, null for all.
    requester, outcome, requested_size, allowance_size, chat
        The words that are looked at, none for all; ``none`` stands for what was not exported.
    rows, columns, colour
        Dimensions of the table and the figure; ``columns`` and ``colour`` may be empty.
    ceiling, floor
        The settings of the what-if; null for those in force.
    over_s, above, ratio
        The question about funded waits.

    Examples
    --------
    >>> state, notes = parse_review_state({"outcome": ["refused"], "rows": ["requested_size"], "what_if_floor": ["1024"]})
    >>> state.outcome, state.rows, state.floor, notes
    (('refused',), 'requested_size', 1024, ())
    >>> state.query()
    {'outcome': ['refused'], 'rows': ['requested_size'], 'what_if_floor': ['1024']}
    """

    data: str = ""
    against: str = ""
    start: datetime | None = None
    end: datetime | None = None
    against_start: datetime | None = None
    against_end: datetime | None = None
    requester: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    requested_size: tuple[str, ...] = ()
    allowance_size: tuple[str, ...] = ()
    chat: tuple[str, ...] = ()
    rows: str = "requester"
    columns: str = ""
    colour: str = "outcome"
    ceiling: int | None = None
    floor: int | None = None
    over_s: float = OVER_S
    above: float = ABOVE
    ratio: float = RATIO

    def changed(self, **changes: object) -> Self:
        """Return the state with some fields replaced.

        >>> ReviewState().changed(columns="chat").columns
        'chat'
        """
        return replace(self, **changes)  # type: ignore[arg-type]

    def query(self) -> dict[str, list[str]]:
        """Return the state as a query string: what differs from the defaults, in a fixed order."""
        default = type(self)()
        return {
            parameter.name: list(parameter.write(getattr(self, parameter.field)))
            for parameter in PARAMETERS
            if getattr(self, parameter.field) != getattr(default, parameter.field)
        }

    @property
    def keep(self) -> dict[str, tuple[object, ...]]:
        """Return the words that are looked at by dimension, as :func:`~horde_policy.review.decompose.filtered` takes them.

        >>> ReviewState(chat=("true", "none")).keep
        {'chat': (True, None)}
        """
        return {
            dimension: tuple(_word(dimension, text) for text in getattr(self, dimension))
            for dimension in WORDS
            if getattr(self, dimension)
        }

    @property
    def span(self) -> TimeRange:
        """Return the range that is looked at."""
        return TimeRange(self.start, self.end)

    @property
    def against_span(self) -> TimeRange:
        """Return the range that is compared with."""
        return TimeRange(self.against_start, self.against_end)

    @property
    def compares(self) -> bool:
        """Return whether anything is compared."""
        return bool(self.against) or not self.against_span.whole

    @property
    def dimensions(self) -> tuple[str, str, str]:
        """Return rows, columns and colour as they can be drawn: a dimension stands once, the other places stay empty.

        >>> ReviewState(rows="outcome").dimensions
        ('outcome', '', '')
        """
        columns = "" if self.columns == self.rows else self.columns
        return self.rows, columns, "" if self.colour in (self.rows, columns) else self.colour

    def toggled(self, dimension: str, word: object) -> Self:
        """Return the state that looks at one word of a dimension alone, or at all again if it did already.

        >>> once = ReviewState().toggled("chat", True)
        >>> once.chat, once.toggled("chat", True).chat
        (('true',), ())
        """
        kept = (_written(word) if word is not None else "none",)
        return self.changed(**{dimension: () if getattr(self, dimension) == kept else kept})

    def everything(self) -> Self:
        """Return the state without its filters: every word of every dimension.

        >>> ReviewState(outcome=("free",), rows="chat").everything()
        ReviewState(..., rows='chat', ...)
        """
        return self.changed(**dict.fromkeys(WORDS, ()))

    def what_if(self, settings: AllowanceSettings) -> AllowanceSettings | None:
        """Return the settings of the what-if; null where nothing is changed, or the two do not go together.

        >>> ReviewState(floor=1024).what_if(AllowanceSettings()).floor_tokens
        1024
        >>> ReviewState(floor=9000).what_if(AllowanceSettings()) is None
        True
        """
        ceiling = settings.ceiling_tokens if self.ceiling is None else self.ceiling
        floor = settings.floor_tokens if self.floor is None else self.floor
        if (ceiling, floor) == (settings.ceiling_tokens, settings.floor_tokens):
            return None
        try:
            return settings.changed(ceiling_tokens=ceiling, floor_tokens=floor)
        except ConfigError:
            return None


def _word(dimension: str, text: str) -> object:
    if text == "none":
        return None
    return text == "true" if dimension == "chat" else text


def _instant(values: Sequence[str]) -> datetime:
    rule = "must be an instant as 2026-11-29T12:00:00Z"
    try:
        if not _INSTANT.fullmatch(values[-1]):
            raise ValueError
        at = datetime.fromisoformat(values[-1])
    except ValueError:
        raise UnreadableValue(rule) from None
    return in_calendar(at if at.tzinfo else at.replace(tzinfo=UTC), rule)


def _words(dimension: str) -> Callable[[Sequence[str]], tuple[str, ...]]:
    known = [_written(word) for word in WORDS[dimension]] + ["none"]

    def read(values: Sequence[str]) -> tuple[str, ...]:
        if any(value not in known for value in values):
            raise UnreadableValue("must be one of " + ", ".join(known))
        return tuple(word for word in known if word in values)

    return read


def _written(word: object) -> str:
    return str(word).lower() if isinstance(word, bool) else str(word)


def _dimension_or_none(values: Sequence[str]) -> str:
    # only rows can be steps of time: a figure has no place for as many columns or colours
    name: str = one_of((*WORDS, "none"))(values)
    return "" if name == "none" else name


def _ratio(values: Sequence[str]) -> float:
    return math.inf if values[-1] == "any" else number(1.0, MOST_RATIO)(values)


def _time_text(at: datetime) -> tuple[str]:
    return (at.astimezone(UTC).isoformat().replace("+00:00", "Z"),)


def _ratio_text(value: float) -> tuple[str]:
    return ("any",) if math.isinf(value) else number_text(value)


_DATA = matching(r"[\w .:+-]{1,100}", "must be the name of data that were read")
_TOKENS = whole(1, MAX_LENGTH_LIMIT_TOKENS)


PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("data", "data", _DATA, one),
    Parameter("against", "against", _DATA, one),
    Parameter("since", "start", _instant, _time_text),
    Parameter("until", "end", _instant, _time_text),
    Parameter("against_since", "against_start", _instant, _time_text),
    Parameter("against_until", "against_end", _instant, _time_text),
    *(Parameter(dimension, dimension, _words(dimension), tuple, several=True) for dimension in WORDS),
    Parameter("rows", "rows", one_of(DIMENSIONS), one),
    Parameter("columns", "columns", _dimension_or_none, lambda name: (name or "none",)),
    Parameter("colour", "colour", _dimension_or_none, lambda name: (name or "none",)),
    Parameter("what_if_ceiling", "ceiling", _TOKENS, one),
    Parameter("what_if_floor", "floor", _TOKENS, one),
    Parameter("over", "over_s", number(0.0, MOST_SECONDS), number_text),
    Parameter("above", "above", number(0.0, 0.999999999), number_text),
    Parameter("ratio", "ratio", _ratio, _ratio_text),
)
"""Every parameter of the review pages, in the order in which they are written; none is one of the other pages'."""


def parse_review_state(query: Query) -> tuple[ReviewState, tuple[str, ...]]:
    """Return the state that a query string stands for, and a note for every value that was left out. Nothing raises.

    >>> state, notes = parse_review_state({"since": ["2026-11-29"], "until": ["2026-11-01"], "above": ["2"]})
    >>> state.start is None, state.above
    (True, 0.1)
    >>> for note in notes:
    ...     print(note)
    The link's above='2' is left out: it must be a number from 0 to 1.
    The link's since and until are left out: the range must begin before it ends.
    """
    query = as_written(query)
    values, notes = read_values(PARAMETERS, query)
    for start, end, name in (
        ("start", "end", "since and until"),
        ("against_start", "against_end", "against_since and against_until"),
    ):
        if values.get(start) is not None and values.get(end) is not None and values[start] >= values[end]:
            values |= {start: None, end: None}
            notes.append(f"The link's {name} are left out: the range must begin before it ends.")
    known = {parameter.name for parameter in PARAMETERS}
    notes += [f"The link's {shown(name)[1:-1]} is left out: no page knows it." for name in query if name not in known]
    return ReviewState(**values), tuple(notes)


_DAY, _TIME, DAY_CHARACTERS = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d\d:\d\d(:\d\d)?"), len("2026-11-23")


def range_from_text(text: str) -> TimeRange:
    """Return the range that somebody typed: an instant, ``to``, an instant; ``all`` is the whole one. Without a zone it is UTC.

    A day alone is all of it, and a time alone at the end is one of the day before it.

    Raises
    ------
    InputError
        It is no range.

    Examples
    --------
    >>> range_text(range_from_text("2026-11-23 to 2026-11-24T12:00"))
    '2026-11-23 00:00 to 2026-11-24 12:00'
    >>> range_text(range_from_text("2026-11-23")), range_text(range_from_text("2026-11-23 05:10 to 09:20"))
    ('2026-11-23 00:00 to 2026-11-24 00:00', '2026-11-23 05:10 to 2026-11-23 09:20')
    >>> range_from_text("all").whole
    True
    """
    if text.strip() == "all":
        return TimeRange()
    first, to, last = (part.strip() for part in text.partition(" to "))
    if _TIME.fullmatch(last):
        last = f"{first[:DAY_CHARACTERS]} {last}"
    try:
        start, *end = [_instant([part.replace(" ", "T")]) for part in ([first, last] if to else [first])]
    except UnreadableValue:
        start, end = None, []
    if start is None or not (end or _DAY.fullmatch(first)):
        rule = "must be a day as 2026-11-23, two instants as 2026-11-23 00:00 to 2026-11-24 12:00 (UTC), or all"
        raise InputError("range", "", text, rule)
    return TimeRange(start, end[0] if end else start + timedelta(days=1))


def range_text(span: TimeRange) -> str:
    """Return a range as it is typed, in UTC, to the digit that the address holds; an open end is three dots.

    >>> range_text(TimeRange())
    'all'
    >>> range_text(range_from_text("2026-11-23 00:00:10.25 to 2026-11-24"))
    '2026-11-23 00:00:10.25 to 2026-11-24 00:00'
    """
    if span.whole:
        return "all"
    return " to ".join("…" if end is None else _typed(end) for end in (span.start, span.end))


def _typed(at: datetime) -> str:
    utc = at.astimezone(UTC)
    if not utc.second and not utc.microsecond:
        return f"{utc:%Y-%m-%d %H:%M}"
    return f"{utc:%Y-%m-%d %H:%M:%S}" + (f".{utc.microsecond:06}".rstrip("0") if utc.microsecond else "")


def target_address(target: Target, *, base: str = "", span: TimeRange | None = None) -> str:
    """Return the address of the page state behind a finding, below the address of the app.

    >>> target_address(Target("decisions", {"outcome": ("refused",)}), base="http://localhost:8501/")
    'http://localhost:8501/decisions?outcome=refused'
    """
    state, _ = parse_review_state(target.state)
    if span is not None:
        state = state.changed(start=span.start, end=span.end)
    query = urlencode(state.query(), doseq=True)
    return f"{base.rstrip('/')}/{target.page}" + (f"?{query}" if query else "")
