"""The review as plain values for machines: what the commands print with ``--json``."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from horde_policy.review.cells import rule_counts
from horde_policy.review.exported import Exported
from horde_policy.review.finding import Finding
from horde_policy.review.findings import Week
from horde_policy.review.sampling import Bounds, Share
from horde_policy.review.verdict import Verdict
from horde_policy.review.whatif import WhatIf
from horde_policy.settings import AllowanceSettings

__all__ = ["exported_document", "finding_document", "plain", "verdict_document", "week_document", "what_if_document"]


def plain(value: Any) -> Any:
    """Return a value as JSON takes it: bounds as ``[low, high]``, instants as ISO 8601, infinity as ``+Inf``, frames as rows.

    >>> plain({"n": Bounds(1, 2), "at": math.inf, "frame": pl.DataFrame({"a": [1]})})
    {'n': [1, 2], 'at': '+Inf', 'frame': [{'a': 1}]}
    """
    if isinstance(value, Bounds):
        return [plain(value.low), plain(value.high)]
    if isinstance(value, Share):
        return _share(value)
    if isinstance(value, pl.DataFrame):
        return [plain(row) for row in value.to_dicts()]
    if isinstance(value, WhatIf):
        return what_if_document(value)
    if isinstance(value, Verdict):
        return verdict_document(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float) and math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return value


def _share(share: Share) -> dict[str, Any]:
    return {
        "share": [share.low, share.high],
        "interval_95": [share.sampling_low, share.sampling_high],
        "count": plain(share.part),
        "n": plain(share.total),
        "design_effect": share.design_effect,
    }


def exported_document(exported: Exported, settings: AllowanceSettings) -> dict[str, Any]:
    """Return where the figures come from, and what is wrong with the data."""
    return {
        "title": exported.title,
        "synthetic": exported.synthetic,
        "range": plain(exported.covered),
        "decisions": plain(exported.counted),
        "counted_before": plain(exported.before),
        "one_scrape": exported.one_scrape,
        "uncovered_s": exported.uncovered_s,
        "uncovered_processes": exported.uncovered_processes,
        "settings": {"digest": settings.digest(), "differences": settings.differences()},
        "files": [plain(file) for file in exported.files],
        "left_out": _left_out(exported),
        "instances": list(exported.instances),
        "problems": [plain(problem) for problem in exported.problems],
        "cells": plain(rule_counts(exported.decisions, settings)),
    }


def _left_out(exported: Exported) -> list[dict[str, Any]]:
    """Return what the readers left out of each file: why, of what, and how many."""
    files = () if exported.report is None else exported.report.files
    return [{"file": file.name, **plain(left)} for file in files for left in file.skipped]


def what_if_document(answer: WhatIf) -> dict[str, Any]:
    """Return a what-if: the settings, each outcome before and after, and how much is undecided."""
    return {
        "ceiling_tokens": answer.changed.ceiling_tokens,
        "floor_tokens": answer.changed.floor_tokens,
        "n": plain(answer.counted),
        "before": plain(answer.before),
        "after": plain(answer.after),
        "undecided": plain(answer.undecided),
        "undecided_share": answer.undecided_share,
        "contradictory": plain(answer.contradictory),
        "holds_under_the_allowance": plain(answer.holds_seen),
    }


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict on funded waits with everything it rests on."""
    p = verdict.funded.p
    return {
        "over_s": verdict.over_s,
        "above": verdict.above,
        "answer": verdict.answer,
        "hidden": verdict.hidden,
        "share_over": plain(verdict.share_over),
        "share_over_interval_95": plain(verdict.share_over_sampling),
        "times_the_requests": plain(verdict.times_the_requests),
        "decided_up_to_ratio": plain(verdict.decided_up_to_ratio),
        "point": plain(verdict.point),
        "point_off_by": verdict.point_off_by,
        "point_refuted_by": plain(verdict.point_refuted_by),
        "registered_over": plain(verdict.registered),
        "assignments": plain(verdict.funded.assignments),
        "held_nothing": None
        if p is None
        else {
            "share": [p.low, p.high],
            "by_decisions": plain(p.by_decisions),
            "ratio": plain(p.ratio),
        },
        "distribution": plain(verdict.funded.rows),
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """Return a finding; its sentence is the views' business."""
    return {
        "code": finding.code,
        "section": finding.section,
        "severity": finding.severity,
        "weight": finding.weight,
        "figure": plain(finding.share),
        "n": plain(finding.n),
        "figures": plain(finding.figures),
        "page": finding.target.page,
        "state": plain(finding.target.state),
    }


def week_document(week: Week) -> dict[str, Any]:
    """Return a reviewed week: where it comes from, its findings in order, its sections and why some have no data."""
    return {
        **exported_document(week.exported, week.settings),
        "findings": [finding_document(finding) for finding in week.findings],
        "sections": {
            section.code: {"findings": [finding.code for finding in section.findings], "no_data": section.no_data}
            for section in week.sections
        },
        "mean_allowance_tokens": None if week.mean_allowance is None else plain(week.mean_allowance.tokens),
    }
