"""The workshop's eight steps: their titles, and the real pages that each drives, as addresses with every choice set.

A link holds the whole state of the page that it opens, on the demo and the rule's own settings, so opening it again is the
reset. What a step says is computed in :mod:`horde_policy.views.guide_steps`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from horde_policy.settings import AllowanceSettings
from horde_policy.views.parameters import WORKSHOP_STEPS
from horde_policy.views.review_state import ReviewState
from horde_policy.views.state import DEMO, ViewState

__all__ = [
    "BUSY",
    "IDLE",
    "ONWARD",
    "OTHER_BACKEND",
    "SEVERAL_SIZES",
    "SHARED_NAME",
    "STEPS",
    "STUCK",
    "GuideLink",
    "Step",
    "link_query",
    "subject_of",
]

IDLE: Final = "koboldcpp/Sparrow-0.6B"
STUCK: Final = "koboldcpp/Nocturne-70B"
BUSY: Final = "koboldcpp/Ironwood-32B"
SHARED_NAME: Final = "koboldcpp/Fernery-24B-v1.1"
OTHER_BACKEND: Final = "northway/Fernery-24B-v1.1"
SEVERAL_SIZES: Final = "koboldcpp/Saltmarsh-12B"
"""Models of the demo that the steps speak of."""


@dataclass(frozen=True, slots=True)
class GuideLink:
    """A page that a step opens: its name in the address, what to look at there, and what is chosen on it.

    A ``part`` that stands far down on its page is shown first on it while the step is held (:func:`subject_of`).
    """

    page: str
    label: str
    changes: Mapping[str, object] = field(default_factory=dict)
    review: ReviewState | None = None
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    part: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its title, the question put to the room first, the pages that answer it, and what is taken home from it."""

    title: str
    question: str
    links: tuple[GuideLink, ...]
    lesson: str


STEPS: Final[tuple[Step, ...]] = (
    Step(
        "Why a horde-wide count failed",
        "One model has a long queue, another stands idle. How much should each give free?",
        (
            GuideLink("overview", "The board, longest wait first", {"sort": "wait", "descending": True}),
            GuideLink("model", "The idle model under both rules", {"models": (IDLE,)}),
        ),
        "One count for the whole horde gives the idle model and the stuck one the same; each model's own wait tells them apart.",
    ),
    Step(
        "The curve",
        "What is free when the wait is one minute, three minutes, five minutes?",
        (GuideLink("model", "A model on the slope", {"models": (BUSY,)}),),
        "The allowance is full up to one wait, falls in a straight line, and ends at a floor: nobody is shut out.",
    ),
    Step(
        "Whose wait",
        "Two backends serve weights of one name. Does the queue of the one make the other's users wait?",
        (
            GuideLink("overview", "Both on the board", {"find": "Fernery"}),
            GuideLink("model", "The one with the queue", {"models": (SHARED_NAME,)}),
            GuideLink("model", "A client that names both", {"models": (SHARED_NAME, OTHER_BACKEND)}),
        ),
        "The wait is that of the workers that could serve this request, so naming another backend can shorten it.",
    ),
    Step(
        "Size changes the pool",
        "Does asking for more change how long you wait?",
        (
            GuideLink("model", "A short request", {"models": (SEVERAL_SIZES,)}),
            GuideLink("model", "1,024 tokens", {"models": (SEVERAL_SIZES,), "max_length_tokens": 1024}),
            GuideLink("overview", "The whole board at 1,024 tokens", {"max_length_tokens": 1024}),
        ),
        "Asking for more leaves fewer workers: the wait and the allowance are of the size that was asked for.",
    ),
    Step(
        "Reading the week",
        "Who was refused, and was the rule the reason?",
        (
            GuideLink("week", "The week in sentences"),
            GuideLink(
                "decisions",
                "The refusals by requester and size",
                review=ReviewState(rows="requester", columns="requested_size", outcome=("refused",)),
            ),
        ),
        "Counts say who was refused, and that most refusals met a wait that was long; each share has its interval.",
    ),
    Step(
        "Funded waits",
        "Those who paid: did they wait less?",
        (GuideLink("waits", "The bounds of the funded wait", review=ReviewState(over_s=300.0, above=0.1), part="funded"),),
        "What was not recorded cannot be counted later: whether payers wait less takes a record of each request.",
    ),
    Step(
        "Try a setting",
        "What if the floor were 1,024 tokens?",
        (
            GuideLink(
                "model",
                "The model at the floor",
                {"models": (STUCK,), "tried": AllowanceSettings(floor_tokens=1024)},
            ),
            GuideLink("replay", "The same with real arrivals", {"runs": ("floor_tokens=1024",)}),
        ),
        "Counts show what a setting frees; what that makes others wait only a replay shows.",
    ),
    Step(
        "A budget's bound",
        "A budget is hard. How far over can it go all the same?",
        (
            GuideLink("budget", "One request, line by line", part="request"),
            GuideLink("budget", "All of it held", extra={"budget_reserve": ("32000",)}, part="request"),
        ),
        "A hard budget can be passed by what open requests cost beyond their holds, and that much can be said beforehand.",
    ),
)
"""The eight steps in their order."""

ONWARD: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "overview",
        "Watch a horde",
        "The board of a horde of your own: choose it in the first box above any page, or set `HORDE_URL`.",
    ),
    ("week", "Read your own week", "Upload exported metrics, or name a Prometheus."),
    ("replay", "Replay your own traffic", "A request log, or the counts of a week, under up to four settings."),
    ("sweep", "Choose settings", "Many settings at once, what is within the noise, and a proposal to send."),
)
"""Where to go on when the workshop is over: page, what it is for, what it takes."""

if len(STEPS) != WORKSHOP_STEPS:
    raise AssertionError("the address knows another number of steps than there are")


def subject_of(step: int, page: str) -> str:
    """Return the part of a page that a step of the workshop is about; empty where it is the page as it stands.

    >>> subject_of(6, "waits"), subject_of(6, "budget"), subject_of(0, "waits"), subject_of(9, "waits")
    ('funded', '', '', '')
    """
    links = STEPS[step - 1].links if 0 < step <= len(STEPS) else ()
    return next((link.part for link in links if link.page == page and link.part), "")


def link_query(link: GuideLink, step: int, base: AllowanceSettings, first_source: str = DEMO) -> dict[str, list[str]]:
    """Return the query of a link: the demo, the rule's own settings whatever ``base`` the deployment has, and the step.

    The demo is named where ``first_source``, which an address stands for that names none, is another.

    >>> link_query(STEPS[1].links[0], 2, AllowanceSettings())
    {'m': ['koboldcpp/Ironwood-32B'], 'step': ['2']}
    >>> link_query(STEPS[4].links[1], 5, AllowanceSettings(floor_tokens=256))["floor"]
    ['512']
    >>> link_query(STEPS[1].links[0], 2, AllowanceSettings(), "url")["source"]
    ['demo']
    """
    state = ViewState(source=DEMO, first_source=first_source, step=step).changed(**link.changes)
    own = {} if link.review is None else link.review.query()
    return state.query(base) | own | {name: list(values) for name, values in link.extra.items()}
