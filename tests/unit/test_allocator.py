import subprocess
import sys

import pytest

SAID = "import os, horde_policy, polars; print(os.environ['_RJEM_MALLOC_CONF'])"


@pytest.mark.parametrize("given", [None, "dirty_decay_ms:700,muzzy_decay_ms:800"], ids=["nothing said", "the user's own word"])
def test_freed_memory_goes_back_at_once_unless_the_user_says_otherwise(given: str | None) -> None:
    environment = {} if given is None else {"_RJEM_MALLOC_CONF": given}
    done = subprocess.run([sys.executable, "-c", SAID], env=environment, check=True, capture_output=True, text=True)
    # Polars puts its own values in front; the allocator takes the last.
    said = dict(part.split(":") for part in done.stdout.strip().split(","))
    expected = given or "dirty_decay_ms:0,muzzy_decay_ms:0"
    assert said == dict(part.split(":") for part in expected.split(","))
