"""The Budget page's live view of a ledger: the one that ``HORDE_POLICY_LEDGER`` names, else a made-up one.

Each look is one consistent read of the rows that are open and of running totals; nothing is written. The address of a database
never shows its password or its options.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl
import streamlit as st

from horde_policy.budget.audit import LedgerLook, holds_frame, windows_frame
from horde_policy.budget.bound import Certain, Declared, InputAssumption, Measured
from horde_policy.budget.demo import make_demo_ledger
from horde_policy.budget.ledger import Ledger
from horde_policy.clock import SystemClock
from horde_policy.errors import HordePolicyError
from horde_policy.frames.schemas import Schema
from horde_policy.frames.usage import LEDGER_HOLDS, LEDGER_WINDOWS
from horde_policy.ui.address import seed
from horde_policy.ui.budget_controls import write_budget
from horde_policy.ui.budget_desk import budget_desk
from horde_policy.ui.headings import show_heading
from horde_policy.ui.tables import show_grid
from horde_policy.views import budget_ledger as words
from horde_policy.views.budget_exports import LedgerStamp, in_dollars
from horde_policy.views.budget_state import INPUTS
from horde_policy.views.exports import to_csv
from horde_policy.views.state import ViewState
from horde_policy.views.text import code_span, count, escape_markdown, instant, own_words

__all__ = ["LEDGER_SETTING", "show_ledger"]

LEDGER_SETTING = "HORDE_POLICY_LEDGER"
PATIENCE_S = 3.0
DEMO_TURN_S = 600
"""The made-up ledger is made anew so often, or its open requests would grow old."""

INPUT_WORDS = {"certain": "fill the context window", "declared": "are 1.7 × the estimate", "measured": "are as measured"}


@dataclass(frozen=True, slots=True)
class _Book:
    """A ledger that is open for reading, and whether it is made up; the folder of one that is goes with it."""

    ledger: Ledger
    synthetic: bool
    folder: "tempfile.TemporaryDirectory[str] | None" = None


def _close(book: _Book) -> None:
    book.ledger.close()
    if book.folder is not None:
        book.folder.cleanup()


@st.cache_resource(show_spinner=False, on_release=_close, max_entries=2)
def _configured(url: str) -> _Book:
    return _Book(Ledger(url, create=False, patience_s=PATIENCE_S), synthetic=False)


@st.cache_resource(show_spinner=False, on_release=_close, max_entries=2)
def _made_up(turn: int) -> _Book:
    folder = tempfile.TemporaryDirectory(prefix="demo-ledger-")
    path = Path(folder.name) / "ledger.db"
    make_demo_ledger(path, budget_desk().table("example-hosted"), SystemClock().now(), seed=turn)
    return _Book(Ledger(path, create=False), synthetic=True, folder=folder)


def _book() -> _Book:
    """Return the ledger to look at.

    Raises
    ------
    HordePolicyError
        The configured one cannot be read.
    """
    url = os.environ.get(LEDGER_SETTING, "").strip()
    return _configured(url) if url else _made_up(int(SystemClock().now().timestamp() // DEMO_TURN_S))


def show_ledger(state: ViewState) -> None:
    """Show the ledger as it stands, and look again on the page's timer."""
    show_heading("The ledger now")
    key = "budget.inputs"
    seed(key, state.budget.inputs)
    st.segmented_control(
        "Worst case if open inputs",
        INPUTS,
        format_func=INPUT_WORDS.__getitem__,
        key=key,
        required=True,
        on_change=lambda: write_budget(inputs=st.session_state[key]),
        help="The real input of an open request is not known yet: certain is a true ceiling, declared is for planning, measured "
        "is what 95 % of the ledger's own requests kept to and is no bound.",
    )
    st.fragment(_look, run_every=state.refresh_s or None)(state.budget.inputs)


def _look(kind: str) -> None:
    try:
        book = _book()
        inputs, note = _assumption(book.ledger, kind)
        look = book.ledger.look(inputs=inputs)
    except HordePolicyError as error:
        st.error(
            f"{escape_markdown(str(error))}  \nThe page looks again by itself. {LEDGER_SETTING} names it.",
            title="The ledger cannot be read",
            icon=":material/cloud_off:",
        )
        return
    _show_name(book, look)
    if note:
        st.info(note, icon=":material/info:")
    if not look.budgets:
        st.info("The ledger has no budget yet. `Ledger.set_budget` makes one.", icon=":material/inbox:")
    else:
        show_grid(
            words.WINDOW_COLUMNS,
            words.window_rows(look),
            key="budget.windows",
            alt="Budgets: limit, spent, held, left, worst case",
        )
    if look.holds:
        st.markdown("**Who holds what, the oldest first**")
        shown = words.hold_rows(look, inputs)
        show_grid(
            words.HOLD_COLUMNS,
            shown,
            key="budget.holds",
            alt="Requests whose real cost is not written yet: who holds what, how long",
        )
        if len(look.holds) > len(shown):
            st.caption(f"{count(len(shown))} of {count(len(look.holds))} are shown; the file has all of them.")
    _offer(book, look, inputs, kind)


def _show_name(book: _Book, look: LedgerLook) -> None:
    if book.synthetic:
        st.caption(
            f"A made-up ledger (synthetic). Set `{LEDGER_SETTING}` to a SQLite file or a PostgreSQL URL to see your own.",
        )
    else:
        st.caption(f"{code_span(book.ledger.name)}, as of {instant(look.at)}")
    st.markdown(f"**{own_words(words.look_sentence(look))}**")


def _assumption(ledger: Ledger, kind: str) -> tuple[InputAssumption, str]:
    """Return the assumption about open inputs, and why it is another than was asked for."""
    if kind == "declared":
        return Declared(), ""
    if kind == "measured":
        excess = ledger.measured_excess()
        if excess is not None:
            return Measured(excess), ""
        return Certain(), "Nothing is settled yet, so nothing is measured: the worst case is the certain one."
    return Certain(), ""


def _file(made: Callable[[], pl.DataFrame], schema: Schema, stamp: LedgerStamp) -> bytes:
    """Return a frame as CSV, made when it is asked for."""
    return to_csv(*in_dollars(made(), schema), stamp)


def _offer(book: _Book, look: LedgerLook, inputs: InputAssumption, kind: str) -> None:
    stamp = LedgerStamp(
        ledger=book.ledger.name if not book.synthetic else "demo ledger", synthetic=book.synthetic, at=look.at, inputs=kind
    )
    name = f"ledger_{look.at:%Y%m%dT%H%M%SZ}"
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, what, made, schema in (
            ("Budgets (CSV)", "budgets", partial(windows_frame, look.budgets), LEDGER_WINDOWS),
            ("Holds (CSV)", "holds", partial(holds_frame, look.holds, look.at, inputs), LEDGER_HOLDS),
        ):
            st.download_button(
                label,
                partial(_file, made, schema, stamp),
                f"{name}_{what}.csv",
                "text/csv",
                key=f"budget.ledger-{what}",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
                help="Exact dollars, with the ledger's name and the time.",
            )
        asked = st.button(
            "Check the counters",
            key="budget.audit",
            type="tertiary",
            icon=":material/fact_check:",
            help="Reads every row of the ledger and compares spent and held with it.",
        )
    if asked:
        audit = book.ledger.audit()
        (st.success if audit.agrees else st.error)(escape_markdown(words.audit_sentence(audit)))
