"""The fill rules: what each assigns, that nothing but the row's key decides it, and how the load is scaled (traces.md §4)."""

import bisect
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.frames.traffic import REQUESTER, TRAFFIC
from horde_policy.imports.trace_frame import TRACE, Trace
from horde_policy.imports.traces import load_trace
from horde_policy.replay.draws import u
from horde_policy.replay.fill import ModelWeights, filled, shift_s
from horde_policy.replay.fill_rule import CLIENT_SIZES, LADDER, FillRule
from tests.unit.traffic.paths import TRACES

WEIGHTS = ModelWeights(counts={"b": 1, "a": 3, "zero": 0}, source="made up")
START = datetime(2026, 11, 29, tzinfo=UTC)


def trace_of(
    outputs: list[int], *, clients: list[str | None] | None = None, name: str = "t", format_name: str = "azure", **more: object
) -> Trace:
    rows = len(outputs)
    frame = pl.DataFrame(
        {
            "row": pl.int_range(rows, eager=True),
            "created": [START + timedelta(seconds=n) for n in range(rows)],
            "client": pl.Series(clients or [None] * rows, dtype=pl.String),
            "model": pl.Series(["GPT-4"] * rows, dtype=pl.String),
            "input_tokens": [100] * rows,
            "output_tokens": outputs,
            "chat": [False] * rows,
            "failed": [output == 0 for output in outputs],
        },
        schema=TRACE.polars_schema(),
    )
    return Trace(name=name, format=format_name, frame=frame, rows_read=rows, refused={}, **more)  # type: ignore[arg-type]


def asked(outputs: list[int], rule: str, **given: object) -> list[int]:
    return filled(trace_of(outputs, **given), FillRule.parsed(f"max_length={rule}")).frame["max_length"].to_list()  # type: ignore[arg-type]


def test_tight_and_ladder_at_their_edges() -> None:
    outputs = [0, 1, 16, 17, 80, 81, 150, 151, 256, 257, 512, 513, 1024, 1025, 2048, 2049, 4096, 4097, 8192, 8193, 16384, 16385]
    assert asked(outputs, "tight") == [min(max(16, output), 16384) for output in outputs]
    steps = [next((step for step in LADDER if step >= output), 16384) for output in outputs]
    assert asked(outputs, "ladder") == steps


def test_what_is_over_the_limit_is_clipped_and_flagged() -> None:
    for rule in ("tight", "ladder", "client_setting"):
        frame = filled(trace_of([16384, 16385, 32768]), FillRule.parsed(f"max_length={rule}")).frame
        assert frame["max_length"].to_list() == [16384] * 3
        assert frame["clipped"].to_list() == [False, True, True]
        assert frame["output_tokens"].to_list() == [16384, 16385, 32768]


def test_the_service_cap_is_one_constant_known_for_azure_and_mooncake() -> None:
    assert asked([5, 999, 1000], "service_cap") == [1000] * 3
    assert asked([5], "service_cap", format_name="mooncake") == [2000]
    assert asked([5], "service_cap:300", format_name="ragpulse") == [300]
    with pytest.raises(InputError, match="needs its tokens, as service_cap:1000"):
        asked([5], "service_cap", format_name="ragpulse")
    frame = filled(trace_of([300, 301]), FillRule.parsed("max_length=service_cap:300")).frame
    assert frame["clipped"].to_list() == [False, True]


def test_a_client_sets_its_size_once_and_gets_at_least_the_ladder() -> None:
    clients: list[str | None] = [f"c{n % 40}" for n in range(400)]
    trace = trace_of([10] * 399 + [5000], clients=clients)
    frame = filled(trace, FillRule.parsed("max_length=client_setting:1/1/2/1/1")).frame
    reached = [1 / 6, 2 / 6, 4 / 6, 5 / 6, 1]
    for row in frame.rows(named=True)[:-1]:
        place = bisect.bisect_right(reached, u("max_tokens", f"t|{row['client']}"))
        assert row["max_length"] == CLIENT_SIZES[place]
    assert frame["max_length"][-1] == 8192
    assert filled(trace, FillRule.parsed("max_length=client_setting:0/0/1/0/0")).frame["max_length"][:399].unique().to_list() == [
        1024
    ]


