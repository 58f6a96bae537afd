"""The choices that the review's pages share: data, range, words looked at, comparison, upload; each writes the address."""

import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.imports import ExportFile
from horde_policy.imports import Mapping as ExportMapping
from horde_policy.imports.mapping import mapping_of
from horde_policy.review.decompose import WORDS
from horde_policy.review.exported import Exported
from horde_policy.review.ranges import TimeRange
from horde_policy.ui import reading, review_library, uploads
from horde_policy.ui.address import read_review, run_again, say, say_stays, seed, settle, write_review
from horde_policy.ui.widths import chooser_px
from horde_policy.views import review_tables
from horde_policy.views.review_state import ReviewState, range_from_text, range_text
from horde_policy.views.review_words import DIMENSION_WORDS, looked_at_text, word_text
from horde_policy.views.text import count, escape_markdown, shortened, visible

__all__ = ["drawn_span", "show_choices", "show_failed_upload", "show_upload_read"]

MOST_DAYS_LISTED = 14
MOST_UPLOAD_MB = 200
LARGEST_MAPPING_BYTES = 1_000_000
BOX_PX = 230
"""A box of a range is as wide as its words, and where it holds typed ends as wide as those."""
FAILED = "review.upload-failed"
ROUND = "review.upload-round"
"""Counts the uploads of a session: a new widget each time, so that the bytes of the one before are let go."""


