"""Words and numbers as people read them: one way to write each, and the escapes that hostile names need.

Names of workers, models and users come from the network (T5 of the dashboard facts): they go through :func:`visible` and
one of the three escapes before they reach Markdown, Plotly text or HTML. Numbers are written one way everywhere.
"""

import html
import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import cycle
from typing import Final

from horde_policy.units import one_or_range

__all__ = [
    "NONE_FREE",
    "NOT_REPORTED",
    "age",
    "as_listed",
    "clock_time",
    "code_span",
    "comma_hint",
    "count",
    "count_of",
    "document_markdown",
    "escape_html",
    "escape_markdown",
    "escape_plotly",
    "instant",
    "largest_free",
    "names_text",
    "names_told",
    "own_words",
    "program_text",
    "range_text",
    "ratio",
    "seconds",
    "shortened",
    "shortened_name",
    "speed",
    "tokens",
    "tokens_short",
    "unbroken",
    "ungrouped",
    "visible",
]

NOT_REPORTED: Final = "—"
"""How a figure reads that the source does not report; the reason stands beside it or in its tooltip."""

NONE_FREE: Final = "none"
"""How the largest free request reads where no request of any size is taken: that is known, and not a figure left out."""

SHORTENED_CHARACTERS = 80

_UNSEEN = frozenset(
    "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2066\u2067\u2068\u2069\u2060\ufeff"
)
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_MARKDOWN_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_READ_AGAIN = re.compile(r"\\[:@]|www\\\.", re.IGNORECASE)
_BACKTICKS = re.compile(r"`+")
_LINK_BESIDE = re.compile(r"\[([^\]]*)\]\((?!#|[a-z]+://)[^)]*\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_PICTURE_LINE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n+", re.MULTILINE)


# --- hostile text ---------------------------------------------------------------------------------------------------


def visible(text: str) -> str:
    r"""Return a name with every character that is unseen or turns the writing direction shown by its number.

    Control characters, line breaks, lone surrogates and direction marks become ``⟨U+202E⟩``; all else stays, also the
    joiners that many scripts need.

    >>> visible("evil\u202egnp.exe")
    'evil⟨U+202E⟩gnp.exe'
    """
    return "".join(
        f"⟨U+{ord(character):04X}⟩" if character in _UNSEEN or unicodedata.category(character) in ("Cc", "Cs") else character
        for character in text
    )


def shortened(text: str, characters: int = SHORTENED_CHARACTERS) -> str:
    """Return the text, cut to so many characters with an ellipsis.

    >>> shortened("x" * 100, 5)
    'xxxx…'
    """
    return text if len(text) <= characters else text[: characters - 1] + "…"


def shortened_name(name: str, characters: int = SHORTENED_CHARACTERS) -> str:
    """Return a model's name, cut to so many characters within its path: what stands behind the last slash tells models apart.

    Where that alone is too long, its middle is left out.

    >>> shortened_name("koboldcpp/someone/Fernery-24B-v1.1", 24)
    'kobold…/Fernery-24B-v1.1'
    >>> shortened_name("Fernery-24B-v1.1-instruct-Q4_K_M.gguf", 24)
    'Fernery-24B…-Q4_K_M.gguf'
    """
    if len(name) <= characters:
        return name
    own = name.rpartition("/")[2]
    room = characters - len(own) - 2
    if own and own != name and room > 0:
        return f"{name[:room]}…/{own}"
    tail = characters // 2
    return f"{name[: characters - tail - 1]}…{name[-tail:]}"


def names_told(names: Sequence[str], characters: int) -> list[str]:
    """Return the names of models for which there is room in a row, each with its end. Made visible.

    >>> names_told(["koboldcpp/someone/Fernery-24B-v1.1", "c", "d"], 24)
    ['kobold…/Fernery-24B-v1.1']
    """
    told: list[str] = []
    for name in names:
        text = shortened_name(visible(name), characters)
        if told and len(", ".join([*told, text])) > characters:
            break
        told.append(text)
    return told


