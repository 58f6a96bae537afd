"""Run the benchmarks one after the other, each in a process of its own: ``python -m benchmarks [name …]``."""

import subprocess
import sys
from pathlib import Path


def names() -> list[str]:
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def main(wanted: list[str]) -> int:
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    worst = 0
    for name in wanted or names():
        print(f"\n== {name}", flush=True)
        worst = max(worst, subprocess.run([sys.executable, "-m", f"benchmarks.bench_{name}"], check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
