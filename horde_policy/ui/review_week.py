"""The Week page's parts: the findings with their links, what each question rests on, the report as a file."""

import streamlit as st

from horde_policy.review.finding import Finding
from horde_policy.review.findings import Question, Week, review_week
from horde_policy.ui import address
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.review_page import Opened, now, offer, show_data
from horde_policy.ui.shell import link_to
from horde_policy.views.figures.review_whatif import fig_gains, gains_alt
from horde_policy.views.finding_text import SECTION_TITLES, finding_text, no_data_text
from horde_policy.views.report import report_html
from horde_policy.views.review_exports import file_name, stamp_of
from horde_policy.views.review_headlines import nothing_in_range
from horde_policy.views.review_state import parse_review_state
from horde_policy.views.text import escape_markdown, unbroken

__all__ = ["reviewed", "show_changes", "show_findings", "show_questions", "show_report", "stop_without_counts"]

COLOURS = {"wrong": "red", "bad": "red", "open": "orange", "note": "gray", "fine": "green"}
ICONS = {
    "wrong": ":material/error:",
    "bad": ":material/priority_high:",
    "open": ":material/help:",
    "note": ":material/info:",
    "fine": ":material/check_circle:",
}


COMPACT = """<style>
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { gap: 0.5rem; }
[data-testid="stMainBlockContainer"] h1 { padding: 0.35rem 0 0.7rem; font-size: 1.24rem; line-height: 1.22; text-wrap: pretty; }
[data-testid="stMainBlockContainer"] h2 { padding: 0.5rem 0 1rem; }
[data-testid="stMainBlockContainer"] .st-key-week-findings-head h2 { padding: 0; }
.st-key-week-findings div:has(> [data-testid="stExpander"]) { flex: 1 1 24rem; width: auto; min-width: 0; }
.st-key-week-findings summary { padding-top: 0.2rem; padding-bottom: 0.2rem; min-height: 2rem; }
.st-key-week-findings [data-testid="stElementContainer"]:has(> [data-testid="stPageLink"]) {
  flex: 0 0 9.5rem; padding-top: 0.3rem; }
@media (min-width: 641px) { .st-key-week-findings [class*="st-key-week-finding-"]:not(:has([data-testid="stPageLink"])) {
  padding-right: calc(9.5rem + 0.25rem); } }
@media (max-width: 640px) {
  .st-key-week-findings { row-gap: 1rem; }
  .st-key-week-findings [class*="st-key-week-finding-"] { row-gap: 0; } }
</style>"""
"""A row for each finding, so that a first screen holds nearly all of them; one that leads nowhere is as wide as the others.

Streamlit takes a rem off below a heading, which its padding there gives back: with less it stands on what follows.
"""

FINDINGS_KEY = (
    "**attention** requesters are worse off · **open** the data do not decide it, or a change would help · **as it should be** "
    "nothing to do. In brackets beside a share: the 95 % interval, how far off another week of the same kind could be. n: how "
    "many it rests on."
)


@st.cache_resource(max_entries=16, show_spinner=False)
def _reviewed(key: str, _opened: Opened) -> Week:
    state = _opened.state
    question = Question(over_s=state.over_s, above=state.above, ratio=state.ratio)
    return review_week(_opened.exported, _opened.settings, question=question)


def reviewed(opened: Opened) -> Week:
    """Return the reviewed range; once for all viewers of the same data, range, settings and question."""
    state, covered = opened.state, opened.exported.covered
    made_of = (state.data, state.start, state.end, state.over_s, state.above, state.ratio, opened.settings)
    return _reviewed(repr((made_of, opened.exported.title, covered, opened.exported.counted)), opened)


def stop_without_counts(opened: Opened) -> None:
    """End the page where no decision is sure to lie in the range: there is nothing to find, and nothing is as it should be."""
    nothing = nothing_in_range(opened.whole, opened.exported)
    if nothing is None:
        return
    st.title("Nothing is known of this range", anchor=False)
    st.info(nothing, icon=":material/event_busy:")
    st.button(
        "Look at all of it",
        key="week.all-of-it",
        on_click=address.write_review,
        args=(opened.state.changed(start=None, end=None),),
    )
    show_data(opened)
    st.stop()


def show_findings(opened: Opened, week: Week) -> None:
    """Show every finding as a sentence in a row, the gravest first, with the page state behind it; the rest unfolds."""
    st.html(COMPACT)
    with st.container(horizontal=True, vertical_alignment="center", key="week.findings-head"):
        st.header("Findings, by consequence", anchor=False, help=FINDINGS_KEY, width="content")
        show_report(opened, week)
    with st.container(key="week.findings", gap="xsmall"):
        for number, finding in enumerate(week.findings, 1):
            with st.container(horizontal=True, vertical_alignment="top", gap="xxsmall", key=f"week.finding-{number}"):
                _show_finding(opened, finding)


def _show_finding(opened: Opened, finding: Finding) -> None:
    text = finding_text(finding)
    chip = f":{COLOURS[finding.severity]}-badge[{ICONS[finding.severity]} {text.severity}]"
    told = unbroken(f"{chip} **{escape_markdown(text.sentence)}**")
    with st.expander(told) if text.beside or text.details else st.container(border=True):
        if not text.beside and not text.details:
            st.markdown(told)
        if text.beside:
            st.caption(unbroken(escape_markdown(text.beside)))
        if text.details:
            st.markdown("\n".join(f"- {unbroken(escape_markdown(detail))}" for detail in text.details))
    if finding.target.page != "week":
        link_to(finding.target.page, text.link.capitalize(), _query(opened, finding), icon=":material/arrow_forward:")


def _query(opened: Opened, finding: Finding) -> dict[str, list[str]]:
    """Return the query of the page state behind a finding, on the data and range that are shown."""
    found, _ = parse_review_state(finding.target.state)
    state = opened.state
    found = found.changed(data=state.data, start=state.start, end=state.end, ratio=state.ratio)
    return opened.view.shared_query(address.deployment_settings()) | found.query()


def show_questions(week: Week) -> None:
    """Say which questions have no data, and why."""
    missing = [(section, no_data_text(section)) for section in week.sections]
    told = [(section, text) for section, text in missing if text is not None]
    if not told:
        return
    show_heading("What these data cannot say")
    for section, text in told:
        st.info(escape_markdown(text), title=SECTION_TITLES[section.code], icon=":material/do_not_disturb_on:")


def show_changes(week: Week) -> None:
    """Show which size would gain from which change of ceiling or floor."""
    if not week.what_ifs:
        return
    show_heading(SECTION_TITLES["changes"])
    show_figure(fig_gains(week.what_ifs, theme_mode()), alt=gains_alt(week.what_ifs), key="week.gains")
    st.caption(
        "How many requests would become free (**+**) or cease to be (**−**), tried on the counts alone, with the waits as they "
        "were. A single number is exact, since bucket edges decide it; of two at least and at most so many; "
        "**0** none would change."
    )


def show_report(opened: Opened, week: Week) -> None:
    """Offer the report as one file that opens without any network."""
    stamp = stamp_of(opened.exported, opened.settings)
    offer(
        "Report (HTML)",
        lambda: report_html(week, made_at=now(), notes=opened.notes),
        file_name("week", stamp, "html"),
        "text/html",
        key="week.report",
        text="One file with all findings and figures, which opens from disk without any network and prints.",
    )
