"""Which sources are configured: from the environment and the secrets file, never from a page, and nothing asked before."""

import os
from pathlib import Path

import httpx
import pytest

from horde_policy.clock import FixedClock
from horde_policy.errors import InputError
from horde_policy.sources.catalogue import Catalogue, configured_sources
from horde_policy.sources.horde import LiveSource
from horde_policy.sources.secrets_file import unreadable_secrets
from tests.replaying_server import ReplayingServer
from tests.unit.sources.conftest import NOW, RECORDED

BUNDLED = [
    "recorded-calm-snapshot",
    "recorded-fresh-server",
    "recorded-joined-no-jobs-yet",
    "recorded-later-nearly-everyone-gone",
    "recorded-production-2023-07",
    "recorded-snapshot",
]


def catalogue(environment: dict[str, str] | None = None, secrets: dict[str, object] | None = None) -> Catalogue:
    return configured_sources(environment or {}, secrets or {}, clock=FixedClock(NOW))


def test_without_configuration_there_are_the_demo_the_public_horde_and_the_bundled_folders() -> None:
    found = catalogue()
    assert list(found.keys()) == ["demo", "aihorde", *BUNDLED]
    assert found.problems == ()
    assert [entry.kind for entry in found.entries[:3]] == ["demo", "live", "recorded"]
    assert found.entry("aihorde").where == "aihorde.net"
    assert found.build("demo").load().synthetic


def test_bundled_recordings_of_made_up_workers_are_labelled_and_the_real_fleet_is_not(tmp_path: Path) -> None:
    found = catalogue()
    labelled = {key: found.build(key).load().synthetic for key in BUNDLED}
    assert [key for key, synthetic in labelled.items() if not synthetic] == ["recorded-production-2023-07"]
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "workers_text.json").write_text("[]", encoding="utf-8")
    theirs = catalogue({"HORDE_POLICY_RECORDED": str(tmp_path)}).build("recorded-snapshot")
    assert not theirs.load().synthetic


