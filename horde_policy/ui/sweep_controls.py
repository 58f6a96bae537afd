"""The Sweep page's choice of a sweep: the bundled one, those of this session, an upload, and the form for a new one."""

from collections.abc import Mapping
from typing import Final

import streamlit as st

from horde_policy.errors import HordePolicyError
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.axes import SETTINGS
from horde_policy.sweep.grid import parse_grid
from horde_policy.ui import live, replay_desk, uploads
from horde_policy.ui.address import read_state, run_again, say, seed, write_state
from horde_policy.ui.fields import number_field
from horde_policy.ui.notices import say_here
from horde_policy.ui.replay_inputs import BUNDLED
from horde_policy.ui.replay_upload import upload_names
from horde_policy.ui.sweep_desk import DEMO, SweepDesk, run_key
from horde_policy.ui.sweep_inputs import Wanted, inputs_and_plan, requests_of
from horde_policy.views.replay_runs import CLIENTS, RULES
from horde_policy.views.state import ViewState
from horde_policy.views.sweep_form import FIELDS, field_texts, grid_of, problem_field
from horde_policy.views.sweep_link import ORIGIN
from horde_policy.views.sweep_state import DEMO_FLEET, MOST_COPIES, SweepAsked
from horde_policy.views.sweep_words import SETTING_WORDS, setting_value
from horde_policy.views.text import count, count_of, escape_markdown, visible
from horde_policy.views.uploads import sweep_understood

__all__ = ["go_on", "show_sweeps", "write_asked"]

MOST_UPLOAD_MB = 50
NAMES = "sweep.names"
WANTED = "sweep.wanted"
FAILED = "sweep.upload-failed"
NEW = "sweep.new"
"""The part that says itself what it did not take: typing in it runs it alone."""

FOUR: Final = ("ceiling_tokens", "floor_tokens", "wait_full_s", "wait_floor_s")
MORE: Final = tuple(name for name in SETTINGS if name not in FOUR and name not in ("rule", "client"))
FIELD_WORDS: Final = {
    "load": ("Load", "1 is the traffic as it is; 0.5, 1, 1.5 tries three."),
    "seed": ("Seeds", "Each draws anew what the trace does not say: 0, 1, 2 tries three."),
    "days": ("Days kept", "Days of the traffic whose requests are scored; empty for all."),
    "fill": ("Fill rules, one a line", "What assigns what the trace does not say. It decides much: try two."),
    "points": ("Points", "How many are drawn."),
    "draw_seed": ("Seed of the draw", "The same seed draws the same points."),
}
HOW = "Values with a comma and a blank between, or a range: 256 to 1024 step 256, or 10 to 1000 count 5 log. Empty: as in force."


def _names() -> dict[str, str]:
    """Return key → title of the sweeps that this session started."""
    names: dict[str, str] = st.session_state.setdefault(NAMES, {})
    return names


def write_asked(**changes: object) -> None:
    """Write what is asked of the page to the address, with some fields replaced."""
    state, _ = read_state()
    write_state(sweep=state.sweep.changed(**changes))


