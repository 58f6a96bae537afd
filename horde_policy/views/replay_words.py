"""A replay in words and rows: its headline, what its inputs are, the runs side by side, the largest differences."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from horde_policy.units import JOB_TIME_LIMIT_S
from horde_policy.views.grid import Column, Row, name_cell
from horde_policy.views.replay_results import Compared, Scored, wait_of, waits_table
from horde_policy.views.replay_runs import CLIENTS, RULES, Run
from horde_policy.views.review_words import size_text
from horde_policy.views.text import NOT_REPORTED, count, count_of, ratio, seconds, tokens_short, visible
from horde_policy.views.words import gloss

__all__ = [
    "AGREEMENT_COLUMNS",
    "DIFFERENCE_COLUMNS",
    "INTRODUCTION",
    "OF_ADMITTED",
    "OVERLAPPING",
    "RUN_COLUMNS",
    "UNFINISHED_COLUMNS",
    "WAIT_COLUMNS",
    "agreement_rows",
    "difference_rows",
    "fleet_words",
    "headline",
    "inputs_words",
    "leading",
    "refused_anew_words",
    "run_rows",
    "setting_rows",
    "traffic_words",
    "unfinished_rows",
    "unserved_words",
    "wait_rows",
]

INTRODUCTION: Final = (
    "A replay sends the same requests once more to the same workers under other settings, and says request by request what each "
    "would have got. The baseline is what stands behind Settings, above. The address holds the traffic, its load, the fleet, "
    "all settings and what the figures are narrowed to."
)

Runs = Sequence[tuple[Run, Scored]]
Stamp = Mapping[str, Any]


def headline(runs: Runs, changes: Mapping[str, Compared]) -> str:
    """Return the answer in one sentence: the run that differs most from the baseline, else what the baseline does."""
    summary = runs[0][1].summary
    requests = count(summary["requests"])
    if not changes:
        refused = summary["outcomes"]["refused"] / summary["requests"] if summary["requests"] else None
        return f"Of {requests} requests the baseline refuses {ratio(refused)}"
    letter = leading(changes)
    change = changes[letter]
    words = next(run.words for run, _ in runs if run.letter == letter)
    which = f"With {words}, " if len(changes) == 1 else f"{letter} ({words}) differs most: "
    return (
        f"{which}{ratio(change.lose_share)} of {count(change.figures['requests'])} requests fare worse than under the "
        f"baseline and {ratio(change.gain_share)} better"
    )


def leading(changes: Mapping[str, Compared]) -> str:
    """Return the letter of the run that differs most from the baseline, which the headline is about."""
    return max(changes, key=lambda letter: ((changes[letter].gain_share or 0) + (changes[letter].lose_share or 0), letter))


def traffic_words(stamp: Stamp) -> str:
    """Return what a traffic is: its trace, its load, and what of it is made up.

    >>> traffic_words({"trace": "a", "requests": 120, "superpose": 60, "thin": 1.0, "synthetic": False, "dated": True,
    ...                "reconstruction": False, "seed": 0})
    'a: 120 requests, 60 copies superposed (synthetic load)'
    """
    words = [f"{count_of(stamp['requests'], 'request')}"]
    if stamp["superpose"] > 1:
        words.append(f"{count(stamp['superpose'])} copies superposed (synthetic load)")
    if stamp["thin"] < 1:
        words.append(f"thinned to {ratio(stamp['thin'])}")
    if stamp["synthetic"]:
        words.append("drawn, synthetic")
    if stamp["reconstruction"]:
        words.append("a reconstruction")
    if not stamp["dated"]:
        words.append("without a real date")
    return f"{visible(str(stamp['trace']))}: {', '.join(words)}"


def fleet_words(stamp: Stamp) -> str:
    """Return what a fleet is: where from, its workers and speed, who of the source's was left out, whether it is made up.

    One that serves no model is left out, while a board counts it in the speed of all.

    >>> fleet_words({"from": "snapshot", "source": "a", "synthetic": False, "workers": 2, "models": 1, "workers_read": 3,
    ...              "combined_speed_tok_per_s": 30.0, "left_out": {"in maintenance": 1}})
    'a: 2 workers, 1 model, 30 tok/s together; of 3 listed 1 left out: 1 in maintenance'
    """
    where = "parameters" if stamp["from"] == "parameters" else visible(str(stamp["source"]))
    synthetic = ", synthetic" if stamp["synthetic"] else ""
    if stamp["from"] == "history":
        where += f", recorded from {stamp['first_poll'][:16]} to {stamp['last_poll'][:16]} UTC"
        where += " and moved to the time of the traffic" if stamp.get("moved_s") else ""
    workers, models = stamp["workers"], stamp["models"]
    return (
        f"{where}{synthetic}: {count_of(workers, 'worker')}, {count_of(models, 'model')}, "
        f"{count(stamp['combined_speed_tok_per_s'])} tok/s together{_left_out(stamp)}"
    )


def _left_out(stamp: Stamp) -> str:
    left = stamp.get("left_out")
    if stamp["from"] != "snapshot" or not isinstance(left, Mapping) or not left or "workers_read" not in stamp:
        return ""
    reasons = ", ".join(f"{count(number)} {visible(str(reason))}" for reason, number in left.items())
    return f"; of {count(stamp['workers_read'])} listed {count(sum(left.values()))} left out: {reasons}"


def inputs_words(traffic: Stamp, fleet: Stamp) -> list[tuple[str, str]]:
    """Return what stands on every result, as name and words."""
    return [
        ("Traffic", traffic_words(traffic)),
        ("Fleet", fleet_words(fleet)),
        ("Fill rule", str(traffic["fill"])),
        ("Models asked for", visible(str(traffic["models_from"])) if traffic["models_from"] else "as the rule says"),
    ]


# --- the runs side by side ----------------------------------------------------------------------------------------------

RUN_COLUMNS: Final = (
    Column(key="run", label="Run", wrap=True, wide=True),
    Column(key="free", label="Free", right=True, help="Share of the requests that were served within the allowance."),
    Column(key="funded", label="Funded", right=True, help=gloss("funded")),
    Column(key="downgraded", label="Downgraded", right=True, help=gloss("downgraded")),
    Column(key="refused", label="Refused", right=True, help=gloss("refused")),
    Column(key="given", label="Given free", unit="tokens", right=True, help="Tokens delivered without a hold."),
    Column(key="median", label="Median wait", unit="of the started", right=True, help="Queue wait of the requests that started."),
    Column(
        key="p95",
        label="95 % within",
        unit="of the started",
        right=True,
        help="95 of 100 requests that started waited no longer.",
    ),
    Column(
        key="nobody",
        label="No worker",
        right=True,
        help="Not an outcome of its own: share of all requests, whatever their outcome, for which no online worker was eligible.",
    ),
    Column(key="expired", label="Expired", right=True, help="Share of the admitted that no worker took within their time."),
    Column(
        key="over",
        label="Over 150 s",
        right=True,
        help="Share of the admitted whose job ran longer than the server's limit of 150 s, or timed out.",
    ),
    Column(key="better", label="Better", right=True, help="Requests that fare better than under the baseline."),
    Column(key="worse", label="Worse", right=True, help="Requests that fare worse than under the baseline."),
)


BASELINE_CELL: Final = {"text": NOT_REPORTED, "title": "The others are compared with this run."}

OVERLAPPING: Final = (
    "Free, Funded, Downgraded and Refused add up to all requests; the columns after them overlap these. No worker: of all "
    "requests, those for which no online worker was eligible when they came, since none serves the model, or none of those that "
    "do takes the size or context. Expired: of the admitted, no worker took it within its time. "
    f"Over {JOB_TIME_LIMIT_S:.0f} s: of the admitted, its job timed out or ran longer than the {JOB_TIME_LIMIT_S:.0f} s that "
    "AI Horde gives a job. The two waits are of the requests that started: the others have none. "
    "0 % is none and 100 % all; 0.0 % is fewer than 1 in 2,000, and 100.0 % lacks as few."
)
"""What stands below the runs side by side: which of their columns overlap, and what these count."""

OF_ADMITTED: Final = (
    "Shares of all admitted requests. Those that never started are among them, so a line ends below 100 % by their share; the "
    "waits in the tables are of those that started, and so shorter."
)
"""What stands below the figure of waits: whose shares it draws, beside those of the tables."""


def unserved_words(requests: int, unserved_requests: int) -> str:
    """Return which part of the column *No worker* asks for models that nobody serves.

    >>> unserved_words(200, 7)[:33]
    'These are 3.5 % of the requests; '
    """
    share = ratio(unserved_requests / requests if requests else None)
    return (
        f"These are {share} of the requests; the rest of No worker came when none of those that serve its model was online, or "
        "asked for a size or context that none of them takes."
    )


def refused_anew_words(letter: str, change: Compared) -> str | None:
    """Return why a run refuses more requests than fare worse; null where every request that it refuses anew was served before.

    A request that the baseline admitted and never answered is no worse off when it is refused.
    """
    anew, served = change.figures["refused_anew"], change.figures["refused_anew_served"]
    if anew <= served:
        return None
    return (
        f"{letter} refuses {count(anew)} requests that the baseline admitted. {count(served)} of them were served under the "
        f"baseline and fare worse; the other {count(anew - served)} were not (no worker, expired or timed out), so a refusal "
        "leaves them no worse off."
    )


def _share(part: float, whole: float) -> str:
    return ratio(part / whole if whole else None)


def _estimated(summary: Mapping[str, Any]) -> int:
    """Return how many requests had an estimate of their wait, that is an eligible worker."""
    return sum(row["requests"] for row in summary["estimated_waits"] if row["requester"] is None)


def run_rows(runs: Runs, changes: Mapping[str, Compared]) -> list[Row]:
    """Return one row a run, the baseline first."""
    rows = []
    for run, scored in runs:
        summary, requests = scored.summary, scored.summary["requests"]
        admitted = requests - summary["statuses"]["refused"]
        change = changes.get(run.letter)
        cells: dict[str, Any] = {outcome: _share(n, requests) for outcome, n in summary["outcomes"].items()}
        given = summary["tokens"]["delivered_free"]
        cells |= {
            "run": {"text": run.title, "title": run.title, "sub": f"settings {run.digest}"},
            "given": {"text": tokens_short(given), "title": f"{count(given)} tokens"},
            "nobody": _share(requests - _estimated(summary), requests),
            "median": seconds(wait_of(scored, "p50_s")),
            "p95": seconds(wait_of(scored, "p95_s")),
            "expired": _share(summary["statuses"]["expired"], admitted),
            "over": _share(sum(row["over_limit"] for row in summary["unfinished"]), admitted),
            "better": BASELINE_CELL if change is None else ratio(change.gain_share),
            "worse": BASELINE_CELL if change is None else ratio(change.lose_share),
        }
        rows.append(Row(id=run.digest, cells=cells, pinned=change is None))
    return rows


# --- differences, waits, what did not finish, agreement ----------------------------------------------------------------

DIFFERENCE_COLUMNS: Final = (
    Column(key="request", label="Request", kind="name", brief=""),
    Column(key="what", label="How it fares", brief=""),
    Column(key="requester", label="Requester"),
    Column(key="size", label="Size asked", unit="tokens"),
    Column(key="tokens", label="Tokens more", right=True, brief="tokens"),
    Column(key="answer", label="Answer", right=True, brief=""),
    Column(key="before", label="Baseline"),
    Column(key="after", label="Now"),
)

DIFFERENCES: Final = {
    "longest_later": "Answered latest",
    "longest_sooner": "Answered soonest",
    "most_tokens_fewer": "Lost most tokens",
    "most_tokens_more": "Gained most tokens",
}


def answer_words(more_s: float | None) -> str:
    """Return by how much an answer comes sooner or later; one that comes in one run only has no such difference.

    >>> answer_words(-90.0), answer_words(700.0), answer_words(None)
    ('90 s sooner', '12 min later', '—')
    """
    if not more_s:
        return NOT_REPORTED if more_s is None else "the same"
    return f"{seconds(abs(more_s))} {'later' if more_s > 0 else 'sooner'}"


def difference_rows(change: Compared, *, each: int = 6) -> list[Row]:
    """Return the largest differences of a run from the baseline, of each kind the first few, without repeats."""
    rows: dict[str, Row] = {}
    for kind in DIFFERENCES:
        for found in change.figures[kind][:each]:
            answer = found["answer_s_more"]
            more = found["tokens_more"]
            rows.setdefault(
                found["request_id"],
                Row(
                    id=found["request_id"],
                    cells={
                        "request": name_cell(found["request_id"]),
                        "what": found["change"],
                        "requester": found["requester"].replace("_", " "),
                        "size": size_text(found["requested_size"]),
                        "tokens": f"{'+' if more > 0 else '−'}{count(abs(more))}" if more else "0",
                        "answer": answer_words(answer),
                        "before": found["baseline_outcome"],
                        "after": found["outcome"],
                    },
                ),
            )
    return list(rows.values())


WAIT_COLUMNS: Final = (
    Column(key="run", label="Run"),
    Column(key="requester", label="Requester"),
    Column(key="outcome", label="Outcome"),
    Column(key="requests", label="Started", unit="requests", right=True),
    Column(key="p50", label="Median", right=True),
    Column(key="p90", label="90 %", right=True),
    Column(key="p99", label="99 %", right=True),
    Column(key="full", label="Within the full wait", unit="of the started", right=True),
    Column(key="floor", label="Within the floor wait", unit="of the started", right=True),
)


def wait_rows(runs: Runs) -> list[Row]:
    """Return the queue waits of the requests that started, by run, requester and outcome."""
    rows = []
    for run, scored in runs:
        for row in waits_table(scored):
            everyone = row["requester"] is None
            cells = {
                "run": run.letter,
                "requester": "all" if everyone else row["requester"].replace("_", " "),
                "outcome": "all" if everyone else row["outcome"],
                "requests": count(row["requests"]),
                "p50": seconds(row["p50_s"]),
                "p90": seconds(row["p90_s"]),
                "p99": seconds(row["p99_s"]),
                "full": ratio(row["share_at_most_full"]),
                "floor": ratio(row["share_at_most_floor"]),
            }
            rows.append(Row(id=f"{run.letter} {row['requester']} {row['outcome']}", cells=cells, pinned=everyone))
    return rows


UNFINISHED_COLUMNS: Final = (
    Column(key="run", label="Run"),
    Column(key="outcome", label="Outcome"),
    Column(key="admitted", label="Admitted", unit="requests", right=True),
    Column(key="expired", label="Expired", unit="requests", right=True),
    Column(key="timed_out", label="Timed out", unit="requests", right=True),
    Column(key="over", label=f"Ran over {JOB_TIME_LIMIT_S:.0f} s", unit="requests", right=True),
    Column(key="full", label="Could not finish in full", unit="requests", right=True),
)


def unfinished_rows(runs: Runs) -> list[Row]:
    """Return by run and outcome what was admitted and did not, or could not, finish (A32)."""
    return [
        Row(
            id=f"{run.letter} {row['outcome']}",
            cells={
                "run": run.letter,
                "outcome": row["outcome"],
                "admitted": count(row["admitted"]),
                "expired": count(row["expired"]),
                "timed_out": count(row["timed_out"]),
                "over": count(row["over_limit"]),
                "full": count(row["full_size_over_limit"]),
            },
        )
        for run, scored in runs
        for row in scored.summary["unfinished"]
    ]


AGREEMENT_COLUMNS: Final = (
    Column(key="run", label="Run"),
    Column(key="recorded", label="Recorded"),
    Column(key="replayed", label="Replayed"),
    Column(key="requests", label="Requests", right=True),
    Column(key="share", label="Share", right=True),
)


def agreement_rows(runs: Runs) -> list[Row]:
    """Return recorded against replayed outcomes, run by run; nothing where the traffic records none."""
    rows = []
    for run, scored in runs:
        found = scored.summary["agreement"]
        for pair in found["pairs"] if found else ():
            cells = {
                "run": run.letter,
                "recorded": pair["recorded"],
                "replayed": pair["replayed"],
                "requests": count(pair["requests"]),
                "share": _share(pair["requests"], found["recorded"]),
            }
            same = pair["recorded"] == pair["replayed"]
            rows.append(Row(id=f"{run.letter} {pair['recorded']} {pair['replayed']}", cells=cells, pinned=same))
    return rows


def setting_rows(run: Run) -> list[tuple[str, str]]:
    """Return a run's settings that people ask for first, as name and words."""
    s = run.settings
    return [
        ("rule", RULES[s.rule]),
        ("ceiling", f"{count(s.ceiling_tokens)} tokens"),
        ("floor", f"{count(s.floor_tokens)} tokens"),
        ("full wait", seconds(s.wait_full_s)),
        ("floor wait", seconds(s.wait_floor_s)),
        ("assumed speed", f"{s.assumed_speed_tok_per_s:g} tok/s"),
        ("counts as ahead", "by queue order" if s.ahead == "queue_order" else "all that wait"),
        ("a refused client", CLIENTS[s.client]),
        ("a request lives", seconds(s.request_ttl_s)),
        ("a job ends", "never by time" if s.job_timeout_s is None else f"after {seconds(s.job_timeout_s)}"),
    ]
