"""Price tables: units, missing prices, tiers, cache classes, validity (budgets.md §4)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.price_table import load_prices, parse_prices
from horde_policy.budget.prices import Price, Tier
from horde_policy.errors import InputError, MissingPriceError
from tests.unit.budget.shapes import atto, price, rates

DATA = Path(__file__).parents[3] / "data" / "prices"

HEAD = """
[table]
name = "t"
unit = "{unit}"
source = "s"
{more}
"""


def table_text(rows: str, *, unit: str = "usd_per_million_tokens", more: str = "") -> str:
    return HEAD.format(unit=unit, more=more) + rows


def row(body: str) -> str:
    return f'\n[[price]]\nprovider = "p"\nmodel = "m"\n{body}\n'


def test_a_row_in_dollars_per_million_and_the_same_per_token_are_equal() -> None:
    million = parse_prices(table_text(row('input = "3"\noutput = 15.0\ncache_read = 0.30'))).price("m")
    token = parse_prices(table_text(row('input = "0.000003"\noutput = 1.5e-5\ncache_read = "3e-7"'), unit="usd_per_token")).price(
        "m"
    )
    assert million.rates == token.rates == rates()


def test_unstated_cache_prices_follow_the_input_price_and_a_read_is_never_cheaper_unless_it_is_said() -> None:
    plain = parse_prices(table_text(row('input = "4"\noutput = "8"'))).price("m").rates
    assert (plain.cache_read, plain.cache_write_5m, plain.cache_write_1h) == (atto("4"), atto("5"), atto("8"))
    table = parse_prices(table_text(row('input = "4"\noutput = "8"'), more='cache_read_ratio = "0.1"'))
    assert table.price("m").rates.cache_read == atto("0.4")
    own = parse_prices(table_text(row('input = "4"\noutput = "8"\ncache_read_ratio = "0.5"'), more='cache_read_ratio = "0.1"'))
    assert own.price("m").rates.cache_read == atto("2")


@pytest.mark.parametrize(
    ("body", "more", "place"),
    [
        ('input = "3"\noutput = "15"\ncache_read = "9"', "", "price 1, cache_read: '9'"),
        ('input = "3"\noutput = "15"\ncache_read_ratio = "1.25"', "", "price 1, cache_read_ratio: '1.25'"),
        ('input = "3"\noutput = "15"', 'cache_read_ratio = "1.25"', "price 1, cache_read_ratio: '1.25'"),
        ('input = "0"\noutput = "15"\ncache_read = "1"', "", "price 1, cache_read: '1'"),
        (
            'input = "3"\noutput = "15"\n[[price.tiers]]\nabove_input_tokens = 9\nwhole = true\n'
            'input = "4"\noutput = "15"\ncache_read = "5"\ncache_write_1h = "9"',
            "",
            "price 1, tier 1, cache_read: '5'",
        ),
    ],
)
def test_a_cache_read_dearer_than_input_is_refused_since_the_bound_relies_on_it(body: str, more: str, place: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_prices(table_text(row(body), more=more))
    assert f"{place} must not make a cache read dearer than input" in str(refused.value)
    assert parse_prices(table_text(row('input = "3"\noutput = "15"\ncache_read_ratio = "1"'))).price(
        "m"
    ).rates.cache_read == atto("3")


@pytest.mark.parametrize("missing", ['output = "1"', 'input = "1"'])
def test_a_missing_price_is_not_zero(missing: str) -> None:
    with pytest.raises(InputError, match="is missing; a missing price is not zero"):
        parse_prices(table_text(row(missing)))


def test_free_is_an_explicit_zero() -> None:
    assert parse_prices(table_text(row("input = 0\noutput = 0"))).price("m").is_free
    assert not parse_prices(table_text(row('input = 0\noutput = 0\nfee_per_request = "0.001"'))).price("m").is_free
    assert not parse_prices(table_text(row("input = 0\noutput = 0\nreasoning = 1"))).price("m").is_free


@pytest.mark.parametrize(
    ("body", "unit"),
    [
        ('input = "10000.01"\noutput = "1"', "usd_per_million_tokens"),
        ('input = "1"\noutput = "0.0000009"', "usd_per_million_tokens"),
        ('input = "3"\noutput = "15"', "usd_per_token"),  # dollars per million in a table per token
        ('input = "0.0000000000001"\noutput = "0.000015"', "usd_per_token"),
        ('input = "-1"\noutput = "1"', "usd_per_million_tokens"),
    ],
)
def test_a_price_outside_the_likely_range_is_refused_as_a_mistake_of_unit(body: str, unit: str) -> None:
    with pytest.raises(InputError, match=r"is the table's unit right\?"):
        parse_prices(table_text(row(body), unit=unit))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a section that states name, unit and source"),
        ("[table", "is not TOML"),
        (table_text(row("input = 1\noutput = 1"), unit="usd"), "must be one of usd_per_million_tokens, usd_per_token"),
        (table_text(""), "must be a list of at least one row"),
        (table_text(row("input = 1\noutput = 1\noutput_price = 2")), "'output_price' is not a field"),
        (table_text(row("input = nan\noutput = 1")), "must be a finite decimal number"),
        (table_text(row("input = true\noutput = 1")), "must be a decimal number"),
        (table_text(row('input = "1.1234567890123"\noutput = 1')), "has more decimals than can be kept"),
        (table_text(row("input = 1\noutput = 1\nvalid_from = 2026-01-01T00:00:00")), "must have a time zone"),
        (table_text(row('input = 1\noutput = 1\nvalid_from = "2026-01-01"')), "must be a TOML date or date-time"),
        (table_text(row("input = 1\noutput = 1\ncontext_window_tokens = 0")), "must be a whole number of tokens"),
        (table_text(row("input = 1\noutput = 1\ncaches_unasked = 1")), "must be true or false"),
        (table_text(row("input = 1\noutput = 1\nfee_per_request = -1")), "must be from 0 to 1000 dollars"),
        (table_text(row("input = 1\noutput = 1") * 2), "must be unique for a model"),
        (table_text(row("input = 1\noutput = 1\ntiers = [{ above_input_tokens = 5, input = 2, output = 2 }]")), "must say true"),
        (
            table_text(row("input = 2\noutput = 2\ntiers = [{ above_input_tokens = 5, whole = true, input = 1, output = 2 }]")),
            "must not be cheaper",
        ),
        (
            table_text(row("input = 1\noutput = 1\ntiers = [{ above_input_tokens = 5, whole = false, input = 2, output = 2 }]")),
            "an excess tier states input only",
        ),
        (
            table_text(
                row(
                    "input = 1\noutput = 1\ntiers = [{ above_input_tokens = 5, whole = false, input = 2 }, "
                    "{ above_input_tokens = 9, whole = true, input = 3, output = 3 }]"
                )
            ),
            "must be the same for all tiers",
        ),
        (
            table_text(
                row(
                    "input = 1\noutput = 1\ntiers = [{ above_input_tokens = 5, whole = false, input = 2 }, "
                    "{ above_input_tokens = 5, whole = false, input = 3 }]"
                )
            ),
            "must be stated, and rise",
        ),
        (table_text('\n[[price]]\nprovider = "p"\nmodel = "a\\nb"\ninput = 1\noutput = 1'), "must be a printable text"),
    ],
)
def test_a_table_that_breaks_a_rule_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_prices(text)


def test_the_price_in_force_is_the_latest_that_is_valid() -> None:
    table = parse_prices(
        table_text(
            row("input = 1\noutput = 1\nvalid_from = 2026-01-01")
            + row("input = 2\noutput = 2\nvalid_from = 2026-03-01T12:00:00Z")
        )
    )
    change = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert table.price("m", at=change - timedelta(microseconds=1)).rates.input == atto("1")
    assert table.price("m", at=change).rates.input == atto("2")
    assert table.price("m").rates.input == atto("2")
    with pytest.raises(MissingPriceError, match="has no price before 2026-01-01"):
        table.price("m", at=datetime(2025, 12, 31, 23, 59, tzinfo=UTC))
    with pytest.raises(InputError, match="must have a time zone"):
        table.price("m", at=datetime(2026, 2, 1))  # noqa: DTZ001
    assert table.history("m")[0].rates.input == atto("1")
    assert table.history("none") == ()


def test_a_model_of_several_providers_must_name_one() -> None:
    text = table_text(row("input = 1\noutput = 1") + '\n[[price]]\nprovider = "q"\nmodel = "m"\ninput = 2\noutput = 2')
    table = parse_prices(text)
    with pytest.raises(InputError, match="is offered by p, q: name one"):
        table.price("m")
    assert table.price("m", provider="q").rates.input == atto("2")
    with pytest.raises(MissingPriceError):
        table.price("m", provider="r")


def test_a_whole_tier_prices_every_token_and_an_excess_tier_only_those_above() -> None:
    dearer = rates(input="6", output="22.5", read="0.6", write_5m="7.5", write_1h="12")
    whole = price(tiers=(Tier(above_input_tokens=200_000, rates=dearer, whole=True),))
    assert whole.cost_atto(fresh=200_000, output=10) == 200_000 * atto("3") + 10 * atto("15")
    assert whole.cost_atto(fresh=200_001, output=10) == 200_001 * atto("6") + 10 * atto("22.5")
    assert whole.cost_atto(fresh=1, cache_read=200_000, output=0) == atto("6") + 200_000 * atto("0.6")
    excess = price(tiers=(Tier(above_input_tokens=200_000, rates=rates(input="6"), whole=False),))
    assert excess.cost_atto(fresh=200_000, output=10) == 200_000 * atto("3") + 10 * atto("15")
    assert excess.cost_atto(fresh=200_002, output=10) == 200_000 * atto("3") + 2 * atto("6") + 10 * atto("15")
    assert excess.input_atto(200_002) == 200_000 * atto("3") + 2 * atto("6")


def test_two_excess_tiers_each_price_the_tokens_above_them() -> None:
    tiers = tuple(Tier(above_input_tokens=n, rates=rates(input=p), whole=False) for n, p in ((100, "4"), (200, "6")))
    assert price(tiers=tiers).input_atto(250) == 100 * atto("3") + 100 * atto("4") + 50 * atto("6")


def test_reasoning_may_be_priced_apart() -> None:
    apart = price(row=rates(reasoning="20"))
    assert apart.cost_atto(fresh=0, output=100, reasoning=40) == 60 * atto("15") + 40 * atto("20")
    assert apart.output_atto(100, 0) == 100 * atto("20")
    assert price(row=rates(reasoning="5")).output_atto(100, 0) == 100 * atto("15")


@given(
    st.integers(0, 10**16),
    st.integers(0, 10**16),
    st.one_of(st.none(), st.integers(0, 10**16)),
    st.booleans(),
    st.integers(0, 10**18),
)
def test_a_price_row_survives_the_ledger_and_its_id_names_its_figures(
    first: int, second: int, third: int | None, unasked: bool, fee: int
) -> None:
    base = rates()
    tier = Tier(above_input_tokens=10, rates=base, whole=True)
    made = Price(
        provider="p/ä",
        model="m",
        rates=type(base)(input=first, output=second, cache_read=0, cache_write_5m=first, cache_write_1h=second, reasoning=third),
        tiers=(tier,),
        fee_atto=fee,
        caches_unasked=unasked,
    )
    again = Price.from_text(made.to_text())
    assert again == made
    assert again.price_id == made.price_id
    assert price(fee="0.5").price_id != price(fee="0.25").price_id


def test_the_example_tables_say_that_they_are_examples() -> None:
    for path in sorted(DATA.glob("*.toml")):
        table = load_prices(path)
        assert table.source.startswith("example figures")
        assert table.models
    changing = load_prices(DATA / "example-per-token.toml")
    assert len(changing.history("large")) == 2


def test_a_file_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_prices(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8"):
        load_prices(tmp_path / "latin.toml")