def test_requesters_pay_models_and_downgrades_follow_their_draws() -> None:
    rule = FillRule.parsed("models=weighted,requester=0.6/0.25,can_pay=0.3,allow_downgrade=0.2")
    frame = filled(load_trace(TRACES / "burstgpt1.first400.csv"), rule, weights=WEIGHTS).frame
    assert frame.height == 400
    for row in frame.rows(named=True):
        key = f"burstgpt1|{row['row']}"
        draw = u("requester", key)
        kind = "anonymous" if draw < 0.6 else "shared_key" if draw < 0.85 else "registered"
        assert row["requester"] == kind
        assert row["can_pay"] == (kind != "anonymous" and u("pay", key) < 0.3)
        assert row["allow_downgrade"] == (u("downgrade", key) < 0.2)
        assert row["models"] == (["a"] if u("model", key) < 0.75 else ["b"])


def test_one_client_has_one_kind_model_and_size() -> None:
    rule = FillRule.parsed("max_length=client_setting,models=weighted,requester=0.5/0.2")
    frame = filled(load_trace(TRACES / "ragpulse_week1.parquet"), rule, weights=WEIGHTS).frame
    by_client = frame.group_by("client").agg(pl.col("requester", "models", "can_pay").n_unique())
    assert by_client.select(pl.col("requester", "models", "can_pay").max()).row(0) == (1, 1, 1)
    first = frame.filter(pl.col("client") == "1757476916095-afhwfadnh5ew")
    assert round(u("requester", "ragpulse_week1|1757476916095-afhwfadnh5ew"), 6) == 0.243863
    assert first["requester"].unique().to_list() == ["anonymous"]


def test_shares_of_none_and_all() -> None:
    def kinds(text: str) -> list[str]:
        return filled(trace_of([1] * 50), FillRule.parsed(text)).frame["requester"].unique().to_list()

    assert kinds("requester=1/0") == ["anonymous"]
    assert kinds("requester=0/1") == ["shared_key"]
    assert kinds("requester=0/0") == ["registered"]
    assert filled(trace_of([1] * 50), FillRule.parsed("requester=0/0,can_pay=1")).frame["can_pay"].all()
    assert not filled(trace_of([1] * 50), FillRule.parsed("requester=1/0,can_pay=1")).frame["can_pay"].any()


def test_pseudo_clients_by_rank_weights() -> None:
    rule = FillRule.parsed("clients=43/1.3")
    frame = filled(load_trace(TRACES / "azure2023_conv.parquet"), rule).frame
    weights = [rank**-1.3 for rank in range(1, 44)]
    reached = [sum(weights[: n + 1]) / sum(weights) for n in range(43)]
    for row in frame.head(300).rows(named=True):
        rank = bisect.bisect_right(reached, u("client", f"azure2023_conv|{row['row']}")) + 1
        assert row["client"] == f"client-{rank}"
    shares = frame["client"].value_counts(normalize=True, sort=True)
    assert shares["client"][0] == "client-1"
    assert shares["proportion"][0] == pytest.approx(weights[0] / sum(weights), abs=0.02)
    assert frame.group_by("client").agg(pl.col("requester").n_unique())["requester"].max() == 1


def test_pseudo_clients_leave_published_ones_alone() -> None:
    frame = filled(trace_of([1, 1], clients=["s", None]), FillRule.parsed("clients=5/1")).frame
    assert frame["client"][0] == "s"
    assert frame["client"][1].startswith("client-")


def test_models_any_mapped_and_what_they_need() -> None:
    trace = trace_of([1, 2])
    assert filled(trace, FillRule()).frame["models"].to_list() == [[], []]
    mapped = filled(trace, FillRule.parsed("models=mapped"), model_map={"GPT-4": ["x", "y"]}).frame
    assert mapped["models"].to_list() == [["x", "y"]] * 2
    with pytest.raises(InputError, match="needs a map"):
        filled(trace, FillRule.parsed("models=mapped"))
    with pytest.raises(InputError, match="'GPT-4' is a model of the trace that the map does not name"):
        filled(trace, FillRule.parsed("models=mapped"), model_map={"ChatGPT": ["x"]})
    for weights in (None, ModelWeights(counts={"a": 0}, source="s")):
        with pytest.raises(InputError, match="needs the counts of the public statistics"):
            filled(trace, FillRule.parsed("models=weighted"), weights=weights)