def names_text(names: Sequence[str], characters: int) -> str:
    """Return names of models in a row, each with its end; those for which there is no room are counted. Made visible.

    >>> names_text(["a/b", "c"], 90), names_text([], 90)
    ('a/b, c', '')
    >>> names_text(["koboldcpp/someone/Fernery-24B-v1.1", "c", "d"], 24)
    'kobold…/Fernery-24B-v1.1 and 2 more'
    """
    told = names_told(names, characters)
    left = len(names) - len(told)
    return ", ".join(told) + (f" and {count(left)} more" if left else "")


def as_listed(name: str) -> tuple[str, str]:
    """Return what a name is sorted by in a list: capital letters stand among the others, as in a dictionary.

    >>> sorted(["my/b", "Lantern", "koboldcpp/a"], key=as_listed)
    ['koboldcpp/a', 'Lantern', 'my/b']
    """
    return name.casefold(), name


def program_text(agent: str) -> str:
    """Return name and version of a worker's program: its agent without the address of the program's project.

    >>> program_text("KoboldCppEmbedWorker:2:https://github.com/x/y"), program_text("unknown:0:unknown"), program_text("plain")
    ('KoboldCppEmbedWorker 2', 'program not told', 'plain')
    """
    name, _, rest = agent.partition(":")
    if name == "unknown":
        return "program not told"
    return shortened(f"{name} {rest.partition(':')[0]}".strip(), 60)


def code_span(name: str) -> str:
    """Return a name as a Markdown code span, in which nothing is Markdown: no link, image, directive, icon or formula.

    >>> code_span("![x](http://a/b.png)")
    '`![x](http://a/b.png)`'
    >>> code_span("a`b")
    '`` a`b ``'
    """
    text = visible(name)
    if not text.strip():
        return "(empty name)"
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or text != text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def escape_markdown(text: str) -> str:
    r"""Return text that Streamlit's Markdown shows as it is.

    Every mark of punctuation gets a backslash; a word joiner after ``:``, ``@`` and ``www.`` keeps the extensions that look
    at finished text (bare links, ``:material/…:``, emoji codes) from matching. Nowhere else: it goes along when a name is copied.

    >>> escape_markdown("**a** :red[b]").replace("\N{WORD JOINER}", "")
    '\\*\\*a\\*\\* \\:red\\[b\\]'
    """
    text = _MARKDOWN_PUNCTUATION.sub(r"\\\1", visible(text))
    return _READ_AGAIN.sub("\\g<0>\N{WORD JOINER}", text)


def own_words(text: str) -> str:
    r"""Return a sentence of our own as Markdown: a dollar must not begin a formula. Never for a text from elsewhere.

    >>> own_words("$1 of $2")
    '\\$1 of \\$2'
    """
    return text.replace("$", "\\$")


def document_markdown(text: str) -> str:
    r"""Return a page of the docs as a part of a page: no title, headings one level down, no dollar a formula.

    Pictures and the addresses of other pages of the docs are left out: the app does not serve them. A block of code stays as it
    is: there a dollar begins no formula, and a backslash would be seen.

    >>> document_markdown("# Title\n\n```\n$ make run  # on $1\n```\n")
    '```\n$ make run  # on $1\n```'
    >>> document_markdown("# Title\n\nCosts $1, [as said](x.md).\n\n![A page](images/page.png)\n\n## Part\n")
    'Costs \\$1, as said.\n\n### Part'
    """
    without = _LINK_BESIDE.sub(r"\1", _PICTURE_LINE.sub("", text.split("\n", 1)[1]))
    parts = _FENCED.split(without.strip())
    return "".join(part if code else _headings_lowered(own_words(part)) for code, part in zip(cycle((False, True)), parts))


def _headings_lowered(text: str) -> str:
    return re.sub(r"^(?=##)", "#", text, flags=re.MULTILINE)


