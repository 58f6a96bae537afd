"""What an import as a whole says about its processes: when they were seen, their restarts and gaps, and what is doubtful."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from horde_policy.errors import Problem, shown
from horde_policy.imports.counts import Tally
from horde_policy.imports.report import FileReport, Gap, ImportReport, InstanceReport
from horde_policy.imports.samples import NO_TIME, UNTIMED, Samples, group_of, numbered_instances
from horde_policy.imports.series import Grown

__all__ = ["doubts", "overview"]

GAP_STEPS = 2.5
"""A time without a look counts as a gap from so many usual steps on."""

COUNTS_AGREE_WITHIN = 0.01
"""A histogram's count and its buckets are not written in one moment; what is further apart is wrong."""

MOST_LAYOUTS = 20
MOST_GAPS = 50

FINE_STEP_S = 60.0
"""The production server exports this often (horde.md §7.1): finer looks see every time that a series begins again."""


def overview(samples: Samples, grown: Grown, files: tuple[FileReport, ...], *, one_scrape: bool) -> ImportReport:
    """Return the report of an import: its files, processes, bucket layouts and uncovered time."""
    runs = samples.runs.with_columns(
        pl.Series("instance", [key.instance for key in samples.keys], dtype=pl.String)[samples.runs["sid"].to_numpy()],
        pl.Series("delta", [key.temporality == "delta" for key in samples.keys], dtype=pl.Boolean)[
            samples.runs["sid"].to_numpy()
        ],
    ).filter(pl.col("t_from") != UNTIMED)
    numbers = numbered_instances(samples)
    steps = grown.rows.steps()
    instances = []
    for (name,), own in sorted(runs.group_by("instance"), key=lambda item: str(item[0][0])):
        number = numbers[str(name)]
        step = steps.get(number) or _delta_step(own)
        instances.append(_instance(str(name), number, own, step, samples, grown))
    first, last = runs.select(pl.col("t_from").min(), pl.col("t_to").max()).row(0) if runs.height else (None, None)
    return ImportReport(
        files=files,
        instances=tuple(instances),
        layouts=_bucket_layouts(samples, grown),
        first=_instant(first),
        last=_instant(last),
        one_scrape=one_scrape,
        uncovered_s=sum(one.lost_s for one in instances),
    )


def _delta_step(runs: pl.DataFrame) -> int | None:
    lengths = (
        runs.filter(pl.col("delta") & (pl.col("start") != NO_TIME)).select((pl.col("t_to") - pl.col("start")).median()).item()
    )
    return None if lengths is None else int(lengths)


def _instance(name: str, number: int, runs: pl.DataFrame, step: int | None, samples: Samples, grown: Grown) -> InstanceReport:
    restarts = grown.restarts
    units = np.unique(grown.rows.unit[grown.rows.instance == number]).tolist() if grown.rows.sid.size else []
    own = sum(len(restarts.own.get(unit, ())) for unit in units)
    first, last = runs.select(pl.col("t_from").min(), pl.col("t_to").max()).row(0)
    gaps = _gaps(runs, step)
    kinds = {samples.keys[sid].temporality for sid in runs["sid"].unique()}
    return InstanceReport(
        instance=name,
        first=_instant(first),
        last=_instant(last),
        step_s=None if step is None else step / 1e6,
        temporality=tuple(sorted(kinds)),
        restarts=tuple(when for one in restarts.whole.get(number, ()) if (when := _instant(one.seen)) is not None),
        own_restarts=own,
        gaps=tuple(sorted(sorted(gaps, key=_length_s, reverse=True)[:MOST_GAPS], key=lambda gap: gap.start)),
        gap_count=len(gaps),
        gap_s=sum(map(_length_s, gaps)),
        lost_s=sum(_length_s(gap) for gap in gaps if gap.lost),
    )


def _length_s(gap: Gap) -> float:
    return (gap.end - gap.start) / timedelta(seconds=1)