def test_the_context_holds_input_and_asked() -> None:
    trace = trace_of([16, 16, 16])
    frame = trace.frame.with_columns(pl.Series("input_tokens", [2048 - 16, 2048 - 15, 126_195]))
    traffic = filled(
        Trace(name="t", format="azure", frame=frame, rows_read=3, refused={}), FillRule.parsed("max_length=tight")
    ).frame
    assert traffic["max_context_length"].to_list() == [2048, 4096, 131_072]
    fixed = filled(trace, FillRule.parsed("context=8192")).frame
    assert fixed["max_context_length"].to_list() == [8192] * 3


def test_failures_stay_arrivals_without_work() -> None:
    frame = filled(load_trace(TRACES / "burstgpt1.first400.csv"), FillRule()).frame.filter("failed")
    assert frame.height == 17
    assert frame["output_tokens"].sum() == 0
    assert frame["max_length"].unique().to_list() == [80]


def test_what_a_source_knows_is_kept() -> None:
    known = trace_of([10, 20, 30, 40]).frame.with_columns(
        pl.Series("max_length", [99, None, 50, None], dtype=pl.Int64),
        pl.Series("requester", ["registered", None, None, None]).cast(REQUESTER),
        pl.Series("can_pay", [True, None, None, None]),
        pl.Series("request_id", ["mine", None, None, None]),
        pl.Series("models", [["m"], [], ["a", "b"], []]),
        pl.Series("priority", [7.0, None, None, None]),
        pl.Series("slow_workers", [False, None, None, None]),
    )
    trace = Trace(name="t", format="traffic", frame=known, rows_read=4, refused={})
    frame = filled(trace, FillRule.parsed("requester=1/0")).frame
    assert frame["max_length"].to_list() == [99, 80, 50, 80]
    assert frame["requester"].to_list() == ["registered", *["anonymous"] * 3]
    assert frame["can_pay"].to_list() == [True, False, False, False]
    assert frame["request_id"].to_list() == ["mine", "1", "2", "3"]
    assert frame["models"].to_list() == [["m"], [], ["a", "b"], []]
    assert frame["priority"].to_list() == [7.0, -50.0, -50.0, -50.0]
    assert frame["slow_workers"].to_list() == [False, True, True, True]


def test_a_null_list_of_models_is_absent_and_an_empty_one_is_any() -> None:
    frame = trace_of([1, 1, 1]).frame.with_columns(pl.Series("models", [None, [], ["m"]], dtype=pl.List(pl.String)))
    trace = Trace(name="t", format="traffic", frame=frame, rows_read=3, refused={})
    traffic = filled(trace, FillRule.parsed("models=weighted"), weights=ModelWeights(counts={"a": 1}, source="s")).frame
    assert traffic["models"].to_list() == [["a"], [], ["m"]]


def test_a_size_that_is_given_stays_below_what_was_used() -> None:
    frame = trace_of([500]).frame.with_columns(pl.Series("max_length", [100], dtype=pl.Int64))
    traffic = filled(Trace(name="t", format="traffic", frame=frame, rows_read=1, refused={}), FillRule()).frame
    assert traffic.select("max_length", "output_tokens", "clipped").row(0) == (100, 500, False)


def test_no_output_and_no_size_cannot_be_filled() -> None:
    frame = trace_of([1, 1]).frame.with_columns(pl.Series("output_tokens", [1, None], dtype=pl.Int64))
    with pytest.raises(InputError, match="row 1, column output_tokens: None must not be absent"):
        filled(Trace(name="t", format="traffic", frame=frame, rows_read=2, refused={}), FillRule())


def test_a_log_that_knows_the_anonymous_and_no_outputs() -> None:
    frame = trace_of([0] * 60, clients=[None] * 20 + [f"h{n}" for n in range(40)]).frame.with_columns(
        pl.lit(None, pl.Int64).alias("output_tokens"),
        pl.lit(None, pl.Int64).alias("input_tokens"),
        pl.lit(100, pl.Int64).alias("max_length"),
        pl.Series("requester", ["anonymous"] * 20 + [None] * 40).cast(REQUESTER),
    )
    trace = Trace(name="t", format="server_log", frame=frame, rows_read=60, refused={}, anonymous_known=True)
    rule = FillRule.parsed("requester=0.4/0.5,output=0.25,clients=3/1")
    traffic = filled(trace, rule).frame
    assert traffic["requester"][:20].unique().to_list() == ["anonymous"]
    for row in traffic.rows(named=True)[20:]:
        assert row["requester"] == ("shared_key" if u("requester", f"t|{row['client']}") < 0.5 else "registered")
    assert traffic["output_tokens"].unique().to_list() == [25]
    assert traffic["max_context_length"].unique().to_list() == [2048]
    assert all(client.startswith("anonymous-") for client in traffic["client"][:20])
    assert filled(trace, FillRule()).frame["output_tokens"].unique().to_list() == [100]