def escape_plotly(text: str) -> str:
    r"""Return text that Plotly shows as it is: its pseudo-HTML and its ``$…$`` formulas do not match.

    >>> escape_plotly("<b>a</b> $x$").replace("\N{WORD JOINER}", "")
    '&lt;b&gt;a&lt;/b&gt; $x$'
    """
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("$", "\N{WORD JOINER}$\N{WORD JOINER}")


def escape_html(text: str) -> str:
    """Return text that HTML shows as it is, in an element or a quoted attribute.

    >>> escape_html('<a href="x">')
    '&lt;a href=&quot;x&quot;&gt;'
    """
    return html.escape(visible(text), quote=True)


# --- numbers --------------------------------------------------------------------------------------------------------


def ungrouped(typed: str) -> str:
    """Return a number that somebody typed without the commas between its thousands, for whoever reads it.

    Commas anywhere else stay, so that it is refused: left out, one that stands for a decimal point makes ten times the number.

    >>> ungrouped(" 1,500.50 "), ungrouped("12,5"), ungrouped("1,2,3"), ungrouped("1,0000")
    ('1500.50', '12,5', '1,2,3', '1,0000')
    """
    plain = typed.strip()
    return plain.replace(",", "") if _GROUPED.fullmatch(plain) else plain


def comma_hint(typed: str) -> str | None:
    """Return what tells somebody whose number is refused what its comma is read as; null where that is not why.

    >>> comma_hint("12,5")
    'commas group thousands, as in 1,500; the decimal mark is a point'
    >>> comma_hint("1,500") is None
    True
    """
    return "commas group thousands, as in 1,500; the decimal mark is a point" if "," in ungrouped(typed) else None


def count(number: float | None) -> str:
    """Return a whole number with thousands separated; null reads as not reported.

    >>> count(1234567), count(0), count(None)
    ('1,234,567', '0', '—')
    """
    return NOT_REPORTED if number is None else f"{number:,.0f}"


def count_of(number: int, noun: str) -> str:
    """Return a whole number of things whose plural ends in s.

    >>> count_of(1, "gap"), count_of(0, "gap"), count_of(1200, "poll")
    ('1 gap', '0 gaps', '1,200 polls')
    """
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def tokens(number: float | None) -> str:
    """Return output tokens in full, without their unit, which the heading carries.

    >>> tokens(4096), tokens(None)
    ('4,096', '—')
    """
    return count(number)


def largest_free(tokens_free: int | None, *, known: bool) -> str:
    """Return the largest free request, without its unit; ``known`` says whether a null is an answer and not a gap.

    >>> largest_free(1024, known=True), largest_free(None, known=True), largest_free(None, known=False)
    ('1,024', 'none', '—')
    """
    return NONE_FREE if tokens_free is None and known else count(tokens_free)


def tokens_short(number: float | None) -> str:
    """Return a large number of tokens in three digits, for a tile whose tooltip has all of them.

    >>> [tokens_short(n) for n in (0, 950, 4096, 12_345, 1_234_567, 374_000_000, None)]
    ['0', '950', '4,096', '12.3 k', '1.23 M', '374 M', '—']
    """
    if number is None:
        return NOT_REPORTED
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= size * (10 if unit == "k" else 1):
            scaled = number / size
            digits = 2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0
            return f"{scaled:.{digits}f} {unit}"
    return count(number)


