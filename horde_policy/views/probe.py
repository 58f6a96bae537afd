"""What a probe said, line by line: the server's answer, ours beside it, and why they may differ; all of it plain text."""

from horde_policy.board.probe import ProbeResult
from horde_policy.views.text import count_of, instant, visible

__all__ = ["probe_lines"]

_AGREES = {None: "The two cannot be compared.", True: "Both say the same.", False: "They differ:"}


def probe_lines(result: ProbeResult) -> tuple[str, ...]:
    """Return the lines of a probe's result; the server's sentence in them is hostile text, made visible."""
    answer, ours = result.answer, result.ours
    code = f"{answer.status}{f', {visible(answer.rc)}' if answer.rc else ''}"
    stated = "" if answer.stated_tokens is None else f", and states {count_of(answer.stated_tokens, 'token')}"
    price = "" if answer.kudos is None else f", at a price of {answer.kudos:g} kudos"
    lines = [f"The server ({instant(answer.at)}): {answer.outcome.replace('_', ' ')} ({code}){stated}{price}."]
    if answer.message:
        lines.append(visible(answer.message))
    if ours is not None:
        known = ours.allowance_tokens is not None
        allowed = (
            f"an allowance of {count_of(ours.allowance_tokens or 0, 'token')}" if known else "an allowance that is not known"
        )
        lines.append(f"Ours: {ours.outcome.replace('_', ' ')}, {allowed}.")
    lines.append(_AGREES[result.agrees])
    return (*lines, *(visible(reason) for reason in result.reasons))
