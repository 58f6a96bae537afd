"""TEMPORARY until the poller is there."""
from dataclasses import dataclass
import streamlit as st
from horde_policy.clock import SystemClock
from horde_policy.frames.snapshot import Snapshot
from horde_policy.sources.demo import DemoSource
from horde_policy.sources.recorded import load_recorded
from pathlib import Path

@dataclass(frozen=True)
class Look:
    snapshot: Snapshot | None
    snapshot_id: str
    trouble: str | None = None

@st.cache_resource
def _demo() -> Snapshot:
    return DemoSource(SystemClock()).load()

def source_labels():
    return {"demo": "Demo horde (synthetic)", "public": "AI Horde (public)", **{f"recorded:{p.name}": f"Recorded: {p.name}" for p in sorted(Path("data/recorded").iterdir())}}

def look(source):
    if source.startswith("recorded:"):
        return Look(load_recorded(Path("data/recorded")/source.split(":",1)[1]), source)
    return Look(_demo(), "demo")
