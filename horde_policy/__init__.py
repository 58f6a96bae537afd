"""The free output allowance of AI Horde and capped output reservations: watched, judged and tried."""

import os

__version__ = "0.1.0"

# Read once, when Polars is loaded: its allocator then gives freed memory back at once and keeps none for later, which a frame
# of millions of requests would leave behind. It costs no time that could be measured; who has set the variable is obeyed.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