# --- scaling ---------------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 399), min_size=1), st.sampled_from(["ladder", "client_setting", "tight"]))
@settings(max_examples=25, deadline=None)
def test_filtering_first_changes_nothing(kept: set[int], size: str) -> None:
    whole = load_trace(TRACES / "burstgpt1.first400.csv")
    rule = FillRule.parsed(f"max_length={size},models=weighted,clients=43/1.3,allow_downgrade=0.5")
    part_frame = whole.frame.filter(pl.col("row").is_in(list(kept))).sort("output_tokens", "row")
    part = Trace(name=whole.name, format=whole.format, frame=part_frame, rows_read=len(kept), refused={})
    all_rows = filled(whole, rule, weights=WEIGHTS).frame.filter(pl.col("row").is_in(list(kept)))
    assert filled(part, rule, weights=WEIGHTS).frame.sort("row").equals(all_rows)


def test_thinning_keeps_rows_or_whole_clients_by_their_draw() -> None:
    azure = load_trace(TRACES / "azure2023_conv.head300.csv")
    thin = filled(azure, FillRule(), thin=0.4)
    assert thin.frame["row"].to_list() == [row for row in range(300) if u("thin", f"azure2023_conv|{row}") < 0.4]
    assert thin.stamp["thinned"] == 300 - thin.frame.height
    assert thin.frame.equals(filled(azure, FillRule()).frame.filter(pl.col("row").is_in(thin.frame["row"].to_list())))
    rag = load_trace(TRACES / "ragpulse_week1.parquet")
    kept = set(filled(rag, FillRule(), thin=0.5).frame["client"])
    assert kept == {client for client in rag.frame["client"] if u("thin", f"ragpulse_week1|{client}") < 0.5}
    by_row = trace_of([1] * 200, clients=["one"] * 200, thin_by_row=True)
    assert 60 < filled(by_row, FillRule(), thin=0.5).frame.height < 140
    assert filled(azure, FillRule(), thin=0).frame.height == 0
    assert filled(azure, FillRule(), thin=1).frame.height == 300


def test_superposing_keeps_gaps_and_gives_every_request_an_id_of_its_own() -> None:
    trace = trace_of([10] * 50, clients=["c"] * 50)
    traffic = filled(trace, FillRule.parsed("max_length=tight"), superpose=3, seed=7)
    assert traffic.frame.height == 150
    assert traffic.frame["request_id"].n_unique() == 150
    assert traffic.frame["created"].is_sorted()
    assert traffic.frame["client"].unique().sort().to_list() == ["c", "c~2", "c~3"]
    assert traffic.stamp["shifts_s"] == [0.0, *(round(shift_s(7, copy), 6) for copy in (1, 2))]
    for copy in range(3):
        times = traffic.frame.filter(pl.col("copy") == copy)["created"]
        assert times.diff().drop_nulls().unique().to_list() == [timedelta(seconds=1)]
        assert times[0] - START == timedelta(microseconds=round(shift_s(7, copy) * 1e6))
        assert timedelta() <= times[0] - START < timedelta(minutes=45)
    first = traffic.frame.filter(pl.col("copy") == 0).drop("fill")
    assert first.equals(filled(trace, FillRule.parsed("max_length=tight")).frame.drop("fill"))
    assert filled(trace, FillRule(), superpose=3, seed=8).stamp["shifts_s"] != traffic.stamp["shifts_s"]


def test_copies_draw_their_own_fields_and_thin_their_own_rows() -> None:
    frame = filled(load_trace(TRACES / "azure2023_conv.head300.csv"), FillRule(), superpose=2, thin=0.5).frame
    rows = [set(frame.filter(pl.col("copy") == copy)["row"]) for copy in (0, 1)]
    assert rows[0] != rows[1]
    assert rows[1] == {row for row in range(300) if u("thin", f"azure2023_conv~2|{row}") < 0.5}


