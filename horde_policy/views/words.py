"""The words of the product, each kept in one place: states, the five kinds of nothing, and the glossary.

A page takes its labels from here, so that one thing has one name on every page, in the exports and in the docs.
"""

from dataclasses import dataclass
from typing import Final

__all__ = ["GLOSSARY", "STANDINGS", "STATES", "StateWords", "Term", "filtered_note", "gloss", "glossary_entries"]


@dataclass(frozen=True, slots=True)
class StateWords:
    """How a state of a model at a size reads: its label, the sentence behind it, and whether it is bad news."""

    label: str
    text: str
    bad: bool = False


STATES: Final[dict[str, StateWords]] = {
    "full": StateWords("full", "The estimated wait is at or below the full wait: the allowance is the ceiling."),
    "falling": StateWords("falling", "The estimated wait lies between the two marks: the allowance falls with it."),
    "floor": StateWords("floor", "The estimated wait is at or above the floor wait: the allowance is the floor.", bad=True),
    "no_worker": StateWords(
        "no worker",
        "No online worker outside maintenance serves this model, so the allowance is the floor.",
        bad=True,
    ),
    "too_large": StateWords(
        "too large", "Workers serve this model, and none of them takes a request of this size: the allowance is the floor."
    ),
    "unknown": StateWords(
        "unknown",
        "The queue is not reported, so wait and allowance are not known: the source has no list of models, or its list gives no "
        "queue of this one.",
    ),
}
"""State of a model at a size (design §1) → its words, in the order from best to least known."""


STANDINGS: Final = {
    "open": "serves everybody",
    "maintenance": "in maintenance",
    "offline": "offline",
    "flagged": "owner flagged",
    "idle": "serves no model",
    "not known": "models not reported",
}
"""How a worker stands (:func:`horde_policy.policy.worker.standing`) → its words."""


@dataclass(frozen=True, slots=True)
class Term:
    """One glossary entry: the word as it is written in running text, one sentence, and the labels that mean it on pages.

    ``beside`` has the labels of figures that go with it and are not the same, each with what it is.
    """

    word: str
    text: str
    also: tuple[str, ...] = ()
    beside: tuple[tuple[str, str], ...] = ()


