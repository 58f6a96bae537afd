"""How the tests of the review's commands run one."""

import json
from typing import Any

import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, main


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found = json.loads(output(capsys, *arguments, "--json"))
    assert isinstance(found, dict)
    return found


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err
