"""The Replay page's editor of the fill rule: what no trace records, and the map of a trace's models to the fleet's."""

from collections.abc import Sequence

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.replay.fill_rule import CLIENT_SIZES, MAX_LENGTH_RULES, FillRule
from horde_policy.ui.address import read_state, say, seed, write_state
from horde_policy.ui.fields import left_empty, number_field
from horde_policy.ui.notices import say_here
from horde_policy.ui.replay_page import Opened
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.replay_state import ModelMap, map_from_text, map_text
from horde_policy.views.state import ViewState

__all__ = ["show_fill"]

FILL = "replay.fill"
"""The part that says itself what it did not take."""

SIZE_WORDS = {
    "tight": "what was used (tight)",
    "ladder": "the next usual size (ladder)",
    "service_cap": "one constant (service cap)",
    "client_setting": "each client's setting",
}
MODEL_WORDS = {
    "weighted": "one, as often as the fleet's statistics say",
    "any": "no model named",
    "mapped": "the trace's own, by the map below",
}


def show_fill(opened: Opened) -> None:
    """Show the fill rule, to be changed; a map of models only where the trace names any."""
    state = opened.state
    rule = FillRule.parsed(state.fill)
    published = opened.published
    with (
        st.popover(f"Fill rule: {rule.max_length.replace('_', ' ')}", icon=":material/edit_note:", key=FILL),
        st.form("replay.fill.form", border=False),
    ):
        st.markdown(
            "No trace says what was **asked**, by whom, or whether it could be paid. This rule assigns it, and decides much."
        )
        _seed(state, rule)
        st.selectbox("Size asked for", MAX_LENGTH_RULES, format_func=SIZE_WORDS.__getitem__, key="replay.fill.size")
        number_field("The constant (tokens)", 1, MAX_LENGTH_LIMIT_TOKENS, step=1, key="replay.fill.cap", help="Service cap.")
        sizes = "/".join(str(size) for size in CLIENT_SIZES)
        st.text_input(f"Weights of {sizes}", max_chars=80, key="replay.fill.weights", help="Client's setting.")
        offered = [name for name in MODEL_WORDS if name != "mapped" or published or rule.models == "mapped"]
        st.selectbox("Models asked for", offered, format_func=MODEL_WORDS.__getitem__, key="replay.fill.models")
        if "mapped" in offered:
            seed("replay.fill.map", map_text(state.replay.model_map or suggested(published, opened.most_asked)), in_popover=True)
            st.text_area(
                "Map: a trace's model = the fleet's",
                key="replay.fill.map",
                max_chars=10_000,
                help="A line for each model of the trace, as GPT-4 = koboldcpp/a | koboldcpp/b: any of those is taken. What "
                "stands here at first are the models most asked for, which means nothing: say what stands for what.",
            )
        with st.container(horizontal=True):
            for name, label in (
                ("anonymous", "Anonymous (%)"),
                ("shared", "Shared keys (%)"),
                ("pay", "Can pay (%)"),
                ("downgrade", "Allow a downgrade (%)"),
            ):
                number_field(label, 0, 100, step=1, key=f"replay.fill.{name}", width=150)
        say_here(FILL)
        st.form_submit_button("Apply", type="primary", on_click=_apply)


def _seed(state: ViewState, rule: FillRule) -> None:
    values: dict[str, object] = {
        "size": rule.max_length,
        "cap": rule.cap_tokens or 1000,
        "weights": "/".join(f"{w:g}" for w in rule.client_weights),
        "models": rule.models,
        "anonymous": round(rule.anonymous * 100),
        "shared": round(rule.shared_key * 100),
        "pay": round(rule.can_pay * 100),
        "downgrade": round(rule.allow_downgrade * 100),
    }
    for name, value in values.items():
        seed(f"replay.fill.{name}", value, in_popover=True)


def suggested(published: Sequence[str], most_asked: Sequence[str]) -> ModelMap:
    """Return a map to begin with: each model of a trace as one of those most asked for, in their order.

    >>> suggested(["GPT-4", "ChatGPT"], ["a"])
    (('GPT-4', ('a',)), ('ChatGPT', ('a',)))
    """
    if not most_asked:
        return ()
    return tuple((name, (most_asked[place % len(most_asked)],)) for place, name in enumerate(published))


def _apply() -> None:
    if left_empty((f"replay.fill.{name}" for name in ("cap", "anonymous", "shared", "pay", "downgrade")), told_at=FILL):
        return
    given = {name: st.session_state[f"replay.fill.{name}"] for name in ("size", "cap", "weights", "models")}
    shares = {name: int(st.session_state[f"replay.fill.{name}"]) / 100 for name in ("anonymous", "shared", "pay", "downgrade")}
    size = str(given["size"])
    tail = {"service_cap": f":{given['cap']}", "client_setting": f":{given['weights']}"}.get(size, "")
    text = (
        f"max_length={size}{tail},models={given['models']},requester={shares['anonymous']:g}/{shares['shared']:g},"
        f"can_pay={shares['pay']:g},allow_downgrade={shares['downgrade']:g}"
    )
    try:
        rule = FillRule.parsed(text)
        model_map = map_from_text(str(st.session_state["replay.fill.map"])) if rule.models == "mapped" else ()
    except InputError as error:
        say(f"The fill rule stays: {error}.", at=FILL)
        return
    state, _ = read_state()
    write_state(fill=str(rule), replay=state.replay.changed(model_map=model_map))