GLOSSARY: Final[dict[str, Term]] = {
    "allowance": Term(
        "allowance",
        "Output tokens up to which a text request of a requester without kudos is served without a kudos hold.",
        also=("Free allowance",),
    ),
    "size": Term(
        "size",
        "The output tokens a request asks for (max_length). The larger, the fewer workers can take it.",
        beside=(("By size", "state and allowance at several sizes"),),
    ),
    "context": Term("context", "The prompt tokens a request asks room for (max_context_length)."),
    "ceiling": Term("ceiling", "The largest allowance, given at a short estimated wait."),
    "floor": Term("floor", "The smallest allowance, given at a long estimated wait and where no worker is eligible."),
    "full_wait": Term("full wait", "The estimated wait up to which the allowance is the ceiling."),
    "floor_wait": Term("floor wait", "The estimated wait from which the allowance is the floor."),
    "estimated_wait": Term(
        "estimated wait",
        "Queued output tokens ahead of a request that its eligible workers could take, divided by their combined speed.",
        also=("Wait",),
    ),
    "named": Term(
        "named", "The estimate from the queue that the server lists for the model asked for. A reading of public figures."
    ),
    "at_worst": Term(
        "at worst",
        "The estimate if the list hides as much as it can: several generations a request, requests that name no model, and "
        "what the same workers serve besides. A scenario and not a bound.",
    ),
    "eligible_worker": Term(
        "eligible worker",
        "An online worker outside maintenance that serves the model and takes the size and the context asked for.",
        also=("Eligible workers",),
    ),
    "combined_speed": Term(
        "combined speed",
        "The measured speeds of the eligible workers, added up. A worker that has completed no job counts as assumed speed.",
        beside=(
            ("Speed", "in a row of a model the combined speed, in a row of a worker its own"),
            ("Speed of all", "of every worker that takes requests, whatever size it takes"),
        ),
    ),
    "assumed_speed": Term(
        "assumed speed",
        "What a worker without a measured speed counts in the combined speed.",
        beside=(("At assumed speed", "how many workers count so"),),
    ),
    "queued_tokens": Term(
        "queued tokens",
        "Output tokens that waiting requests ask for, as the server lists them: each request once.",
        also=("Queued", "Queue"),
    ),
    "largest_free_request": Term(
        "largest free request",
        "The largest size that some online worker could take and that is within the allowance measured at that same size.",
        also=("Largest free",),
    ),
    "demand": Term("demand", "Requests for the model within a day, which the server counts once a day."),
    "any_model": Term("any model", "A request that names no model: every online worker that takes its size is eligible."),
    "requester": Term("requester", "Who asks: the anonymous account, a registered account, or a shared key."),
    "outcome": Term("outcome", "What became of a request: free, funded, downgraded or refused."),
    "free": Term("free", "Served within the allowance, without a hold."),
    "funded": Term("funded", "Above the allowance, and admitted with its kudos held."),
    "unfunded": Term("unfunded", "Of a requester who could not pay a hold: such a request is free, downgraded or refused."),
    "p90": Term("P90", "The value that 90 of 100 do not exceed; of waits, 90 % of the requests wait no longer."),
    "downgraded": Term("downgraded", "Lowered to the allowance in place of a refusal, which the requester allowed."),
    "refused": Term("refused", "Above the allowance, which is the floor where no worker is eligible, and not payable."),
    "hold": Term("hold", "Kudos or money set aside when a request is admitted, until its real cost is known."),
    "settle": Term("settle", "Replace a hold by the real cost, when the response is there."),
    "kudos": Term("kudos", "The horde's own unit of account: earned by serving, spent by asking."),
    "dry_run": Term("dry run", "A request that only asks what it would cost, and is refused as the real one would be."),
    "queue_wait": Term("queue wait", "The measured time from the creation of a request to its assignment to a worker."),
    "declaration_gap": Term(
        "declaration gap", "By how much a request asks for more output or context than any online worker of its models declares."
    ),
    "token": Term(
        "token",
        "A piece of a word: the unit in which text models read and write, about four characters of English.",
        also=("tok",),
    ),
    "tok_per_s": Term("tok/s", "Output tokens a second: how fast a worker, or all that could serve a request, write."),
    "backend": Term(
        "backend",
        "The program with which a worker runs a model; its name stands before the model's, as in koboldcpp/Nocturne-70B.",
    ),
    "model": Term(
        "model",
        "The weights a request wants, by the name that workers serve them under, backend prefix included.",
        also=("Models",),
    ),
    "worker": Term(
        "worker",
        "A program that serves requests: it declares its models, sizes and threads.",
        also=("Workers",),
        beside=(("Serves", "how many other models a worker serves"),),
    ),
    "thread": Term(
        "thread", "A job that a worker runs beside others; its speed is counted once all the same.", also=("Threads",)
    ),
    "maintenance": Term(
        "maintenance", "A worker in maintenance takes no requests; it is listed and not eligible.", also=("In maintenance",)
    ),
    "declared_size": Term(
        "declared size",
        "The most output and context that a worker says it takes in one request.",
        also=("Takes up to", "Took up to"),
        beside=(("Takes", "how long a worker takes for one job of the size asked"),),
    ),
    "speed_share": Term("share", "A worker's part of the combined speed of the eligible workers, or a part of all requests."),
    "single_point": Term(
        "single point of failure",
        "A worker that carries a model alone: without it the model's allowance is the floor.",
        also=("Single points of failure",),
        beside=(
            ("Carries alone", "how many models a worker carries so"),
            ("The fastest alone", "the fastest worker's part of the speed of all"),
            ("Its only eligible worker", "that worker"),
            ("Without it", "the allowance if that worker left"),
            ("Left waiting", "the tokens queued for the model"),
        ),
    ),
    "state": Term("state", "How a model stands at a size: full, falling, floor, no worker, too large or unknown."),
    "low": Term("low", "The estimate if nothing of the listed queue stands ahead. A scenario and not a bound."),
    "scenario": Term("scenario", "One reading of what the public list leaves open about a wait: low, named or at worst."),
    "wait_time": Term(
        "wait_time",
        "What the server's status route would say: the estimated wait and the request's own output divided by the speed.",
    ),
    "past_minute": Term("past minute", "Output tokens that all workers together handed in within the last minute."),
    "source": Term("source", "Where figures come from: the demo, a horde, a recorded folder; one that is configured."),
    "snapshot": Term("snapshot", "Workers, models, speeds and modes of a horde read together, with the time of the oldest part."),
    "rate_limit": Term("rate limit", "How many requests the server still takes from us before it answers 429."),
    "problem": Term(
        "problem",
        "Something wrong in the data, kept beside the figures that it concerns.",
        also=("Problems",),
        beside=(
            ("What is wrong", "why a source gives no new figures"),
            ("What is wrong or missing", "what keeps a source that is no horde from being used"),
        ),
    ),
    "interval": Term(
        "interval",
        "Where a share lies with 95 % confidence in another week like this one; requests that come in bursts widen it.",
        also=("95 % interval",),
    ),
    "cell": Term(
        "cell", "One combination of requester, outcome, sizes and chat, with its count; the rule makes some impossible."
    ),
    "bounds": Term("bounds", "The least and the most that the counts allow, whatever they do not say."),
    "bucket": Term(
        "size bucket",
        "One of the five ranges of sizes in which decisions are counted: up to 512, 1,024, 2,048, 4,096, and above.",
    ),
    "previous_rule": Term(
        "previous rule",
        "The rule before this one: one size for the whole horde, by its text threads and queued requests. In links and files it "
        "is called old.",
    ),
    "jobs_rule": Term(
        "jobs rule", "A rule that was weighed: the allowance falls with the competing jobs an eligible thread has."
    ),
    "replay": Term("replay", "Recorded or made requests sent through the rule and a fleet again, under settings of your choice."),
    "baseline": Term("baseline", "The settings in force, which every comparison has beside it."),
    "fill_rule": Term("fill rule", "The named rule that assigns what no trace records: size, model, requester, who can pay."),
    "fleet": Term("fleet", "The workers of a replay: when they are online, as what, and how fast."),
    "budget": Term("hard budget", "A limit in money that refuses what may not fit under it."),
    "reservation": Term(
        "reservation", "What a request under a budget holds: its input estimate and a capped part of its output."
    ),
    "open_request": Term("open request", "A request whose real cost is not written yet; its hold counts."),
    "worst_case": Term("worst case", "By how much a hard budget can be overspent at most by the requests that are open."),
    "poll": Term(
        "poll",
        "One look of the recorder at a horde, stored if anything changed.",
        also=("Polls",),
        beside=(("First poll", "when the recorder first looked"), ("Last poll", "when it last looked")),
    ),
    "recorder": Term(
        "recorder",
        "The program that polls a horde and keeps its history.",
        beside=(
            ("Its recorder", "how the recorder of a source stands"),
            ("Recorded source", "a source whose history is kept"),
            ("Recorded", "on Replay, the outcome that the traffic itself tells"),
        ),
    ),
    "gap": Term(
        "gap", "A time in which the recorder stored nothing; figures say so and draw no line through it.", also=("Gaps",)
    ),
    "alert": Term("alert", "A rule on the figures that has held for its time, such as a model at the floor.", also=("Firing",)),
    "trend": Term("trend", "A figure over the range of the history, each part of it at its least."),
    "admitted": Term(
        "admitted",
        "Let into the queue, or under a budget to its provider: free, funded or downgraded.",
        beside=(("Started", "admitted, and taken by a worker"),),
    ),
    "expired": Term("expired", "Waited longer than a request lives (20 minutes), and gone from the queue."),
    "timed_out": Term(
        "timed out",
        "Ended while it was generated, since a job may take 150 s.",
        beside=(
            ("Over 150 s", "the share of the admitted whose job ran longer, ended or not"),
            ("Could not finish in full", "started, and at its worker's speed too long for its full size"),
        ),
    ),
    "given_free": Term(
        "given free",
        "Output tokens of requests that held nothing.",
        beside=(("Tokens more", "what one request is delivered more than under the baseline"),),
    ),
    "held_out": Term(
        "held out",
        "Days that had no say in the choice of settings, and show whether it holds elsewhere.",
        beside=(
            ("Better on, held out", "on how many of those days the settings looked at are better"),
            ("In force, held out", "a figure of the baseline on those days"),
            ("Looked at, held out", "the same figure of the settings looked at"),
        ),
    ),
    "front": Term(
        "front",
        "The settings that meet the constraints and of which none is better in one objective without being worse in another.",
    ),
    "verdict": Term("verdict", "Whether a difference is larger than what chance makes of the same settings."),
    "limit": Term(
        "limit",
        "The money that a hard budget allows in a window.",
        beside=(("At the limit", "how many were refused because the money was spent, or the hold alone is larger"),),
    ),
    "spent": Term(
        "spent",
        "Money of requests whose real cost is written.",
        beside=(
            ("Spent by label", "the same by how sure the cost is"),
            ("Used", "what was spent in the end, as a share of the limits"),
        ),
    ),
    "held": Term(
        "held",
        "Money that open requests set aside.",
        beside=(("Held by", "the copy of the program that renews a hold"),),
    ),
    "overspent": Term(
        "overspent",
        "How far what was spent lies over the limit.",
        beside=(
            ("At worst beyond", "what one open request can cost beyond its hold"),
            ("At worst beyond the holds", "the same of all open requests, and how far over the limit that would be"),
        ),
    ),
    "refused_early": Term("refused early", "Refused by a budget although its money would have covered the real cost."),
    "bound_of_budget": Term(
        "bound",
        "The most by which a limit can be passed, said beforehand.",
        beside=(
            ("Worst case over the limit", "the furthest over it that spent, held and the worst case came at any moment"),
            ("Largest W", "the most that open requests could cost beyond their holds at any moment"),
        ),
    ),
    "unpriced": Term("unpriced", "A request whose model the price table does not have; it is never taken as free."),
    "reserved_output": Term(
        "reserved output", "The output tokens that a hold covers: the smaller of the asked and the configured."
    ),
}
"""Key → term. One definition for the pages, the tooltips and the docs."""


def glossary_entries() -> list[tuple[str, Term]]:
    """Return keys and terms as a list of words has them: by their word, in any case.

    >>> words = [term.word for _, term in glossary_entries()]
    >>> words.index("outcome") < words.index("P90") < words.index("poll")
    True
    """
    return sorted(GLOSSARY.items(), key=lambda entry: entry[1].word.casefold())


def gloss(*keys: str) -> str:
    """Return the definitions of some terms as one tooltip.

    >>> gloss("demand")
    'Requests for the model within a day, which the server counts once a day.'
    """
    return "\n\n".join(GLOSSARY[key].text for key in keys)


# --- the five kinds of nothing (zero is written as 0, no eligible worker is a state) -----------------------------------


def filtered_note(hidden: int, what: str = "rows") -> str:
    """Return the sentence for a view whose filters leave nothing.

    >>> filtered_note(412)
    'The filters hide all 412 rows.'
    """
    return f"The filters hide all {hidden:,} {what}."