def _gaps(runs: pl.DataFrame, step: int | None) -> tuple[Gap, ...]:
    """Return the times that no run covers. A delta covers its interval, a cumulative value the time since the look before it."""
    if step is None or step <= 0:
        return ()
    begin = pl.when("delta").then(pl.when(pl.col("start") == NO_TIME).then("t_from").otherwise("start")).otherwise("t_from")
    covered = runs.select(begin.alias("begin"), pl.col("t_to").alias("end"), "delta").unique().sort("begin", "end")
    reach = pl.col("end").cum_max().shift(1)
    open_ = covered.with_columns(reach.alias("reach")).filter(
        (pl.col("begin") - pl.col("reach")) > pl.when("delta").then(0).otherwise(GAP_STEPS * step)
    )
    gaps = []
    for begin_us, reach_us, delta in open_.select("begin", "reach", "delta").iter_rows():
        start, end = _instant(reach_us), _instant(begin_us)
        if start is not None and end is not None:
            gaps.append(Gap(start, end, lost=bool(delta)))
    return tuple(gaps)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None or micros in {NO_TIME, UNTIMED} else datetime.fromtimestamp(micros / 1e6, UTC)


def _bucket_layouts(samples: Samples, grown: Grown) -> dict[str, tuple[tuple[float, ...], ...]]:
    """Return the sets of bucket bounds that each kind of wait was counted in; they may change at a release (exports.md 14)."""
    found: dict[str, dict[object, set[float]]] = {}
    for sid, layout in grown.layouts.select("sid", "layout").iter_rows():
        key = samples.keys[sid]
        if key.part == "le" and key.upper_s is not None:
            found.setdefault(key.family, {}).setdefault((group_of(key), layout), set()).add(key.upper_s)
    for key in samples.keys:
        if key.part == "bin" and key.upper_s is not None:
            found.setdefault(key.family, {}).setdefault("bins", set()).add(key.upper_s)
    return {
        family: tuple(sorted({tuple(sorted(bounds)) for bounds in groups.values()}))[:MOST_LAYOUTS]
        for family, groups in sorted(found.items())
    }


def doubts(samples: Samples, grown: Grown, tally: Tally, report: ImportReport) -> tuple[Problem, ...]:
    """Return what is doubtful in the data as a whole."""
    found = []
    names = {number: name for name, number in numbered_instances(samples).items()}
    for number in sorted(grown.restarts.contested):
        text = (
            "its series have several values at one time, as a rule: several processes write the same series, and no label or "
            "start time tells them apart; counts lie between nothing and this"
        )
        found.append(Problem("interleaved", _called(names[number]), text))
    for number in sorted(grown.restarts.interleaved - grown.restarts.contested):
        text = "so many restarts that several processes must write the same series in turn: counts lie between nothing and this"
        found.append(Problem("interleaved", _called(names[number]), text))
    if not report.understood and report.files:
        text = "none of the three series was found: " + "; ".join(f"{file.name} is {file.format}" for file in report.files[:5])
        found.append(Problem("nothing_understood", "all files", text))
    if any(skipped.reason.startswith("a series without a name") for file in report.files for skipped in file.skipped):
        text = (
            "series without a name come of increase(), rate() or sum by: a mapping must say what they count, or they are left out"
        )
        found.append(Problem("needs_mapping", "all files", text))
    found.extend(_forgetting(samples, grown, report))
    if report.one_scrape:
        text = "every process was looked at once: the counts are totals since its start, over a time that is not known"
        found.append(Problem("one_scrape", "all files", text, "note"))
    if tally.disorder:
        found.append(
            Problem("bucket_disorder", "waits", f"{tally.disorder} times a bucket grew less than a smaller one; set equal")
        )
    if tally.repeated:
        text = f"{tally.repeated} values are a second record of what another form counts at the same time; they were left out"
        found.append(Problem("two_forms", "all files", text, "note"))
    if report.uncovered_s:
        lost = {one.instance: one.lost_s for one in report.instances if one.lost_s}
        text = f"no export covers {report.uncovered_s:.0f} s"
        if len(lost) > 1:
            most = max(lost, key=lambda instance: lost[instance])
            text += f", added up over {len(lost)} processes; the most of one is {lost[most]:.0f} s, of {_called(most)}"
        text += ": what was counted then is lost, or nothing was"
        found.append(Problem("uncovered", "deltas", text))
    found.extend(_counts_apart(samples, grown))
    found.extend(_same_process(samples))
    return tuple(found)


def _called(instance: str) -> str:
    return shown(instance) if instance else "series without an instance"


