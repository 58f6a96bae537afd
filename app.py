"""The dashboard: what stands around every page, then the page that the address names."""

from pathlib import Path

from horde_policy.ui import shell

PAGES = Path(__file__).parent / "pages"
SECTIONS = {
    "Operate": [
        shell.PageEntry(
            PAGES / "operate" / "overview.py",
            "overview",
            "Overview",
            ":material/monitoring:",
            "Is text generation all right, which model is at the floor, and why?",
        ),
        shell.PageEntry(
            PAGES / "operate" / "model.py",
            "model",
            "Model",
            ":material/query_stats:",
            "Why does a model give what it gives, and what would change it?",
        ),
        shell.PageEntry(
            PAGES / "operate" / "workers.py",
            "workers",
            "Workers",
            ":material/dns:",
            "Who carries what, and what hangs on a single worker?",
        ),
        shell.PageEntry(
            PAGES / "operate" / "sources.py",
            "sources",
            "Sources",
            ":material/database:",
            "Where do the figures come from, how old are they, and what is wrong with them?",
        ),
    ],
    "Review": [
        shell.PageEntry(
            PAGES / "review" / "week.py",
            "week",
            "Week",
            ":material/summarize:",
            "What did the production week show?",
            live=False,
        ),
        shell.PageEntry(
            PAGES / "review" / "decisions.py",
            "decisions",
            "Decisions",
            ":material/rule:",
            "Who got what, and what would another ceiling or floor have given?",
            live=False,
        ),
        shell.PageEntry(
            PAGES / "review" / "waits.py",
            "waits",
            "Waits",
            ":material/hourglass_top:",
            "Were the estimates honest, and what did payers wait?",
            live=False,
        ),
    ],
    "Lab": [
        shell.PageEntry(
            PAGES / "lab" / "replay.py",
            "replay",
            "Replay",
            ":material/replay:",
            "What would other settings have done with real traffic, and who gains or loses by them?",
        ),
        shell.PageEntry(
            PAGES / "lab" / "sweep.py",
            "sweep",
            "Sweep",
            ":material/grid_on:",
            "Which settings should be chosen, how sure is that, and what would it cost?",
            live=False,
        ),
        shell.PageEntry(
            PAGES / "lab" / "budget.py",
            "budget",
            "Budget",
            ":material/account_balance_wallet:",
            "What does a hard budget refuse, how far can it be overspent, and who holds what now?",
            controls=False,
        ),
    ],
    "Learn": [
        shell.PageEntry(
            PAGES / "learn" / "guide.py",
            "guide",
            "Guide",
            ":material/school:",
            "How does the allowance work? A workshop in eight steps on the demo, and the words.",
            controls=False,
        ),
    ],
}

shell.frame(SECTIONS).run()
