"""Make the bundled sweep again: ``python tools/demo_sweep.py [FILE]``, a minute or so on two cores.

It is the sweep that the Sweep page starts with, made by what the page itself uses: a week of a public trace, laid over itself
thirty times, on a drawn fleet. All of it is labelled synthetic.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from horde_policy.settings import AllowanceSettings
from horde_policy.sweep.files import sweep_content
from horde_policy.sweep.run import Sweep, run_sweep
from horde_policy.ui.replay_inputs import Library
from horde_policy.ui.sweep_desk import DEMO_FILE
from horde_policy.ui.sweep_inputs import Wanted, inputs_and_plan
from horde_policy.views.sweep_link import ORIGIN
from horde_policy.views.sweep_state import SweepAsked


def demo_wanted() -> Wanted:
    """Return what the page asks for when nothing is changed."""
    asked = SweepAsked()
    return Wanted(traffic=asked.traffic, fleet=asked.fleet, copies=asked.copies, grid=asked.grid, settings=AllowanceSettings())


def main() -> None:
    """Make the sweep and write it."""
    wanted = demo_wanted()
    found = run_sweep(*inputs_and_plan(Library(), wanted, None))
    stamp = dict(found.stamp) | {ORIGIN: {"traffic": wanted.traffic, "fleet": wanted.fleet}}
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO_FILE
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(sweep_content(Sweep(frame=found.frame, stamp=stamp, missing=0)))
    print(f"{target}: {found.frame.height} rows, {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