def show_choices(state: ReviewState, titles: Mapping[str, str], covered: TimeRange | None) -> None:
    """Show what is reviewed.

    Parameters
    ----------
    state
        What the address says.
    titles
        Key → title of the data that can be chosen (hostile text).
    covered
        The time that the chosen data cover; null if there are none.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", key="review.choices"):
        _data(state, titles)
        _range("review.range", "Range (UTC)", state.span, covered, _write_span)
        _looked_at(state)
        _against(state, titles, covered)
        _upload()


def _write_span(state: ReviewState, span: TimeRange) -> None:
    write_review(state.changed(start=span.start, end=span.end))


def _write_against_span(state: ReviewState, span: TimeRange) -> None:
    write_review(state.changed(against_start=span.start, against_end=span.end))


def _data(state: ReviewState, titles: Mapping[str, str]) -> None:
    key = "review.data"
    current = state.data or review_library.DEMO
    words = {name: shortened(visible(title), 80) for name, title in titles.items()}
    words.setdefault(current, f"{current} (not here)")
    seed(key, current)

    def chosen() -> None:
        data = st.session_state[key]
        # a range of other data means nothing here
        write_review(state.changed(data="" if data == review_library.DEMO else data, start=None, end=None))

    st.selectbox(
        "Exported metrics",
        list(words),
        format_func=lambda name: words.get(name, name),
        key=key,
        on_change=chosen,
        help="What is reviewed: the bundled week, uploads, and what is configured: folders, the exports that the history "
        "keeps, a Prometheus or Mimir.",
        width=260,
    )


def _range(
    key: str,
    label: str,
    span: TimeRange,
    covered: TimeRange | None,
    write: Callable[[ReviewState, TimeRange], None],
    *,
    in_popover: bool = False,
) -> None:
    current = range_text(span)
    days = {} if covered is None else days_of(covered)

    def chosen() -> None:
        text = str(st.session_state[key])
        if text == current:
            return
        try:
            chosen_span = range_from_text(text)
        except InputError as error:
            say_stays("The range stays", error, again=key)
            return
        settle(key, range_text(chosen_span))
        write(read_review(), chosen_span)

    seed(key, current, in_popover=in_popover)
    st.selectbox(
        label,
        [*dict.fromkeys(["all", *days, current])],
        format_func=lambda text: days.get(text, "all of it" if text == "all" else text),
        key=key,
        on_change=chosen,
        accept_new_options=True,
        help="Choose a day, type one as 2026-11-23 or a range as 2026-11-23 00:00 to 2026-11-24 12:00, or draw a box over a "
        "figure of time.",
        width=BOX_PX if current in ("all", *days) else chooser_px(current, 0),
    )


def days_of(covered: TimeRange) -> dict[str, str]:
    """Return the days in UTC that data cover, as they are typed, with their words; none for a day or less.

    >>> week = TimeRange(datetime(2026, 11, 23, 5, tzinfo=UTC), datetime(2026, 11, 25, tzinfo=UTC))
    >>> days_of(week)
    {'2026-11-23 00:00 to 2026-11-24 00:00': 'Mon 23 Nov', '2026-11-24 00:00 to 2026-11-25 00:00': 'Tue 24 Nov'}
    """
    if covered.start is None or covered.end is None or covered.end - covered.start <= timedelta(days=1):
        return {}
    day = covered.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found: dict[str, str] = {}
    while day < covered.end and len(found) < MOST_DAYS_LISTED:
        found[range_text(TimeRange(day, day + timedelta(days=1)))] = f"{day:%a} {day.day} {day:%b}"
        day += timedelta(days=1)
    return found


def drawn_span(ends: object) -> TimeRange | None:
    """Return the range between the ends of a box on an axis of time, as Plotly tells them; null for what is no range.

    >>> drawn_span(["2026-11-29 13:00:10.5", "2026-11-29 12:00"]).start.isoformat()
    '2026-11-29T12:00:00+00:00'
    >>> drawn_span(["x", None]) is None
    True
    """
    if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(isinstance(end, str) for end in ends):
        return None
    try:
        start, end = sorted(datetime.fromisoformat(text).replace(tzinfo=UTC, microsecond=0) for text in ends)
    except ValueError:
        return None
    return TimeRange(start, end) if start < end else None


def _looked_at(state: ReviewState) -> None:
    narrowed = [dimension for dimension in WORDS if getattr(state, dimension)]
    with st.popover(looked_at_text(narrowed), icon=":material/filter_alt:", key="review.filters"):
        for dimension, known in WORDS.items():
            key = f"review.only-{dimension}"
            options = [*(str(word).lower() if isinstance(word, bool) else str(word) for word in known), "none"]
            words = dict(zip(options, (*known, None), strict=True))
            seed(key, list(getattr(state, dimension)), in_popover=True)
            st.pills(
                DIMENSION_WORDS[dimension].capitalize(),
                options,
                selection_mode="multi",
                format_func=_format(dimension, words),
                key=key,
                on_change=_keep,
                args=(dimension, key, options),
            )


def _format(dimension: str, words: Mapping[str, object]) -> Callable[[str], str]:
    return lambda option: word_text(dimension, words[option])


def _keep(dimension: str, key: str, options: list[str]) -> None:
    chosen = st.session_state[key] or []
    write_review(read_review().changed(**{dimension: tuple(option for option in options if option in chosen)}))


def _against(state: ReviewState, titles: Mapping[str, str], covered: TimeRange | None) -> None:
    with st.popover("Compared" if state.compares else "Compare", icon=":material/compare_arrows:", key="review.compare"):
        key = "review.against"
        words = {"": "the same data", **{name: shortened(visible(title), 80) for name, title in titles.items()}}
        words.setdefault(state.against, f"{state.against} (not here)")
        seed(key, state.against, in_popover=True)
        st.selectbox(
            "With the data",
            list(words),
            format_func=lambda name: words.get(name, name),
            key=key,
            on_change=lambda: write_review(read_review().changed(against=st.session_state[key])),
        )
        _range("review.against-range", "In the range (UTC)", state.against_span, covered, _write_against_span, in_popover=True)
        st.caption("What is chosen above is the first side, this the second; a difference is the second less the first.")
        st.button(
            "Compare nothing",
            key="review.compare-nothing",
            on_click=lambda: write_review(read_review().changed(against="", against_start=None, against_end=None)),
            disabled=not state.compares,
        )


# --- upload -----------------------------------------------------------------------------------------------------------------


def _upload() -> None:
    number = st.session_state.setdefault(ROUND, 0)
    with (
        st.popover("Upload", icon=":material/upload:", key="review.uploading"),
        st.form(f"review.upload-form-{number}", border=False),
    ):
        files = st.file_uploader(
            "Exported metrics",
            accept_multiple_files=True,
            key=f"review.upload-{number}",
            max_upload_size=MOST_UPLOAD_MB,
            help="Prometheus text or OpenMetrics, Prometheus API answers, OTLP JSON or protobuf, Grafana CSV, our Parquet; "
            "packed by gzip or zstd or not. Told by content. Several files are read as one export, overlaps are counted once; "
            "one that cannot be read is left out and named.",
        )
        mapping = st.file_uploader(
            "Mapping (TOML), only if the files do not speak for themselves",
            key=f"review.mapping-{number}",
            max_upload_size=1,
            help="Names series, labels, words, time zone or scrape times: see the guide of imports.",
        )
        st.caption(
            f"Up to {MOST_UPLOAD_MB} MB a file; larger ones are read by the commands or from a folder that "
            f"{review_library.EXPORTS_SETTING} names. The bytes are let go once they are counted."
        )
        if st.form_submit_button("Read", type="primary", icon=":material/play_arrow:"):
            given = [ExportFile(file.name, file.getbuffer()) for file in files]
            _read(given, None if mapping is None else bytes(mapping.getbuffer()))


def _read(files: list[ExportFile], mapping: bytes | None) -> None:
    """Start to read an upload; the page goes on meanwhile."""
    st.session_state[FAILED] = None
    try:
        said = _mapping(mapping)
    except InputError as error:
        st.session_state[FAILED] = str(error)
        run_again()
    names = ", ".join(file.name for file in files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    library = review_library.library()

    def read(at: reading.Reading) -> tuple[str, Exported]:
        return library.add(
            files, said, progress=lambda share: at.told("reading" if share < 1 else "counting what is in", min(share, 1.0))
        )

    reading.begin("exports", names, read)
    run_again()


def show_upload_read() -> None:
    """Show how far an upload is read; once it is, open it, or say why it cannot be."""
    ended = reading.show("exports")
    if ended is None:
        return
    if ended.result is None:
        if ended.error is None:
            say("The reading was cancelled: nothing of the upload is kept.")
        st.session_state[FAILED] = ended.error
        run_again()
    key, exported = ended.result
    left = [problem.subject for problem in exported.problems if problem.code == "unreadable_file"]
    uploads.remember(
        uploads.Upload(
            key,
            "exports",
            exported.title,
            review_tables.understood_text(exported),
            review_tables.left_text(exported) + (f"; left out: {', '.join(left)}" if left else ""),
        )
    )
    st.session_state[ROUND] += 1
    write_review(read_review().changed(data=key, start=None, end=None))
    run_again()


def _mapping(content: bytes | None) -> ExportMapping | None:
    if content is None:
        return None
    if len(content) > LARGEST_MAPPING_BYTES:
        raise InputError("mapping file", "", len(content), f"bytes must be at most {count(LARGEST_MAPPING_BYTES)}")
    try:
        return mapping_of(tomllib.loads(content.decode("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("mapping file", "", "the upload", f"is not TOML: {error}") from error


def show_failed_upload() -> None:
    """Say why the last upload was not read; what was shown before stays."""
    failed = st.session_state.get(FAILED)
    if failed:
        st.error(
            escape_markdown(failed) + "  \nNothing of it is kept; what is shown below is what was shown before.",
            title="The upload cannot be read",
            icon=":material/upload_file:",
        )
