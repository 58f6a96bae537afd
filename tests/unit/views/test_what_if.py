from horde_policy.board.detail import model_detail
from horde_policy.board.measure import measure
from horde_policy.board.moves import Move, moved, way_back
from horde_policy.board.pool import Fleet
from horde_policy.frames.snapshot import Performance
from horde_policy.policy.alternatives import jobs_rule_allowance, old_rule_allowance
from horde_policy.settings import AllowanceSettings
from horde_policy.views import what_if
from horde_policy.views.model import gap_sentence, losses_by_worker, refused_request, worker_sentence
from horde_policy.views.other_rules import other_rules
from horde_policy.views.state import ViewState
from tests.unit.board.made import listed, snapshot, worker

SETTINGS = AllowanceSettings()


def made_fleet(queued: float | None = 1800.0, jobs: float | None = 6.0) -> Fleet:
    """Two workers of 10 tok/s each, one of which takes 2048 tokens; 90 s of queue."""
    rows = [worker("a", max_length=2048), worker("b", max_length=512, threads=2), worker("c", maintenance=True)]
    return Fleet.of(snapshot(rows, [listed("m", queued, jobs)]), SETTINGS)


def test_a_plain_address_tries_nothing_and_each_field_does() -> None:
    assert not what_if.tries(ViewState())
    assert not what_if.tries(ViewState(added_max_length=80))
    tried = SETTINGS.changed(floor_tokens=256)
    for state in (
        ViewState(queue_change_tokens=-1),
        ViewState(lost=("a",)),
        ViewState(added_tok_per_s=5),
        ViewState(tried=tried),
    ):
        assert what_if.tries(state)


def test_a_worker_that_is_gone_is_told_and_not_lost_again() -> None:
    tried = what_if.move_of(ViewState(lost=("a", "gone")), made_fleet())
    assert tried.move.lost == {"a"}
    assert (tried.gone, tried.elsewhere, tried.changes) == (("gone",), (), True)


def test_a_worker_of_other_models_is_not_lost_and_what_is_left_out_is_told() -> None:
    fleet = Fleet.of(snapshot([worker("a"), worker("other", "n")], [listed("m")]), SETTINGS)
    state = ViewState(models=("m", "none"), lost=("other", "x", "y", "z"))
    tried = what_if.move_of(state, fleet)
    assert (tried.move.lost, tried.gone, tried.elsewhere, tried.changes) == (frozenset(), ("x", "y", "z"), ("other",), False)
    assert what_if.left_out_notes(state, fleet) == (
        "The link's m='none' stays, but no worker of the list serves it, nor is it listed; it may have left.",
        "The link's lost='x' is left out: no worker of the list has that id; it may have left. So with 2 more.",
        "The link's lost='other' is left out: that worker serves none of these models.",
    )
    assert what_if.left_out_notes(ViewState(models=("m",), lost=("a",)), fleet) == ()
    any_model = what_if.move_of(ViewState(lost=("other",)), fleet)
    assert any_model.move.lost == {"other"}


def test_an_added_worker_takes_the_size_it_is_said_to_at_the_context_asked() -> None:
    state = ViewState(added_tok_per_s=40, added_max_length=4096, max_context_tokens=8192)
    fleet = made_fleet()
    then = moved(fleet, ("m",), 4096, what_if.move_of(state, fleet).move, context_tokens=8192)
    assert (then.eligible_workers, then.speed_tok_per_s) == (1, 40.0)


def test_the_sentences_say_what_is_changed_and_what_comes_of_it() -> None:
    fleet = made_fleet()
    move = Move(queue_change_tokens=-600, lost=frozenset({"b"}), settings=SETTINGS.changed(wait_floor_s=600.0))
    assert what_if.move_sentence(move, fleet) == "With 600 tokens fewer queued, without name of b, with floor wait 10 min"
    now, then = measure(fleet, ("m",), 80), moved(fleet, ("m",), 80, Move(lost=frozenset({"b"})))
    assert (now.allowance_tokens, then.allowance_tokens) == (3648, 2304)
    sentence = what_if.moved_sentence(now, then)
    assert sentence.startswith("the allowance falls from 3,648 to 2,304 tokens, and the largest free request ")
    unknown = measure(made_fleet(None), ("m",), 80)
    assert "goes from 3,648 to — tokens" in what_if.moved_sentence(now, unknown)


def test_the_wait_time_is_the_estimate_and_the_own_output() -> None:
    assert what_if.status_wait_time_s(measure(made_fleet(), ("m",), 500)) == 90.0 + 25.0
    assert what_if.status_wait_time_s(measure(made_fleet(), ("m",), 4096)) is None


