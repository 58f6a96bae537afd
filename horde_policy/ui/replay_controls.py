"""The Replay page's choices: traffic, range, load, fill rule, fleet and upload; each writes the address."""

from collections.abc import Mapping
from datetime import timedelta

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.imports.trace_frame import Trace
from horde_policy.replay.fill import MOST_COPIES
from horde_policy.replay.fill_rule import CLIENT_SIZES, MAX_LENGTH_RULES, FillRule
from horde_policy.ui import uploads
from horde_policy.ui.address import say, seed, write_state
from horde_policy.ui.replay_desk import Desk
from horde_policy.ui.replay_inputs import BUNDLED, Drawn, drawn_of
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.parameters import hours_from_text, hours_text
from horde_policy.views.state import ViewState
from horde_policy.views.text import count, escape_markdown, visible

__all__ = ["show_choices", "upload_names"]

MOST_DAYS_LISTED = 14
MOST_UPLOAD_MB = 200
FAILED = "replay.upload-failed"
SIZE_WORDS = {
    "tight": "what was used (tight)",
    "ladder": "the next usual size (ladder)",
    "service_cap": "one constant (service cap)",
    "client_setting": "each client's setting",
}


def upload_names() -> dict[str, str]:
    """Return key → name of the files that this session has uploaded."""
    return {upload.key: upload.name for upload in uploads.listed("traffic")}


def understood(trace: Trace) -> tuple[str, str]:
    """Return what an uploaded file was understood as, and what of it was left out, each in one line."""
    refused = ", ".join(f"{count(rows)} rows: {reason}" for reason, rows in trace.refused.items() if rows)
    read = f"{trace.format.replace('_', ' ')}: {count(trace.frame.height)} requests of {count(trace.rows_read)} rows"
    return read, refused or "everything was understood"


def show_choices(state: ViewState, desk: Desk, sources: Mapping[str, str], length: timedelta | None) -> None:
    """Show what is replayed on what.

    Parameters
    ----------
    state
        What the address says.
    desk
        Keeps uploads.
    sources
        Key → title of the sources that can give a fleet.
    length
        How long the traffic's trace is; null if it is not there.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _traffic(state)
        _range(state, length)
        _load(state)
        _fill(state)
        _fleet(state, sources)
        _upload(desk)
    failed = st.session_state.get(FAILED)
    if failed:
        st.error(escape_markdown(failed), title="The file cannot be replayed", icon=":material/upload_file:")


def start_of(traffic: str) -> dict[str, object]:
    """Return the range and the load that a traffic starts with: the demo's own, else all of it once."""
    plain = ViewState()
    if traffic == plain.traffic:
        return {"traffic": traffic, "hours": plain.hours, "copies": plain.copies, "keep_percent": plain.keep_percent}
    return {"traffic": traffic, "hours": (), "copies": 1, "keep_percent": 100}


def _traffic(state: ViewState) -> None:
    key = "replay.traffic"
    titles = {name: bundled.title for name, bundled in BUNDLED.items()}
    titles |= {name: visible(title) for name, title in upload_names().items()}
    titles.setdefault(state.traffic, state.traffic)
    seed(key, state.traffic)
    st.selectbox(
        "Traffic",
        list(titles),
        format_func=lambda name: titles.get(name, name),
        key=key,
        on_change=lambda: write_state(**start_of(st.session_state[key])),
        help="The requests that are sent once more. "
        + " ".join(f"{bundled.title}: {bundled.text}." for bundled in BUNDLED.values()),
        width=200,
    )


