"""Names from the network stay as they come through the whole source; only showing them escapes them."""

from pathlib import Path

from horde_policy.sources.horde import HordeClient
from horde_policy.sources.recorded import load_recorded
from tests.make_hostile import HOSTILE, MODEL_NAMES, TEXT, WORKER_NAMES, hostile
from tests.unit.sources.conftest import RECORDED, Stage


def test_the_hostile_folder_is_what_its_script_makes(tmp_path: Path) -> None:
    hostile(tmp_path, RECORDED / "snapshot")
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in HOSTILE.iterdir()}


def test_hostile_names_are_kept_letter_by_letter_and_cost_no_figure() -> None:
    snapshot, plain = load_recorded(HOSTILE), load_recorded(RECORDED / "snapshot")
    assert snapshot.models is not None
    assert plain.models is not None
    served = set(snapshot.workers["models"].explode().drop_nulls())
    assert {*snapshot.models["model"], *served} == set(MODEL_NAMES)
    assert set(snapshot.workers["name"]) == set(WORKER_NAMES)
    assert set(snapshot.workers["owner"]) == {f"{TEXT}#7"}
    assert snapshot.heartbeat is not None
    assert snapshot.heartbeat.version == TEXT
    assert snapshot.workers["max_length"].equals(plain.workers["max_length"])
    assert sorted(snapshot.models["queued_tokens"]) == sorted(plain.models["queued_tokens"])
    assert snapshot.problems == ()
    assert (snapshot.synthetic, snapshot.source) == (True, MODEL_NAMES[0])


def test_hostile_names_come_the_same_over_the_network(stage: Stage, client: HordeClient) -> None:
    stage.server.folder = HOSTILE
    live = client.fetch_snapshot()
    assert live.workers.equals(load_recorded(HOSTILE).workers)
    assert live.models is not None
    for name in live.models["model"]:
        assert client.model(name).value.height == 1  # type: ignore[union-attr]
