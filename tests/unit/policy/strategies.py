"""Random workers, requests and settings for the property tests: few names and sizes, so that they meet often."""

from hypothesis import strategies as st

from horde_policy.policy.eligibility import Request, Worker
from horde_policy.settings import AllowanceSettings

MODELS = ("koboldcpp/L3-8B", "aphrodite/Big-70B", "tabby/Mid-13B", "nameless", "=cmd|<b>x</b>")
AGENTS = ("KoboldCppEmbedWorker:2:url", "AI Horde Worker~aphrodite~oai:1:url", "Other:1:url", "", None)
LENGTHS = (0, 1, 79, 80, 512, 513, 1024, 2048, 4096, 16384, 20000)
CONTEXTS = (0, 80, 1024, 2048, 2049, 4096, 8192, 32768)

few_models = st.lists(st.sampled_from(MODELS), max_size=3, unique=True).map(tuple)
speeds = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 1.0, 2.9, 3.0, 4.0, 5.0, 7.4, 41.1]), st.floats(0.1, 150.0))
flags = st.sampled_from([True, False, None])
worker_lists = st.lists(st.sampled_from([f"w{i}" for i in range(8)]), max_size=7).map(tuple)


@st.composite
def workers(draw: st.DrawFn, worker_id: str = "w", *, ok: bool = False) -> Worker:
    mostly_true = st.just(value=True) if ok else st.sampled_from([True, True, True, False, None])
    mostly_false = st.just(value=False) if ok else st.sampled_from([False, False, False, True, None])
    return Worker(
        worker_id=worker_id,
        models=draw(few_models if ok else st.one_of(few_models, few_models, st.none())),
        max_length=draw(st.sampled_from(LENGTHS) if ok else st.one_of(st.none(), st.sampled_from(LENGTHS), st.integers(0, 5000))),
        max_context_length=draw(st.sampled_from(CONTEXTS) if ok else st.one_of(st.none(), st.sampled_from(CONTEXTS))),
        speed_tok_per_s=draw(speeds),
        measured=draw(flags),
        threads=draw(st.sampled_from([None, 0, 1, 3])),
        online=draw(mostly_true),
        maintenance=draw(mostly_false),
        flagged=draw(mostly_false),
        trusted=draw(flags),
        bridge_agent=draw(st.sampled_from(AGENTS)),
    )


@st.composite
def fleets(draw: st.DrawFn, most: int = 8, *, ok: bool = False) -> tuple[Worker, ...]:
    count = draw(st.integers(0, most))
    return tuple(draw(workers(f"w{i}", ok=ok)) for i in range(count))


@st.composite
def requests(draw: st.DrawFn, *, plain: bool = False) -> Request:
    rare = st.just(value=False) if plain else st.sampled_from([False, False, True])
    return Request(
        models=draw(few_models),
        max_length=draw(st.one_of(st.sampled_from([1, 80, 512, 1024, 4096, 16384]), st.integers(1, 16384))),
        max_context_length=draw(st.one_of(st.sampled_from([80, 1024, 2048, 4096]), st.integers(1, 40000))),
        requester=draw(st.sampled_from(["anonymous", "registered", "shared_key"])),
        can_pay=draw(st.booleans()),
        chat=draw(st.booleans()),
        allow_downgrade=draw(st.booleans()),
        slow_workers=not draw(rare),
        dry_run=draw(st.booleans()),
        trusted_workers=draw(rare),
        validated_backends=draw(rare),
        workers=draw(st.just(()) if plain else st.one_of(st.just(()), worker_lists)),
        worker_blacklist=draw(st.booleans()),
        n=draw(st.sampled_from([1, 1, 2, 20])),
        priority=draw(st.sampled_from([None, 0.0, -50.0, 30.0, 1e6])),
    )


@st.composite
def settings(draw: st.DrawFn) -> AllowanceSettings:
    floor = draw(st.integers(1, 2000))
    full = draw(st.one_of(st.sampled_from([0.0, 60.0]), st.floats(0, 500)))
    return AllowanceSettings(
        floor_tokens=floor,
        ceiling_tokens=floor + draw(st.integers(0, 16384 - 2000)),
        wait_full_s=full,
        wait_floor_s=full + draw(st.floats(0.001, 1000)),
        assumed_speed_tok_per_s=draw(st.sampled_from([10.0, 2.0, 4.5])),
        ahead=draw(st.sampled_from(["queue_order", "all"])),
        count_threads=draw(st.booleans()),
    )
