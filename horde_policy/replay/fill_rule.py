"""The named rule that assigns what no trace records; it decides much, and stands on every result (traces.md §4)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

from horde_policy.errors import InputError
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["CLIENT_SIZES", "LADDER", "FillRule"]

LADDER = (80, 150, 256, 512, 1024, 2048, 4096, 8192, 16384)
"""Output sizes that front-ends offer; a request asks the smallest that holds its answer."""

CLIENT_SIZES = (256, 512, 1024, 2048, 4096)
"""What people set once in a front-end."""

MAX_LENGTH_RULES = ("tight", "ladder", "service_cap", "client_setting")
MODELS_RULES = ("any", "weighted", "mapped")


@dataclass(frozen=True, slots=True, kw_only=True)
class FillRule:
    """How ``max_length``, models, requester and the rest are assigned where a trace does not say.

    Attributes
    ----------
    max_length
        ``tight`` (what was used, at least 16), ``ladder`` (the next of :data:`LADDER`), ``service_cap`` (one constant,
        ``cap_tokens``; null: what the recorded service capped), ``client_setting`` (per client one of
        :data:`CLIENT_SIZES` by ``client_weights``, at least the ladder's).
    models
        ``any`` (the empty list), ``weighted`` (one model a client or row, by the counts of the public statistics),
        ``mapped`` (the trace's own model names through a map).
    anonymous, shared_key
        Shares of requesters, of clients where there are any; the rest is registered.
    can_pay
        Share of the registered and shared-key requesters that can pay a hold.
    allow_downgrade
        Share that allows a lowering to the allowance (A16).
    clients
        Pseudo-clients (N, z) for rows without a client: rank r asks in proportion to 1/r^z. Null: none.
    context_tokens
        Null: the smallest of 2048, 4096, 8192, … that holds input and ``max_length``; or one constant.
    output_share
        Where no output is known (a server log): this share of ``max_length`` is used. Null: all of it.

    Examples
    --------
    >>> rule = FillRule.parsed("max_length=client_setting:1/2/3/2/1,models=weighted,requester=0.7/0.1,can_pay=0.5")
    >>> rule.client_weights, rule.anonymous
    ((1.0, 2.0, 3.0, 2.0, 1.0), 0.7)
    >>> str(FillRule())
    'max_length=ladder,models=any,requester=0.7/0.1,can_pay=0.5,allow_downgrade=0,clients=none,context=needed,output=asked'
    """

    max_length: str = "ladder"
    cap_tokens: int | None = None
    client_weights: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0)
    models: str = "any"
    anonymous: float = 0.7
    shared_key: float = 0.1
    can_pay: float = 0.5
    allow_downgrade: float = 0.0
    clients: tuple[int, float] | None = None
    context_tokens: int | None = None
    output_share: float | None = None

    def __post_init__(self) -> None:
        _check(self.max_length in MAX_LENGTH_RULES, "max_length", self.max_length, "must be " + ", ".join(MAX_LENGTH_RULES))
        _check(self.models in MODELS_RULES, "models", self.models, "must be " + ", ".join(MODELS_RULES))
        cap = self.cap_tokens
        _check(cap is None or 1 <= cap <= MAX_LENGTH_LIMIT_TOKENS, "max_length", cap, f"must be 1 to {MAX_LENGTH_LIMIT_TOKENS}")
        weights = self.client_weights
        fit = len(weights) == len(CLIENT_SIZES) and all(math.isfinite(w) and w >= 0 for w in weights) and sum(weights) > 0
        sizes = "/".join(str(size) for size in CLIENT_SIZES)
        _check(fit, "max_length", weights, f"must have a weight of at least 0 for each of {sizes}, not all 0")
        for name in ("anonymous", "shared_key", "can_pay", "allow_downgrade"):
            _check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "must be a share of 0 to 1")
        both = self.anonymous + self.shared_key
        _check(both <= 1 + 1e-12, "requester", both, "is the sum of both shares and must not be above 1")
        if self.clients is not None:
            n, z = self.clients
            _check(1 <= n <= 10_000_000 and math.isfinite(z), "clients", self.clients, "must be N/z with N from 1 to 10,000,000")
        context = self.context_tokens
        _check(context is None or context >= 1, "context", context, "must be needed, or a number of tokens of at least 1")
        share = self.output_share
        _check(share is None or 0 <= share <= 1, "output", share, "must be asked, or a share of 0 to 1")

    @classmethod
    def parsed(cls, text: str) -> "FillRule":
        """Return the rule of a text like ``max_length=ladder,models=weighted,requester=0.7/0.1,can_pay=0.5``.

        Fields: ``max_length`` (``service_cap:1000``, ``client_setting:1/2/3/2/1``), ``models``, ``requester`` (anonymous
        share / shared-key share), ``can_pay``, ``allow_downgrade``, ``clients`` (``43/1.3`` or ``none``), ``context``
        (``needed`` or tokens), ``output`` (``asked`` or a share). What is not named keeps its default.

        Raises
        ------
        InputError
            A field is unknown, named twice, or breaks its rule.
        """
        given: dict[str, object] = {}
        named: set[str] = set()
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            _check(bool(equals), part, part, "must have the form name=value")
            _check(name in _READERS, name, value, "is no field; the fields are " + ", ".join(_READERS))
            _check(name not in named, name, value, "is named twice")
            named.add(name)
            given |= _READERS[name](name, value)
        return cls(**given)  # type: ignore[arg-type]

    def __str__(self) -> str:
        size = self.max_length
        if size == "service_cap" and self.cap_tokens is not None:
            size += f":{self.cap_tokens}"
        if size == "client_setting":
            size += ":" + "/".join(f"{w:g}" for w in self.client_weights)
        clients = "none" if self.clients is None else f"{self.clients[0]}/{self.clients[1]:g}"
        return (
            f"max_length={size},models={self.models},requester={self.anonymous:g}/{self.shared_key:g},can_pay={self.can_pay:g},"
            f"allow_downgrade={self.allow_downgrade:g},clients={clients},"
            f"context={'needed' if self.context_tokens is None else self.context_tokens},"
            f"output={'asked' if self.output_share is None else format(self.output_share, 'g')}"
        )

    def differences(self) -> dict[str, object]:
        """Return the fields that differ from the defaults.

        >>> FillRule(can_pay=1.0).differences()
        {'can_pay': 1.0}
        """
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}


def _check(fits: bool, field: str, value: object, rule: str) -> None:  # noqa: FBT001
    if not fits:
        raise InputError("fill rule", field, value, rule)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    _check(math.isfinite(number), name, text, "must be a number")
    return number


def _whole(name: str, text: str) -> int:
    _check(text.isascii() and text.isdigit(), name, text, "must be a whole number")
    return int(text)


def _pair(name: str, text: str) -> tuple[str, str]:
    first, slash, second = text.partition("/")
    _check(bool(slash), name, text, "must be two numbers joined by /")
    return first, second


def _read_max_length(name: str, text: str) -> dict[str, object]:
    rule, colon, rest = text.partition(":")
    if not colon:
        return {"max_length": rule}
    if rule == "service_cap":
        _check(rest.isascii() and rest.isdigit() and int(rest) >= 1, name, rest, "must be a whole number of at least 1")
        return {"max_length": rule, "cap_tokens": int(rest)}
    _check(rule == "client_setting", name, text, "takes nothing behind the colon")
    return {"max_length": rule, "client_weights": tuple(_number(name, weight) for weight in rest.split("/"))}


def _read_requester(name: str, text: str) -> dict[str, object]:
    anonymous, shared = _pair(name, text)
    return {"anonymous": _number(name, anonymous), "shared_key": _number(name, shared)}


def _read_clients(name: str, text: str) -> dict[str, object]:
    if text == "none":
        return {"clients": None}
    n, z = _pair(name, text)
    return {"clients": (_whole(name, n), _number(name, z))}


_READERS: dict[str, Callable[[str, str], dict[str, object]]] = {
    "max_length": _read_max_length,
    "models": lambda _, text: {"models": text},
    "requester": _read_requester,
    "can_pay": lambda name, text: {"can_pay": _number(name, text)},
    "allow_downgrade": lambda name, text: {"allow_downgrade": _number(name, text)},
    "clients": _read_clients,
    "context": lambda name, text: {"context_tokens": None if text == "needed" else _whole(name, text)},
    "output": lambda name, text: {"output_share": None if text == "asked" else _number(name, text)},
}