def show_sweeps(state: ViewState, desk: SweepDesk, sources: Mapping[str, str]) -> None:
    """Show which sweep is looked at, the upload, and the form for a new one."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _chooser(state.sweep)
        _upload(desk)
    failed = st.session_state.get(FAILED)
    if failed and st.session_state.get("sweep.upload") is not None:
        st.error(escape_markdown(failed), title="The file holds no sweep", icon=":material/upload_file:")
    with st.expander("New sweep", icon=":material/add_chart:", key=NEW):
        st.fragment(_form)(desk, sources)


def _chooser(asked: SweepAsked) -> None:
    key = "sweep.which"
    own = _names() | {upload.key: upload.name for upload in uploads.listed("sweep")}
    titles = {DEMO: "Bundled demo (synthetic)"} | {name: visible(title) for name, title in own.items()}
    titles.setdefault(asked.sweep, asked.sweep)
    seed(key, asked.sweep)
    st.selectbox(
        "Sweep",
        list(titles),
        format_func=lambda name: titles.get(name, name),
        key=key,
        on_change=lambda: write_asked(sweep=st.session_state[key], point="", x="", y="", fixed=(), under="mean", held=None),
        help="The bundled sweep, those that you started here, and files that you uploaded.",
        width=380,
    )


def _upload(desk: SweepDesk) -> None:
    def taken() -> None:
        file = st.session_state["sweep.upload"]
        st.session_state[FAILED] = None
        if file is None:
            return
        try:
            key = desk.add(file.name, file.getvalue())
        except HordePolicyError as error:
            st.session_state[FAILED] = str(error)
            return
        sweep = desk.sweep(key)
        if sweep is not None:
            uploads.remember(uploads.Upload(key, "sweep", file.name, *sweep_understood(sweep)))
        write_asked(sweep=key, point="", x="", y="", fixed=(), under="mean", held=None)

    with st.popover("Upload", icon=":material/upload:", key="sweep.uploading"):
        st.file_uploader(
            "A sweep's file",
            type=["parquet"],
            key="sweep.upload",
            on_change=taken,
            max_upload_size=MOST_UPLOAD_MB,
            help="Parquet as the sweep command or this page writes it. Kept in the server's memory alone.",
        )


# --- a new sweep ---------------------------------------------------------------------------------------------------------


def _texts(asked: SweepAsked) -> dict[str, str]:
    """Return the form's texts for the address's grid; of one that cannot be read, those of the bundled sweep."""
    try:
        return field_texts(parse_grid(asked.grid))
    except HordePolicyError as error:
        st.warning(escape_markdown(f"The link's grid is left out: {error}."), icon=":material/info:")
        return field_texts(parse_grid(SweepAsked().grid))


def _typed() -> None:
    """Take the form's fields into the address, if they make a grid."""
    text, problems = _grid_typed()
    if not problems:
        write_asked(grid=text)


def _grid_typed() -> tuple[str, dict[str, str]]:
    """Return the grid of what stands in the fields now, and field → what is wrong with it."""
    try:
        text, _ = grid_of({name: _text_of(name) for name in FIELDS})
    except HordePolicyError as error:
        return "", {problem_field(error): str(error)}
    return text, {}


def _text_of(name: str) -> str:
    value = st.session_state.get(f"sweep.field.{name}", "")
    return ", ".join(value) if isinstance(value, list) else str(value or "")


