"""``python -m horde_policy``: the command line."""

from horde_policy.cli.main import run

if __name__ == "__main__":
    run()