def _forgetting(samples: Samples, grown: Grown, report: ImportReport) -> list[Problem]:
    """Return what a collector that forgets silent series does: in fine steps nothing is lost, in coarse ones counts lack."""
    found = []
    numbers = numbered_instances(samples)
    on_grid = set(np.unique(grown.rows.instance[grown.rows.lookback]).tolist())
    for one in report.instances:
        if not one.own_restarts or numbers[one.instance] in grown.restarts.interleaved | grown.restarts.contested:
            continue
        text = f"{one.own_restarts} times a series began again from zero while its process went on: silent series are forgotten"
        found.append(Problem("forgotten", _called(one.instance), text, "note"))
        if numbers[one.instance] in on_grid and one.step_s is not None and one.step_s > FINE_STEP_S:
            text = (
                f"looks {one.step_s:.0f} s apart miss what such series counted in between: the counts are too low; ask every 60 s"
            )
            found.append(Problem("too_coarse", _called(one.instance), text))
    return found


def _counts_apart(samples: Samples, grown: Grown) -> list[Problem]:
    """Return a problem where histograms say that they counted another number than their buckets hold."""
    many = grown.restarts.interleaved | grown.restarts.contested
    numbers = numbered_instances(samples)
    groups: dict[object, int] = {}
    rows = []
    for sid, key in enumerate(samples.keys):
        buckets = key.part == "bin" or key.part == "native" or (key.part == "le" and key.upper_s == np.inf)
        if key.family != "decisions" and numbers[key.instance] not in many and (buckets or key.part == "count"):
            group = groups.setdefault((group_of(key), key.temporality), len(groups))
            rows.append((sid, group, key.part, shown(key.instance) if key.instance else key.family))
    schema = {"sid": pl.UInt32, "group": pl.Int64, "part": pl.String, "whose": pl.String}
    of_group = grown.frame.join(pl.DataFrame(rows, schema=schema, orient="row"), on="sid")
    total = {name: pl.col("high").filter(pl.col("part") == name).sum() for name in ("le", "bin", "native", "count")}
    sums = of_group.group_by("group").agg(pl.col("whose").first(), **total)
    held = pl.when(pl.col("le") > 0).then("le").otherwise(pl.max_horizontal("bin", "native"))
    apart = sums.with_columns(held=held).filter(
        pl.col("group").is_in([group for _, group, part, _ in rows if part == "count"])
        & ((pl.col("count") - pl.col("held")).abs() > (COUNTS_AGREE_WITHIN * pl.col("held")).clip(0.5))
    )
    if not apart.height:
        return []
    count, held = apart.select(pl.col("count").sum(), pl.col("held").sum()).row(0)
    text = f"histograms say that they counted {count:,.0f}, and their buckets hold {held:,.0f}: what the buckets hold is used"
    return [Problem("count_and_buckets", str(apart.sort("group")["whose"][0]), text)]


def _same_process(samples: Samples) -> list[Problem]:
    """Return a problem where an OTLP record and a Prometheus record overlap in time and name no process in common.

    They may be two records of one process, which would then be counted twice.
    """
    runs = samples.runs.filter(pl.col("t_from") != UNTIMED)
    if not runs.height:
        return []
    instance = pl.Series("instance", [key.instance for key in samples.keys], dtype=pl.String)[runs["sid"].to_numpy()]
    kinds = runs.with_columns(instance, ((pl.col("start") != NO_TIME) & ~pl.col("lookback")).alias("otlp"))
    spans = kinds.group_by("instance", "otlp").agg(pl.col("t_from").min(), pl.col("t_to").max())
    started, plain = (spans.filter(pl.col("otlp") == kind) for kind in (True, False))
    pairs = started.join(plain, how="cross").filter(
        (pl.col("instance") != pl.col("instance_right"))
        & (pl.col("t_from") < pl.col("t_to_right"))
        & (pl.col("t_from_right") < pl.col("t_to"))
    )
    known = set(started["instance"]) & set(plain["instance"])
    for one, other in pairs.select("instance", "instance_right").sort("instance", "instance_right").iter_rows():
        if one not in known and other not in known:
            text = f"and {shown(other)} overlap in time: if they are two records of one process, everything is counted twice"
            return [Problem("same_process", shown(one), text)]
    return []