def _choices(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _form(desk: SweepDesk, sources: Mapping[str, str]) -> None:
    """Show the form; typing in it runs the form alone, so that the results below it are not drawn again at each field."""
    state, _ = read_state()
    texts = _texts(state.sweep)
    for name in FIELDS:
        seed(f"sweep.field.{name}", _choices(texts[name]) if name in ("rule", "client") else texts[name])
    _, problems = _grid_typed()
    st.caption("Each combination of the values below is replayed on the whole traffic, and so are the settings in force. " + HOW)
    _what(state.sweep, sources)
    baseline = ReplaySettings.lifted(state.settings)
    places = st.columns(4, gap="small")
    for place, name in zip(places, FOUR, strict=True):
        with place:
            _field(name, texts, problems, placeholder=setting_value(name, getattr(baseline, name)))
    *below, last = st.columns([1, 1, 1, 1], gap="small")
    for place, name in zip(below, ("load", "seed", "days"), strict=True):
        with place:
            _field(name, texts, problems)
    with last:
        _search(texts)
    if _text_of("search") in ("random", "sobol"):
        left, right, _ = st.columns([1, 1, 2], gap="small")
        with left:
            _field("points", texts, problems)
        with right:
            _field("draw_seed", texts, problems)
    with st.expander("Rules, clients, fill rules and further settings", icon=":material/tune:"):
        _further(texts, problems, baseline)
    if "" in problems:
        st.error(escape_markdown(problems[""]), icon=":material/block:")
    _start(state, desk, blocked=bool(problems))


def _what(asked: SweepAsked, sources: Mapping[str, str]) -> None:
    """Show what is replayed: traffic and fleet, by the Replay page's names, and how often the traffic is laid over itself."""
    titles = {name: bundled.title for name, bundled in BUNDLED.items()} | {k: visible(v) for k, v in upload_names().items()}
    titles.setdefault(asked.traffic, asked.traffic)
    fleets = {DEMO_FLEET: "drawn: 8 workers, 3 models (synthetic)", **sources}
    fleets.setdefault(asked.fleet, asked.fleet)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed("sweep.traffic", asked.traffic)
        st.selectbox(
            "Traffic", list(titles), format_func=lambda k: titles.get(k, k), key="sweep.traffic", width=240,
            on_change=lambda: write_asked(traffic=st.session_state["sweep.traffic"], copies=1),
            help="The bundled traces, and what you uploaded on the Replay page.",
        )  # fmt: skip
        seed("sweep.copies", asked.copies)
        number_field(
            "Copies laid over each other", 1, MOST_COPIES, step=1, key="sweep.copies", width=190,
            on_change=lambda: write_asked(copies=int(st.session_state["sweep.copies"])), told_at=NEW,
            help="What a load of 1 is: so many copies, moved by up to 45 minutes. More than one is a synthetic load.",
        )  # fmt: skip
        seed("sweep.fleet", asked.fleet)
        st.selectbox(
            "Fleet", list(fleets), format_func=lambda k: fleets.get(k, k), key="sweep.fleet", width=280,
            on_change=lambda: write_asked(fleet=st.session_state["sweep.fleet"]),
            help="A drawn fleet, or a source's workers as they stand now, online throughout.",
        )  # fmt: skip
    say_here(NEW)


def _field(name: str, texts: Mapping[str, str], problems: Mapping[str, str], placeholder: str = "") -> None:
    label, unit = SETTING_WORDS[name] if name in SETTING_WORDS else (FIELD_WORDS[name][0], "")
    key = f"sweep.field.{name}"
    seed(key, texts[name])
    st.text_input(
        f"{label} ({unit})" if unit else label,
        key=key,
        on_change=_typed,
        placeholder=placeholder,
        max_chars=300,
        help=FIELD_WORDS[name][1] if name in FIELD_WORDS else HOW,
    )
    if name in problems:
        st.error(escape_markdown(problems[name]), icon=":material/block:")


def _search(texts: Mapping[str, str]) -> None:
    key = "sweep.field.search"
    seed(key, texts["search"])
    st.selectbox(
        "Search",
        ("grid", "random", "sobol"),
        format_func={"grid": "every combination", "random": "random points", "sobol": "Sobol points"}.__getitem__,
        key=key,
        on_change=_searched,
        help="Random and Sobol points are drawn from the values or ranges; Sobol points fill the space more evenly.",
    )


def _searched() -> None:
    """Give a drawn search its number of points, and take it from a grid search, which tries every combination."""
    drawn = st.session_state["sweep.field.search"] != "grid"
    for name, value in (("points", "64"), ("draw_seed", "0")):
        st.session_state[f"sweep.field.{name}"] = (_text_of(name) or value) if drawn else ""
    _typed()


def _further(texts: Mapping[str, str], problems: Mapping[str, str], baseline: ReplaySettings) -> None:
    left, right = st.columns(2, gap="small")
    for place, name, words in ((left, "rule", RULES), (right, "client", CLIENTS)):
        key = f"sweep.field.{name}"
        seed(key, _choices(texts[name]))
        place.multiselect(
            {"rule": "Rules", "client": "What a refused client does"}[name],
            list(words),
            format_func=words.__getitem__,
            key=key,
            on_change=_typed,
            placeholder=setting_value(name, getattr(baseline, name)),
        )
    key = "sweep.field.fill"
    seed(key, texts["fill"])
    st.text_area(FIELD_WORDS["fill"][0], key=key, on_change=_typed, max_chars=2000, height=90, help=FIELD_WORDS["fill"][1])
    if "fill" in problems:
        st.error(escape_markdown(problems["fill"]), icon=":material/block:")
    for start in range(0, len(MORE), 4):
        for place, name in zip(st.columns(4, gap="small"), MORE[start : start + 4], strict=False):
            with place:
                _field(name, texts, problems, placeholder=setting_value(name, getattr(baseline, name)))


def _wanted(state: ViewState) -> Wanted:
    asked = state.sweep
    return Wanted(traffic=asked.traffic, fleet=asked.fleet, copies=asked.copies, grid=asked.grid, settings=state.settings)


def _start(state: ViewState, desk: SweepDesk, *, blocked: bool) -> None:
    """Say what the form comes to, and offer to start it; what makes no sense is said in place of that."""
    if blocked:  # the address holds an earlier state of the fields, of which nothing is said
        st.caption("What is refused above must be mended before the sweep can be started.")
        st.button("Start the sweep", key="sweep.start", type="primary", icon=":material/play_arrow:", disabled=True)
        return
    wanted = _wanted(state)
    library = replay_desk.desk().library
    try:
        looked = None if wanted.fleet.startswith("drawn/") else live.look_at(wanted.fleet)
        inputs, planned = inputs_and_plan(library, wanted, None if looked is None else looked.snapshot)
    except HordePolicyError as error:
        st.error(escape_markdown(str(error)), title="This sweep cannot be started", icon=":material/block:")
        st.button("Start the sweep", key="sweep.start", type="primary", icon=":material/play_arrow:", disabled=True)
        return
    words = (
        f"{count_of(len(planned.points), 'setting')}, those in force among them, under "
        f"{count_of(len(planned.scenarios), 'scenario')}: {count_of(planned.replays, 'replay')}, "
        f"{count_of(requests_of(inputs, planned), 'request')} in all."
    )
    st.markdown(words)
    for reason, number in planned.dropped.items():
        st.caption(escape_markdown(f"Left out: {reason} ({count(number)})."))
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Start the sweep", key="sweep.start", type="primary", icon=":material/play_arrow:"):
            _begin(desk, wanted)
            run_again()
        with st.popover("The same for the command", icon=":material/terminal:"):
            st.caption("Save as grid.toml for sweep --grid grid.toml")
            st.code(wanted.grid, language="toml")


def _begin(desk: SweepDesk, wanted: Wanted) -> None:
    """Start a sweep and open its address."""
    library = replay_desk.desk().library
    drawn = wanted.fleet.startswith("drawn/")
    looked = None if drawn else live.look_at(wanted.fleet)
    snapshot = None if looked is None else looked.snapshot
    snapshot_id = "" if looked is None else looked.snapshot_id
    parts = (wanted.traffic, wanted.fleet, str(wanted.copies), wanted.grid, wanted.settings.digest(64), snapshot_id)
    key = run_key(*parts)
    beside: dict[str, object] = {ORIGIN: {"traffic": wanted.traffic, "fleet": wanted.fleet}}

    def make():  # type: ignore[no-untyped-def]
        return *inputs_and_plan(library, wanted, snapshot), beside

    desk.start(key, make)
    title = BUNDLED[wanted.traffic].title if wanted.traffic in BUNDLED else upload_names().get(wanted.traffic, wanted.traffic)
    names = _names()
    names.setdefault(key, f"{len(names) + 1}: {title}, load × {wanted.copies}")
    st.session_state.setdefault(WANTED, {})[key] = wanted
    write_asked(sweep=key, point="", x="", y="", fixed=(), under="mean", held=None)


def go_on(desk: SweepDesk, key: str) -> None:
    """Go on with a sweep of this session that was cancelled; of another session, say where to start it."""
    wanted = st.session_state.get(WANTED, {}).get(key)
    if wanted is None:
        say("This sweep was started in another session: open New sweep and start it there; what is done is not done again.")
        return
    _begin(desk, wanted)