def seconds(wait_s: float | None) -> str:
    """Return a wait with its unit: whole seconds up to ten minutes, since the marks are 60 s and 300 s, then minutes, hours.

    >>> [seconds(s) for s in (0, 0.4, 12.4, 300, 601, 7_200, 100_000, None)]
    ['0 s', '< 1 s', '12 s', '300 s', '10 min', '2 h 0 min', '1 d 4 h', '—']
    """
    if wait_s is None:
        return NOT_REPORTED
    if math.isinf(wait_s):
        return "without end"
    if 0 < wait_s < 1:
        return "< 1 s"
    if wait_s < 600:
        return f"{wait_s:.0f} s"
    minutes = round(wait_s / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(wait_s / 3600)
    return f"{hours // 24} d {hours % 24} h"


def speed(tok_per_s: float | None) -> str:
    """Return a speed in tokens per second, without its unit: one decimal below 100.

    >>> speed(28.94), speed(1234.5), speed(0.0), speed(None)
    ('28.9', '1,234', '0', '—')
    """
    if tok_per_s is None:
        return NOT_REPORTED
    if tok_per_s == 0:
        return "0"
    return f"{tok_per_s:.1f}" if abs(tok_per_s) < 100 else f"{tok_per_s:,.0f}"


def ratio(share: float | None) -> str:
    """Return a share as a percentage with one decimal where it matters.

    >>> ratio(0.1234), ratio(1.0), ratio(0.0), ratio(None)
    ('12.3 %', '100 %', '0 %', '—')
    """
    if share is None:
        return NOT_REPORTED
    percent = share * 100
    return f"{percent:.0f} %" if percent in (0, 100) else f"{percent:.1f} %"


def signed_points(low: float, high: float | None = None) -> str:
    """Return a difference of shares in percentage points, with its sign; two ends as a range.

    >>> signed_points(-0.0171), signed_points(0.197), signed_points(0.1, 0.1), signed_points(-0.1, 0.2)
    ('−1.7', '+19.7', '+10.0', '−10.0 to +20.0')
    """
    if high is not None and high != low:
        return f"{signed_points(low)} to {signed_points(high)}"
    return f"{low * 100:+.1f}".replace("-", "−")


def range_text(low: float | None, high: float | None) -> str:
    """Return a range of tokens, or its one value where both ends agree; an unknown end reads as not reported.

    >>> range_text(512, 4096), range_text(512, 512), range_text(None, 4096)
    ('512 to 4,096', '512', '— to 4,096')
    """
    return one_or_range(tokens(low), tokens(high))


_VALUE = re.compile(r"(?<=\d) (?=(?:s|min|h|d|k|M|G|tok|UTC)\b|\\?%)|(?<=\d h) (?=\d)|(?<=\d d) (?=\d)|(?<=[<≥≤]) (?=\d)")


def unbroken(text: str) -> str:
    r"""Return a sentence in which no line ends within a figure: between it and its unit, or between hours and minutes.

    >>> unbroken("clears the queue in 2 h 0 min; 3 more").replace("\N{NO-BREAK SPACE}", "_")
    'clears the queue in 2_h_0_min; 3 more'
    >>> unbroken("12.3 k, 17.6 %, < 1 s, at 11:48:12 UTC").replace("\N{NO-BREAK SPACE}", "_")
    '12.3_k, 17.6_%, <_1_s, at 11:48:12_UTC'
    >>> unbroken(escape_markdown("6.4 % refused")).replace("\N{NO-BREAK SPACE}", "_")
    '6\\.4_\\% refused'
    """
    return _VALUE.sub("\N{NO-BREAK SPACE}", text)


# --- time -----------------------------------------------------------------------------------------------------------


def age(age_s: float) -> str:
    """Return an age in at most two units, as the ticking age in the browser writes it too.

    >>> [age(s) for s in (0, 59.9, 60, 3_599, 3_600, 90_000)]
    ['0 s', '59 s', '1 min', '59 min', '1 h 0 min', '1 d 1 h']
    """
    whole = max(0, math.floor(age_s))
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole % 3_600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3_600} h"


def instant(at: datetime) -> str:
    """Return an instant in UTC, to the second.

    >>> instant(datetime(2026, 11, 29, 19, 39, 1, tzinfo=UTC))
    '29 Nov 2026 19:39:01 UTC'
    """
    utc = at.astimezone(UTC)
    return f"{utc.day} {_MONTHS[utc.month - 1]} {utc.year} {utc:%H:%M:%S} UTC"


def clock_time(at: datetime) -> str:
    """Return the time of the day in UTC, for an instant that is near.

    >>> clock_time(datetime(2026, 11, 29, 12, 4, 59, tzinfo=UTC))
    '12:04 UTC'
    """
    return f"{at.astimezone(UTC):%H:%M} UTC"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
