"""What holds for all tests: how hypothesis behaves on a busy machine."""

import os

from hypothesis import HealthCheck, settings

# Speed is measured in benchmarks, never by a test: a slow machine must not fail one. On a build machine the examples are the
# same every time, so that what is green once is green again; at a desk they vary, so that new faults are found.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("build", parent=settings.get_profile("desk"), derandomize=True)
settings.load_profile("build" if os.environ.get("CI") else "desk")
