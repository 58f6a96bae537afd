"""Usage of every shape becomes five disjoint token classes (B5; budgets.md §3)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.prices import CacheAsked
from horde_policy.budget.settlement import outcome_of
from horde_policy.budget.usage import FLAGS, TokenUsage, read_usage
from horde_policy.errors import InputError
from tests.unit.budget.shapes import MICRO, atto, held, price, rates


def classes(usage: TokenUsage | None) -> tuple[int, int, int, int, int] | None:
    return None if usage is None else (usage.fresh, usage.cache_read, usage.write_5m, usage.write_1h, usage.output)


@pytest.mark.parametrize(
    ("response", "expected", "flags"),
    [
        # OpenAI chat: cached inside the prompt, reasoning inside the completion
        ({"usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}, (100, 0, 0, 0, 20), ()),
        (
            {
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "total_tokens": 120,
                    "prompt_tokens_details": {"cached_tokens": 60},
                    "completion_tokens_details": {"reasoning_tokens": 15},
                }
            },
            (40, 60, 0, 0, 20),
            (),
        ),
        # reasoning outside the completion: the total says so (xAI and others)
        (
            {
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "total_tokens": 135,
                    "completion_tokens_details": {"reasoning_tokens": 15},
                }
            },
            (100, 0, 0, 0, 35),
            ("reasoning_added",),
        ),
        # reasoning larger than the completion cannot be inside it
        (
            {"usage": {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 9}}},
            (1, 0, 0, 0, 11),
            ("reasoning_added",),
        ),
        # neither reading adds up: the larger, which is what the total says, flagged
        (
            {
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "total_tokens": 999,
                    "completion_tokens_details": {"reasoning_tokens": 15},
                }
            },
            (100, 0, 0, 0, 899),
            ("total_mismatch", "reasoning_added"),
        ),
        # cache writes that an OpenAI-style server reports
        (
            {"usage": {"prompt_tokens": 194, "completion_tokens": 2, "prompt_tokens_details": {"cache_write_tokens": 100}}},
            (94, 0, 100, 0, 2),
            ("cache_ttl_assumed",),
        ),
        # more cached than input
        (
            {"usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 60}}},
            (0, 60, 0, 0, 2),
            ("cached_above_input",),
        ),
        # OpenAI responses
        (
            {
                "object": "response",
                "usage": {
                    "input_tokens": 75,
                    "input_tokens_details": {"cached_tokens": 25},
                    "output_tokens": 1186,
                    "output_tokens_details": {"reasoning_tokens": 1024},
                    "total_tokens": 1261,
                },
            },
            (50, 25, 0, 0, 1186),
            (),
        ),
        # Anthropic: three disjoint input classes, writes split by lifetime
        (
            {
                "usage": {
                    "input_tokens": 2048,
                    "cache_read_input_tokens": 1800,
                    "cache_creation_input_tokens": 248,
                    "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100},
                    "output_tokens": 503,
                }
            },
            (2048, 1800, 148, 100, 503),
            (),
        ),
        # total and split disagree: the larger, never both
        (
            {
                "usage": {
                    "input_tokens": 1,
                    "cache_creation_input_tokens": 300,
                    "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100},
                    "output_tokens": 5,
                }
            },
            (1, 0, 200, 100, 5),
            ("cache_split_disagrees",),
        ),
        (
            {
                "usage": {
                    "input_tokens": 1,
                    "cache_creation_input_tokens": 10,
                    "cache_creation": {"ephemeral_5m_input_tokens": 148},
                    "output_tokens": 5,
                }
            },
            (1, 0, 148, 0, 5),
            ("cache_split_disagrees",),
        ),
        ({"usage": {"input_tokens": 1, "cache_creation_input_tokens": 0, "output_tokens": 5}}, (1, 0, 0, 0, 5), ()),
        # Gemini: cached inside the prompt, thoughts added, tool prompts are input
        (
            {
                "usageMetadata": {
                    "promptTokenCount": 100,
                    "cachedContentTokenCount": 30,
                    "candidatesTokenCount": 20,
                    "thoughtsTokenCount": 50,
                    "toolUsePromptTokenCount": 7,
                    "totalTokenCount": 177,
                }
            },
            (77, 30, 0, 0, 70),
            ("reasoning_added",),
        ),
        # thoughts inside the candidates: the total says so
        (
            {
                "usageMetadata": {
                    "promptTokenCount": 100,
                    "candidatesTokenCount": 70,
                    "thoughtsTokenCount": 50,
                    "totalTokenCount": 170,
                }
            },
            (100, 0, 0, 0, 70),
            (),
        ),
        # zeros are left out by this API
        ({"usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}}, (9, 0, 0, 0, 0), ()),
        # Bedrock Converse: disjoint, details by lifetime
        (
            {
                "usage": {
                    "inputTokens": 10,
                    "outputTokens": 20,
                    "totalTokens": 30,
                    "cacheReadInputTokens": 5,
                    "cacheWriteInputTokens": 40,
                    "cacheDetails": [{"ttl": "1h", "inputTokens": 30}, {"ttl": "5m", "inputTokens": 10}],
                }
            },
            (10, 5, 10, 30, 20),
            (),
        ),
        # explicit zeros are values
        ({"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}, (0, 0, 0, 0, 0), ()),
        # bare usage, and an event that carries a response
        ({"prompt_tokens": 3, "completion_tokens": 4}, (3, 0, 0, 0, 4), ()),
        ({"type": "response.completed", "response": {"usage": {"input_tokens": 3, "output_tokens": 4}}}, (3, 0, 0, 0, 4), ()),
    ],
)
def test_each_shape_becomes_five_disjoint_classes(
    response: dict[str, Any], expected: tuple[int, ...], flags: tuple[str, ...]
) -> None:
    usage = read_usage(response)
    assert usage is not None
    assert classes(usage) == expected
    assert usage.flags == flags
    assert usage.complete


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"usage": None},
        {"usage": {}},
        {"usage": {"kudos": 12.5}},
        {"usage": {"prompt_tokens": None, "completion_tokens": None}},
        {"choices": []},
        None,
        [],
        "usage",
        {"usage": [1, 2]},
    ],
)
def test_no_tokens_is_no_usage(response: object) -> None:
    assert read_usage(response) is None


@pytest.mark.parametrize(("cache", "expected"), [("none", (1, 0, 90, 0, 2)), ("5m", (1, 0, 90, 0, 2)), ("1h", (1, 0, 0, 90, 2))])
def test_writes_without_a_lifetime_are_priced_at_the_dearest_that_was_asked_for(
    cache: CacheAsked, expected: tuple[int, ...]
) -> None:
    usage = read_usage({"usage": {"input_tokens": 1, "cache_creation_input_tokens": 90, "output_tokens": 2}}, cache=cache)
    assert usage is not None
    assert classes(usage) == expected
    assert usage.flags == ("cache_ttl_assumed",)


@pytest.mark.parametrize("bad", [-1, 1.5, "7", True, 10**9 + 1, [], float("nan")])
def test_a_count_that_is_none_is_missing_and_flagged_and_never_zero_by_silence(bad: object) -> None:
    no_output = read_usage({"usage": {"prompt_tokens": 5, "completion_tokens": bad}})
    assert no_output is not None
    assert (no_output.complete, no_output.output_known, no_output.input_known) == (False, False, True)
    assert no_output.flags == ("unreadable", "output_missing")
    no_input = read_usage({"usage": {"input_tokens": bad, "output_tokens": 5}})
    assert no_input is not None
    assert (no_input.complete, no_input.input_known) == (False, False)
    no_detail = read_usage(
        {"usage": {"prompt_tokens": 5, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": bad}}}
    )
    assert no_detail is not None
    assert (no_detail.fresh, no_detail.complete, no_detail.flags) == (5, True, ("unreadable",))


CHAT = {"prompt_tokens": 10, "completion_tokens": 5}
COSTLY = {  # every count whose loss would make the cost smaller, in every shape, and the side that is then not known
    "anthropic read": ({"input_tokens": 10, "output_tokens": 5}, ("cache_read_input_tokens",), "input"),
    "anthropic write": ({"input_tokens": 10, "output_tokens": 5}, ("cache_creation_input_tokens",), "input"),
    "anthropic 5 min": ({"input_tokens": 10, "output_tokens": 5}, ("cache_creation", "ephemeral_5m_input_tokens"), "input"),
    "anthropic 1 h": ({"input_tokens": 10, "output_tokens": 5}, ("cache_creation", "ephemeral_1h_input_tokens"), "input"),
    "chat write": (CHAT, ("prompt_tokens_details", "cache_write_tokens"), "input"),
    "chat creation": (CHAT, ("prompt_tokens_details", "cache_creation_tokens"), "input"),
    "chat with anthropic's read": (CHAT, ("cache_read_input_tokens",), "input"),
    "chat with anthropic's write": (CHAT, ("cache_creation_input_tokens",), "input"),
    "chat reasoning": (CHAT, ("completion_tokens_details", "reasoning_tokens"), "output"),
    "responses reasoning": ({"input_tokens": 10, "output_tokens": 5}, ("output_tokens_details", "reasoning_tokens"), "output"),
    "gemini thoughts": ({"promptTokenCount": 10, "candidatesTokenCount": 5}, ("thoughtsTokenCount",), "output"),
    "gemini tools": ({"promptTokenCount": 10, "candidatesTokenCount": 5}, ("toolUsePromptTokenCount",), "input"),
    "bedrock read": ({"inputTokens": 10, "outputTokens": 5}, ("cacheReadInputTokens",), "input"),
    "bedrock write": ({"inputTokens": 10, "outputTokens": 5}, ("cacheWriteInputTokens",), "input"),
    "bedrock detail": ({"inputTokens": 10, "outputTokens": 5}, ("cacheDetails", "inputTokens"), "input"),
}


@pytest.mark.parametrize("bad", ["100000", 300.0, -7, True, 10**9 + 1, {"a": 1}])
@pytest.mark.parametrize("name", COSTLY)
def test_usage_with_an_unreadable_count_that_costs_is_kept_and_never_settled_without_it(name: str, bad: object) -> None:
    fields, path, side = COSTLY[name]
    nested: object = bad if len(path) == 1 else {path[1]: bad}
    usage = read_usage({"usage": {**fields, path[0]: [nested] if path[0] == "cacheDetails" else nested}})
    assert usage is not None
    assert (usage.complete, usage.input_known, usage.output_known) == (False, side == "output", side == "input")
    assert usage.flags[0] == "unreadable"
    assert f"{side}_unreadable" in usage.flags
    found = outcome_of(held(), usage)
    assert (found.state, found.cost_pico) == ("kept", held().hold_pico)


@pytest.mark.parametrize("bad", ["12", 7, True, ["x"]])
def test_details_that_are_no_object_are_unreadable(bad: object) -> None:
    for fields in ({"input_tokens": 1, "output_tokens": 1, "cache_creation": bad}, CHAT | {"completion_tokens_details": bad}):
        usage = read_usage(fields)
        assert usage is not None
        assert not usage.complete
    empty = read_usage(CHAT | {"prompt_tokens_details": [], "completion_tokens_details": {}})
    assert empty is not None
    assert empty.complete


def test_what_is_known_beside_an_unreadable_count_is_kept_where_it_is_more_than_the_hold() -> None:
    usage = read_usage({"input_tokens": 90_000, "output_tokens": 5, "cache_creation_input_tokens": "100000"})
    assert outcome_of(held(), usage).cost_pico == (90_000 * 3 + 5 * 15) * MICRO
    output = read_usage(
        {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "total_tokens": 180,
            "completion_tokens_details": {"reasoning_tokens": "30"},
        }
    )
    assert output is not None
    assert (output.output, output.flags) == (80, ("unreadable", "total_mismatch", "output_unreadable"))


@pytest.mark.parametrize(
    ("fields", "expected", "flags"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 180}, (100, 0, 0, 0, 80), ("total_mismatch",)),
        ({"input_tokens": 100, "output_tokens": 50, "total_tokens": 180}, (100, 0, 0, 0, 80), ("total_mismatch",)),
        ({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 120}, (100, 0, 0, 0, 50), ("total_mismatch",)),
        (
            {"promptTokenCount": 100, "candidatesTokenCount": 50, "totalTokenCount": 180},
            (100, 0, 0, 0, 80),
            ("total_mismatch",),
        ),
        (
            {"inputTokens": 9, "outputTokens": 1, "totalTokens": 30, "cacheReadInputTokens": 5},
            (9, 5, 0, 0, 16),
            ("total_mismatch",),
        ),
        (
            {"input_tokens": 9, "output_tokens": 1, "total_tokens": 30, "cache_read_input_tokens": 5},
            (9, 5, 0, 0, 16),
            ("total_mismatch",),
        ),
        ({"inputTokens": 9, "outputTokens": 1, "totalTokens": 15, "cacheReadInputTokens": 5}, (9, 5, 0, 0, 1), ()),
        # a chat server with Anthropic's cache names: beside the input by the total, or without one; inside it by the total
        (
            {
                "prompt_tokens": 40,
                "completion_tokens": 10,
                "cache_read_input_tokens": 1_000,
                "cache_creation_input_tokens": 500,
                "total_tokens": 1_550,
            },
            (40, 1_000, 500, 0, 10),
            ("cache_ttl_assumed", "cache_added"),
        ),
        ({"prompt_tokens": 40, "completion_tokens": 10, "cache_read_input_tokens": 30}, (40, 30, 0, 0, 10), ("cache_added",)),
        (
            {"prompt_tokens": 40, "completion_tokens": 10, "cache_read_input_tokens": 30, "total_tokens": 50},
            (10, 30, 0, 0, 10),
            (),
        ),
        (
            {"prompt_tokens": 40, "completion_tokens": 10, "cache_read_input_tokens": 30, "total_tokens": 100},
            (40, 30, 0, 0, 30),
            ("cache_added", "total_mismatch"),
        ),
    ],
)
def test_where_the_total_disagrees_the_larger_is_taken_whatever_the_shape(
    fields: dict[str, Any], expected: tuple[int, ...], flags: tuple[str, ...]
) -> None:
    usage = read_usage(fields)
    assert usage is not None
    assert classes(usage) == expected
    assert usage.flags == flags


def test_the_cost_is_the_sum_over_the_classes() -> None:
    usage = TokenUsage(fresh=1_000, cache_read=2_000, write_5m=300, write_1h=40, output=5, reasoning=2)
    expected = 1_000 * atto("3") + 2_000 * atto("0.3") + 300 * atto("3.75") + 40 * atto("6") + 5 * atto("15")
    assert usage.cost_atto(price()) == expected
    apart = price(row=rates(reasoning="20"), fee="0.001")
    assert usage.cost_atto(apart) == expected + 2 * atto("5") + 10**15
    assert usage.input_tokens == 3_340


@pytest.mark.parametrize("field", ["fresh", "output", "cache_read", "write_5m", "write_1h", "reasoning"])
def test_usage_that_is_no_count_is_refused(field: str) -> None:
    given: dict[str, Any] = {"fresh": 1, "output": 1, field: -1}
    with pytest.raises(InputError, match=f"usage, {field}"):
        TokenUsage(**given)


def test_a_flag_that_means_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="usage, flags"):
        TokenUsage(fresh=0, output=0, flags=("odd",))
    assert all(FLAGS.values())
    with pytest.raises(InputError, match="must be at most the output"):
        TokenUsage(fresh=0, output=1, reasoning=2)


FIELDS = {
    "usage",
    "response",
    "message",
    "metadata",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
    "cached_tokens",
    "reasoning_tokens",
    "input_tokens",
    "output_tokens",
    "cache_creation",
    "cache_creation_input_tokens",
    "ephemeral_5m_input_tokens",
    "usageMetadata",
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "totalTokenCount",
    "inputTokens",
    "outputTokens",
    "cacheDetails",
    "ttl",
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**10) | st.floats() | st.text(alphabet="ab5mh", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(FIELDS)), inner, max_size=5),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), json_values, max_size=6))
def test_any_json_from_a_provider_is_read_without_an_error(response: dict[str, Any]) -> None:
    usage = read_usage(response)
    if usage is not None:
        assert usage.cost_atto(price()) >= 0
