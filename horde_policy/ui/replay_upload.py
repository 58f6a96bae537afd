"""The Replay page's upload: a request log, a server log, exported counts, or ServeGen's two files; read in a thread."""

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.imports.trace_frame import Trace
from horde_policy.ui import reading, uploads
from horde_policy.ui.address import read_state, run_again, say, seed, write_state
from horde_policy.ui.fields import number_field
from horde_policy.ui.notices import say_here
from horde_policy.ui.replay_desk import Desk
from horde_policy.ui.replay_inputs import MOST_REQUESTS, fitting_hours
from horde_policy.views.parameters import hours_from_text
from horde_policy.views.state import ViewState
from horde_policy.views.text import count, escape_markdown
from horde_policy.views.uploads import trace_understood

__all__ = ["show_upload", "show_upload_read", "start_of", "upload_names"]

MOST_UPLOAD_MB = 200
FAILED = "replay.upload-failed"
UPLOAD = "replay.uploading"
"""The part that says itself what it did not take."""


def upload_names() -> dict[str, str]:
    """Return key → name of the files that this session has uploaded."""
    return {upload.key: upload.name for upload in uploads.listed("traffic")}


def start_of(traffic: str) -> dict[str, object]:
    """Return the range and the load that a traffic starts with: the demo's own, else all of it once."""
    plain = ViewState()
    asked = read_state()[0].replay.changed(model="", model_map=())
    if traffic == plain.traffic:
        load: dict[str, object] = {"hours": plain.hours, "copies": plain.copies, "keep_percent": plain.keep_percent}
    else:
        load = {"hours": (), "copies": 1, "keep_percent": 100}
    return {"traffic": traffic, "replay": asked, **load}


def show_upload(desk: Desk) -> None:
    """Offer to upload a file; what is chosen is read at once, in a thread."""
    with st.popover("Upload", icon=":material/upload:", key=UPLOAD):
        st.file_uploader(
            "A request log",
            key="replay.upload",
            on_change=_begin,
            args=(desk,),
            max_upload_size=MOST_UPLOAD_MB,
            help="CSV, JSON lines or Parquet with at least created and max_length (or output_tokens); Azure, BurstGPT, Mooncake, "
            "RAGPulse, Qwen-Bailian and Vidur traces as published; ServeGen's rates; AI Horde's server log; or exported decision "
            "counts, in any form that the Decisions page reads, from which requests are rebuilt. Kept in memory alone.",
        )
        seed("replay.segment", 0, in_popover=True)
        number_field(
            "Part, where a file's clock starts again (0: the file has one)",
            0,
            20,
            step=1,
            key="replay.segment",
            on_change=_begin,
            args=(desk,),
            told_at=UPLOAD,
        )
        seed("replay.rebuilt-with", 1, in_popover=True)
        number_field(
            "Seed, where requests are rebuilt from counts or drawn from ServeGen's rates",
            0,
            1_000_000,
            step=1,
            key="replay.rebuilt-with",
            on_change=_begin,
            args=(desk,),
            told_at=UPLOAD,
            help="Times within intervals and sizes within buckets are drawn; another seed shows what the drawing decides.",
        )
        say_here(UPLOAD)
        with st.expander("ServeGen: sizes and hours", icon=":material/data_object:"):
            st.file_uploader(
                "ServeGen's file of sizes, if the file above holds its rates",
                key="replay.sizes",
                on_change=_begin,
                args=(desk,),
                max_upload_size=MOST_UPLOAD_MB,
                help="Published as JSON (chunk-…-dataset.json), or the Parquet of several clients. Requests are drawn from both: "
                "they are synthetic, and said to be wherever they show.",
            )
            seed("replay.drawn-hours", "all", in_popover=True)
            st.text_input(
                "Hours of its clock that are drawn",
                key="replay.drawn-hours",
                max_chars=20,
                on_change=_begin,
                args=(desk,),
                help="From and to, as 0-24, or all.",
            )


def _begin(desk: Desk) -> None:
    file, sizes = st.session_state["replay.upload"], st.session_state.get("replay.sizes")
    st.session_state[FAILED] = None
    if file is None:
        return
    segment, chosen_seed = int(st.session_state["replay.segment"]), int(st.session_state["replay.rebuilt-with"])
    try:
        hours = hours_from_text(str(st.session_state.get("replay.drawn-hours", "all")))
    except InputError as error:
        st.session_state[FAILED] = str(error)
        return
    content = file.getvalue()
    drawn_from = None if sizes is None else (sizes.name, sizes.getvalue())
    library = desk.library

    def read(at: reading.Reading) -> tuple[str, Trace, str]:
        key, trace = library.add(
            file.name,
            content,
            segment=segment or None,
            seed=chosen_seed,
            sizes=drawn_from,
            hours=hours,
            told=lambda: at.told("reading"),
        )
        return key, trace, file.name

    reading.begin("traffic", file.name, read)


def show_upload_read() -> None:
    """Show how far an upload is read; once it is, replay it, or say why it cannot be."""
    ended = reading.show("traffic")
    if ended is not None:
        if ended.result is None:
            if ended.error is None:
                say("The reading was cancelled: nothing of the upload is kept.")
            st.session_state[FAILED] = ended.error
            run_again()
        key, trace, name = ended.result
        uploads.remember(uploads.Upload(key, "traffic", name, *trace_understood(trace)))
        fitting = fitting_hours(trace)
        if fitting:
            say(
                f"The file holds {count(trace.frame.height)} requests; a page replays up to {count(MOST_REQUESTS)} at once, "
                f"so its first {count(fitting[1])} hours are chosen. The replay command takes all of them."
            )
        write_state(**start_of(key) | {"hours": fitting})
        run_again()
    failed = st.session_state.get(FAILED)
    if failed:
        st.error(escape_markdown(failed), title="The file cannot be replayed", icon=":material/upload_file:")