def test_the_comparison_has_one_row_until_something_is_tried() -> None:
    fleet = made_fleet()
    now = measure(fleet, ("m",), 80)
    assert [row.id for row in what_if.compared_rows(now, None, SETTINGS, SETTINGS)] == ["now"]
    then = moved(fleet, ("m",), 80, Move(queue_change_tokens=20_000))
    before, after = what_if.compared_rows(now, then, SETTINGS, SETTINGS)
    assert set(before.cells) == set(after.cells) == {column.key for column in what_if.COMPARED_COLUMNS}
    assert (before.cells["state"], after.cells["state"]) == ("falling", "floor")
    assert (before.cells["queued"], after.cells["queued"]) == ("1,800", "21,800")
    assert (before.cells["speed"], before.cells["wait_time"]) == ({"text": "20.0", "sub": ""}, "94 s")


def test_the_way_back_names_both_ways_and_they_hold() -> None:
    fleet = made_fleet()
    now = measure(fleet, ("m",), 80)
    back = way_back(now, SETTINGS)
    assert what_if.way_back_sentence(back, now, SETTINGS) == (
        "Back at 4,096 tokens with 600 of the 1,800 queued tokens gone or 10.0 tok/s added by workers that take 80 tokens."
    )
    there = moved(fleet, ("m",), 80, Move(queue_change_tokens=-600))
    assert there.allowance_tokens == 4096
    assert "some 0 more queued tokens" in what_if.way_back_sentence(way_back(there, SETTINGS), there, SETTINGS)
    assert what_if.way_back_sentence(way_back(there, SETTINGS), there, SETTINGS, tried=True).startswith(
        "With what is tried: the allowance is at the ceiling of 4,096 tokens: some 0 more"
    )
    assert what_if.way_back_sentence(back, now, SETTINGS, tried=True).startswith("With what is tried: back at 4,096 tokens with ")
    silent = measure(made_fleet(None), ("m",), 80)
    assert "not known" in what_if.way_back_sentence(way_back(silent, SETTINGS), silent, SETTINGS)
    immediate = SETTINGS.changed(wait_full_s=0.0)
    stuck = way_back(now, immediate)
    assert stuck.add_speed_tok_per_s is None
    assert "1,800 of the 1,800 queued tokens gone." in what_if.way_back_sentence(stuck, now, immediate)


def test_the_other_rules_stand_on_each_span_of_sizes() -> None:
    fleet = made_fleet()
    steps = model_detail(fleet, ("m",), 80).steps
    rules = other_rules(fleet, Performance(text_thread_count=20, queued_text_requests=300.0), ("m",), 80, 2048, steps)
    assert rules.old_tokens == old_rule_allowance(20, 300.0)
    assert [step.to_tokens for step in steps] == [512, 2048, 16384]
    assert rules.jobs_by_step == (jobs_rule_allowance(6, 3, SETTINGS), jobs_rule_allowance(6, 1, SETTINGS), 512)
    assert rules.jobs_tokens == rules.jobs_by_step[0] == 2304
    silent = other_rules(made_fleet(jobs=None), None, ("m",), 80, 2048, steps)
    assert (silent.old_tokens, silent.jobs_tokens, silent.jobs_by_step[2]) == (None, None, 512)


def test_each_worker_says_what_its_loss_would_do() -> None:
    fleet = made_fleet()
    detail = model_detail(fleet, ("m",), 512)
    without = losses_by_worker(detail, fleet, 2048)
    assert {worker_id: loss.allowance_tokens for worker_id, loss in without.items()} == {"a": 2304, "b": 2304}
    text = worker_sentence(detail.workers[0], 512, without["a"])
    assert text == (
        "name of a, 10.0 tok/s, is 50.0 % of the combined speed, takes up to 2,048 tokens and makes 512 tokens in 51 s; "
        "without it 2,304 tokens are free."
    )
    resting = worker_sentence(detail.workers[2], 512, None)
    assert resting.startswith("name of c, 10.0 tok/s, does not count at 512 tokens: ")
    many = Fleet.of(snapshot([worker(f"w{i}") for i in range(61)], [listed("m")]), SETTINGS)
    assert losses_by_worker(model_detail(many, ("m",), 80), many, 2048) == {}


def test_the_declaration_gap_is_told_for_a_size_that_nobody_declares() -> None:
    fleet = made_fleet()
    refused = refused_request(model_detail(fleet, ("m",), 4096), fleet, 2048)
    assert refused is not None
    assert gap_sentence(refused) == (
        "Declaration gap: 2,048 tokens of output (the most declared is 2,048) more than any online worker of these models "
        "declares."
    )
    smaller = refused_request(model_detail(made_fleet(90_000.0), ("m",), 1024), made_fleet(90_000.0), 2048)
    assert smaller is not None
    assert gap_sentence(smaller) is None