def test_a_recorded_folder_is_called_by_words_and_not_by_its_files_name(tmp_path: Path) -> None:
    assert not [entry.title for entry in catalogue().entries if "_" in entry.title]
    for name, about in (
        ("my_horde_2026", None),
        ("told", '{"title": "Sunday evening"}'),
        ("bad_about", "[]"),
        ("empty_title", '{"title": " "}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workers_text.json").write_text("[]", encoding="utf-8")
        if about is not None:
            (tmp_path / name / "about.json").write_text(about, encoding="utf-8")
    found = catalogue({"HORDE_POLICY_RECORDED": str(tmp_path)})
    titles = {entry.key: entry.title for entry in found.entries if entry.where.startswith(str(tmp_path))}
    assert titles == {
        "recorded-bad-about": "bad about",
        "recorded-empty-title": "empty title",
        "recorded-my-horde-2026": "my horde 2026",
        "recorded-told": "Sunday evening",
    }, "the key, which stands in links, is still the folder's name"


def test_listing_and_building_asks_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a request was made")

    monkeypatch.setattr(httpx.Client, "send", refuse)
    source = catalogue({"HORDE_URL": "https://horde.example"}).build("horde")
    assert isinstance(source, LiveSource)
    source.client.close()


def test_a_configured_horde_is_asked_at_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with ReplayingServer(RECORDED / "snapshot") as server:
        found = catalogue({"HORDE_URL": f" {server.url}/api/ ", "HORDE_POLICY_CONTACT": "ops@example.org"})
        source = found.build("horde")
        assert source.load().workers.height == 13
        assert server.asked[0].headers["client-agent"].endswith(":ops@example.org")
        assert f"http://{found.entry('horde').where}" == server.url
        assert isinstance(source, LiveSource)
        source.client.close()


@pytest.mark.parametrize(
    ("environment", "secrets", "host"),
    [
        ({"HORDE_URL": "https://a.example"}, {"HORDE_URL": "https://b.example"}, "a.example"),
        ({"HORDE_URL": "  "}, {"HORDE_URL": "https://b.example"}, "b.example"),
        ({}, {"horde": {"url": "https://c.example/api"}}, "c.example"),
    ],
)
def test_the_environment_comes_before_the_secrets_file(
    environment: dict[str, str], secrets: dict[str, object], host: str
) -> None:
    entry = catalogue(environment, secrets).entry("horde")
    assert (entry.where, entry.title, entry.kind) == (host, host, "live")


@pytest.mark.parametrize("address", ["nowhere", "https://me:hunter2@horde.example", "ftp://x"])
def test_an_address_that_cannot_be_used_is_a_problem_and_costs_no_other_source(address: str) -> None:
    found = catalogue({"HORDE_URL": address})
    assert list(found.keys()) == ["demo", "aihorde", *BUNDLED]
    (problem,) = found.problems
    assert problem.subject == "HORDE_URL"
    assert "this source is left out" in problem.text
    assert "hunter2" not in problem.text


@pytest.mark.parametrize("section", ["hunter2", ["https://x.example"], {}, {"uri": "https://x.example"}, 7])
def test_a_section_of_the_secrets_file_that_is_none_is_told_without_its_content(section: object) -> None:
    found = catalogue({}, {"horde": section})
    assert list(found.keys()) == ["demo", "aihorde", *BUNDLED]
    (problem,) = found.problems
    assert problem.text.startswith("setting horde in the secrets file: '(hidden)' must be a section with url")
    assert "this source is left out" in problem.text
    assert "hunter2" not in problem.text
    assert "example" not in problem.text


@pytest.mark.parametrize(
    ("environment", "setting"),
    [
        ({}, "HORDE_URL in the secrets file"),
        ({"HORDE_URL": "nowhere"}, "HORDE_URL in the secrets file"),
        ({"HORDE_URL": "x"}, "HORDE_URL"),
    ],
)
def test_the_setting_that_was_used_is_named(environment: dict[str, str], setting: str) -> None:
    """Streamlit copies the top of the secrets file into the environment."""
    (problem,) = catalogue(environment, {"HORDE_URL": "nowhere"}).problems
    assert problem.subject == setting
    assert problem.text.startswith(f"setting {setting}: ")


@pytest.mark.parametrize(
    "content", [b"this is = not toml ][ hunter2", b'horde = "hunter2', b"\xff\xfe", b"[horde]\nurl = hunter2"]
)
def test_a_secrets_file_that_is_no_toml_is_told_without_its_content(tmp_path: Path, content: bytes) -> None:
    good, bad = tmp_path / "good" / "secrets.toml", tmp_path / ".streamlit" / "secrets.toml"
    for file in (good, bad):
        file.parent.mkdir()
    good.write_text('HORDE_URL = "https://horde.example"\n', encoding="utf-8")
    bad.write_bytes(content)
    (problem,) = unreadable_secrets([tmp_path / "none.toml", str(good), bad])
    assert problem.text.startswith("secrets file .streamlit/secrets.toml is not ")
    assert problem.text.endswith("nothing of it is in force: no address, no sign-in")
    assert "hunter2" not in problem.text


def test_recorded_folders_and_folders_of_such(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("week/monday", "week/Tuesday Night", "week/empty", "one", "other/one"):
        (tmp_path / name).mkdir(parents=True)
        if not name.endswith("empty"):
            (tmp_path / name / "workers_text.json").write_text("[]", encoding="utf-8")
    folders = [tmp_path / "week", tmp_path / "one", tmp_path / "other" / "one", tmp_path / "gone"]
    found = catalogue({"HORDE_POLICY_RECORDED": os.pathsep.join([*map(str, folders), ""])})
    assert list(found.keys())[2:6] == ["recorded-tuesday-night", "recorded-monday", "recorded-one", "recorded-one-2"]
    assert found.entry("recorded-monday").title == "monday"
    assert found.build("recorded-monday").load().workers.height == 0
    (problem,) = found.problems
    assert problem.text == "setting HORDE_POLICY_RECORDED: 'gone' holds no recorded folder; it is left out"
    assert str(tmp_path / "gone") in caplog.text, "the log has the whole path"


def test_a_folders_hostile_name_gives_a_plain_key(tmp_path: Path) -> None:
    folder = tmp_path / '<img src=x onerror="alert(1)">'
    folder.mkdir()
    (folder / "workers_text.json").write_text("[]", encoding="utf-8")
    entry = catalogue({"HORDE_POLICY_RECORDED": str(folder)}).entries[2]
    assert entry.key == "recorded-img-src-x-onerror-alert-1"
    assert entry.title == folder.name


def test_a_source_that_is_not_configured_is_bad_input() -> None:
    with pytest.raises(InputError, match=r"source: 'https://evil\.example' must be one of demo, aihorde"):
        catalogue().build("https://evil.example")