@pytest.mark.parametrize("given_scaling", [{"thin": -0.1}, {"thin": 1.1}, {"superpose": 0}, {"superpose": 1001}])
def test_scalings_out_of_range_are_refused(given_scaling: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be"):
        filled(trace_of([1]), FillRule(), **given_scaling)  # type: ignore[arg-type]


# --- what goes with the result ---------------------------------------------------------------------------------------


def test_the_rule_stands_on_every_row_and_in_the_stamp() -> None:
    rule = FillRule.parsed("max_length=ladder,models=weighted,requester=0.7/0.1,can_pay=0.5")
    traffic = filled(load_trace(TRACES / "ragpulse_week1.parquet"), rule, weights=WEIGHTS)
    assert traffic.frame["fill"].unique().to_list() == [str(rule)] == [traffic.stamp["fill"]]
    assert str(rule).startswith("max_length=ladder,models=weighted,requester=0.7/0.1,can_pay=0.5")
    assert traffic.stamp["models_from"] == "made up"
    assert TRAFFIC.checked(traffic.frame).width == len(TRAFFIC.columns)


def test_the_totals_of_the_stamp_add_up() -> None:
    for path in sorted(TRACES.glob("*[!e].*")):
        if path.name.startswith(("servegen", "README")):
            continue
        stamp = filled(load_trace(path), FillRule(), thin=0.7, superpose=2).stamp
        assert stamp["rows_read"] == stamp["kept"] + sum(stamp["refused"].values())
        assert stamp["kept"] * stamp["superpose"] == stamp["requests"] + stamp["thinned"]


def test_no_rows_are_filled_with_nothing() -> None:
    traffic = filled(
        trace_of([]), FillRule.parsed("models=weighted,clients=5/1,max_length=client_setting"), weights=WEIGHTS, superpose=2
    )
    assert traffic.frame.height == 0
    assert traffic.stamp["requests"] == 0


def test_the_same_file_and_rule_give_the_same_bytes() -> None:
    trace = load_trace(TRACES / "mooncake_conversation.head200.jsonl")
    digests = set()
    for _ in range(2):
        frame = filled(trace, FillRule.parsed("clients=9/0.8"), superpose=2, seed=3).frame
        digests.add(sha256(frame.write_ndjson().encode()).hexdigest())
    assert len(digests) == 1


# --- the rule as text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_length=tight",
        "max_length=service_cap:1000",
        "max_length=client_setting:1/2/3/4/5,models=any,requester=0/0,can_pay=1,allow_downgrade=0.25,clients=43/1.3",
        " max_length = ladder , context=4096, output=0.2, clients=none",
    ],
)
def test_a_rule_is_read_back_from_its_own_text(text: str) -> None:
    rule = FillRule.parsed(text)
    assert FillRule.parsed(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_length", "must have the form name=value"),
        ("size=ladder", "size: 'ladder' is no field; the fields are max_length, models"),
        ("max_length=ladder,max_length=tight", "is named twice"),
        ("max_length=loose", "max_length: 'loose' must be tight, ladder, service_cap, client_setting"),
        ("max_length=ladder:5", "takes nothing behind the colon"),
        ("max_length=service_cap:0", "max_length: '0' must be a whole number of at least 1"),
        ("max_length=service_cap:-5", "must be a whole number"),
        ("max_length=service_cap:99999", "must be 1 to 16384"),
        ("max_length=client_setting:1/2", "must have a weight of at least 0 for each of 256/512/1024/2048/4096"),
        ("max_length=client_setting:0/0/0/0/0", "not all 0"),
        ("max_length=client_setting:1/1/1/1/nan", "must be a number"),
        ("models=best", "must be any, weighted, mapped"),
        ("requester=0.7", "must be two numbers joined by /"),
        ("requester=0.7/0.4", "is the sum of both shares and must not be above 1"),
        ("requester=-0.1/0.4", "must be a share of 0 to 1"),
        ("can_pay=2", "can_pay: 2.0 must be a share of 0 to 1"),
        ("can_pay=all", "must be a number"),
        ("clients=0/1", "must be N/z"),
        ("clients=43", "must be two numbers joined by /"),
        ("context=big", "must be a whole number"),
        ("output=1.5", "must be asked, or a share of 0 to 1"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_where_it_is_typed(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"fill rule.*{message}"):
        FillRule.parsed(text)


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_an_input_error(text: str) -> None:
    try:
        rule = FillRule.parsed(text)
    except InputError:
        return
    assert FillRule.parsed(str(rule)) == rule