def _range(state: ViewState, length: timedelta | None) -> None:
    key = "replay.hours"
    hours = 0 if length is None else length.total_seconds() / 3600
    days = [f"{24 * day}-{24 * day + 24}" for day in range(min(MOST_DAYS_LISTED, int(hours // 24) + 1))] if hours > 24 else []
    current = hours_text(state.hours)
    words = {"all": "all of it"} | {text: f"day {number}" for number, text in enumerate(days, 1)}

    def chosen() -> None:
        try:
            write_state(hours=hours_from_text(str(st.session_state[key])))
        except InputError as error:
            say(f"The range stays: {error}.", again=key)

    seed(key, current)
    st.selectbox(
        "Range (hours)",
        [*dict.fromkeys(["all", *days, current])],
        format_func=lambda text: f"{words[text]} ({text} h)" if text in days else words.get(text, f"{text} h"),
        key=key,
        on_change=chosen,
        accept_new_options=True,
        help="Hours after the first request, from and to; choose a day or type as 24-48.",
        width=145,
    )


def _load(state: ViewState) -> None:
    label = f"Load × {state.copies}" + (f" · {state.keep_percent} %" if state.keep_percent < 100 else "")

    def chosen() -> None:
        write_state(
            copies=min(MOST_COPIES, max(1, int(st.session_state["replay.copies"]))),
            keep_percent=min(100, max(1, int(st.session_state["replay.keep"]))),
        )

    with st.popover(label, icon=":material/speed:", key="replay.load"):
        seed("replay.copies", state.copies)
        st.number_input(
            "Copies superposed",
            1,
            MOST_COPIES,
            step=1,
            key="replay.copies",
            on_change=chosen,
            help="More load is made of copies laid over each other, moved by up to 45 minutes: a synthetic load. Time is never "
            "stretched, since 60 s and 300 s would mean something else.",
        )
        seed("replay.keep", state.keep_percent)
        st.slider(
            "Kept of each copy (%)", 1, 100, key="replay.keep", on_change=chosen, help="Less load: whole clients are left out."
        )


def _fill(state: ViewState) -> None:
    rule = FillRule.parsed(state.fill)
    with (
        st.popover(f"Fill rule: {rule.max_length.replace('_', ' ')}", icon=":material/edit_note:", key="replay.fill"),
        st.form("replay.fill.form", border=False),
    ):
        st.markdown(
            "No trace says what was **asked**, by whom, or whether it could be paid. This rule assigns it, and decides much."
        )
        values: dict[str, object] = {
            "size": rule.max_length,
            "cap": rule.cap_tokens or 1000,
            "weights": "/".join(f"{w:g}" for w in rule.client_weights),
            "models": rule.models if rule.models != "mapped" else "any",
            "anonymous": round(rule.anonymous * 100),
            "shared": round(rule.shared_key * 100),
            "pay": round(rule.can_pay * 100),
            "downgrade": round(rule.allow_downgrade * 100),
        }
        for name, value in values.items():
            seed(f"replay.fill.{name}", value)
        st.selectbox("Size asked for", MAX_LENGTH_RULES, format_func=SIZE_WORDS.__getitem__, key="replay.fill.size")
        st.number_input("The constant (tokens)", 1, MAX_LENGTH_LIMIT_TOKENS, step=1, key="replay.fill.cap", help="Service cap.")
        sizes = "/".join(str(size) for size in CLIENT_SIZES)
        st.text_input(f"Weights of {sizes}", max_chars=80, key="replay.fill.weights", help="Client's setting.")
        st.selectbox(
            "Models asked for",
            ("weighted", "any"),
            format_func={"weighted": "one, as often as the fleet's statistics say", "any": "no model named"}.__getitem__,
            key="replay.fill.models",
        )
        with st.container(horizontal=True):
            for name, label in (
                ("anonymous", "Anonymous (%)"),
                ("shared", "Shared keys (%)"),
                ("pay", "Can pay (%)"),
                ("downgrade", "Allow a downgrade (%)"),
            ):
                st.number_input(label, 0, 100, step=1, key=f"replay.fill.{name}", width=150)
        st.form_submit_button("Apply", type="primary", on_click=_apply_fill)


def _apply_fill() -> None:
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
    except InputError as error:
        say(f"The fill rule stays: {error}.")
        return
    write_state(fill=str(rule))


def _fleet(state: ViewState, sources: Mapping[str, str]) -> None:
    key = "replay.fleet"
    drawn = Drawn()
    try:
        drawn = drawn_of(state.fleet) or drawn
        current = state.fleet
    except InputError:
        current = "source"
    words = {"source": "the source's workers now", **sources}
    words[drawn.text] = f"drawn: {drawn.workers} workers, {drawn.models} models (synthetic)"
    words.setdefault(current, current)
    seed(key, current)
    st.selectbox(
        "Fleet",
        list(words),
        format_func=lambda name: words.get(name, name),
        key=key,
        on_change=lambda: write_state(fleet=st.session_state[key]),
        help="The workers as they stand in a snapshot, online throughout; as the history recorded them, coming and going, moved "
        "to the traffic's first day; or drawn from a few numbers and a seed.",
        width=215,
    )
    if current.startswith("drawn/"):
        _drawn(drawn)


def _drawn(drawn: Drawn) -> None:
    with st.popover("Drawn fleet", icon=":material/casino:", key="replay.drawn"), st.form("replay.drawn.form", border=False):
        fields = (
            ("workers", "Workers", 0, 5_000, drawn.workers),
            ("models", "Models", 1, 500, drawn.models),
            ("median", "Median speed (tok/s)", 0.5, 10_000.0, drawn.speed_median_tok_per_s),
            ("p95", "95th percentile of the speed (tok/s)", 0.5, 10_000.0, drawn.speed_p95_tok_per_s),
            ("seed", "Seed", 0, 1_000_000, drawn.seed),
        )
        for name, label, least, most, value in fields:
            seed(f"replay.drawn.{name}", value)
            # an address may say more than the control would
            st.number_input(label, min(least, value), max(most, value), key=f"replay.drawn.{name}")
        st.form_submit_button("Apply", type="primary", on_click=_apply_drawn)


def _apply_drawn() -> None:
    workers, models, median, p95, chosen_seed = (
        st.session_state[f"replay.drawn.{name}"] for name in ("workers", "models", "median", "p95", "seed")
    )
    wanted = Drawn(
        workers=int(workers), models=int(models), speed_median_tok_per_s=median, speed_p95_tok_per_s=p95, seed=int(chosen_seed)
    )
    write_state(fleet=wanted.text)


def _upload(desk: Desk) -> None:
    def taken() -> None:
        file = st.session_state["replay.upload"]
        if file is None:
            st.session_state[FAILED] = None
            return
        segment = int(st.session_state["replay.segment"])
        try:
            rebuilt_with = int(st.session_state["replay.rebuilt-with"])
            key, trace = desk.library.add(file.name, file.getvalue(), segment=segment or None, seed=rebuilt_with)
        except InputError as error:
            st.session_state[FAILED] = str(error)
            return
        st.session_state[FAILED] = None
        uploads.remember(uploads.Upload(key, "traffic", file.name, *understood(trace)))
        write_state(**start_of(key))

    with st.popover("Upload", icon=":material/upload:", key="replay.uploading"):
        st.file_uploader(
            "A request log",
            key="replay.upload",
            on_change=taken,
            max_upload_size=MOST_UPLOAD_MB,
            help="CSV, JSON lines or Parquet with at least created and max_length (or output_tokens); Azure, BurstGPT, Mooncake, "
            "RAGPulse, Qwen-Bailian and Vidur traces as published; AI Horde's server log; or exported decision counts, in any "
            "form that the Decisions page reads, from which requests are rebuilt. Kept in the server's memory alone.",
        )
        st.number_input(
            "Part, where a file's clock starts again (0: the file has one)", 0, 20, step=1, key="replay.segment", on_change=taken
        )
        seed("replay.rebuilt-with", 1)
        st.number_input(
            "Seed, where a file holds counts and requests are rebuilt",
            0,
            1_000_000,
            step=1,
            key="replay.rebuilt-with",
            on_change=taken,
            help="Times within intervals and sizes within buckets are drawn; another seed shows what the drawing decides.",
        )
