"""What a model's name says: the backend that serves it, its owner, and the name that its forms have in common.

The text model reference gives each model three names: ``owner/name``, ``aphrodite/owner/name`` and ``koboldcpp/name``
(horde.md §1.3). Workers and requests match by the exact string, so the three are three models to the rule; an operator
thinks of them as one. A worker's own name for a model (``name::user#id``) stays apart: it is that person's model.
"""

__all__ = ["BACKEND_PREFIXES", "backend_of", "group_name"]

BACKEND_PREFIXES: tuple[str, ...] = ("aphrodite/", "koboldcpp/")
"""Prefixes that name a backend and not the model's owner."""


def backend_of(model: str) -> str | None:
    """Return the backend that the name's prefix states; null for a bare name.

    >>> backend_of("koboldcpp/L3-8B-Stheno-v3.2"), backend_of("mistralai/Mistral-Small-24B-Instruct-2501")
    ('koboldcpp', None)
    """
    return next((prefix[:-1] for prefix in BACKEND_PREFIXES if model.startswith(prefix) and len(model) > len(prefix)), None)


def group_name(model: str) -> str:
    """Return the name behind the backend's prefix, without its owner: the same for all three forms of a model's name.

    The ``koboldcpp/`` form never carries the owner, so the others lose it too. A name with more than one slash left is not
    of the reference's form and stays whole, as does one that would be empty.

    >>> names = "TheDrummer/Behemoth-123B-v1.2", "aphrodite/TheDrummer/Behemoth-123B-v1.2", "koboldcpp/Behemoth-123B-v1.2"
    >>> {group_name(name) for name in names}
    {'Behemoth-123B-v1.2'}
    >>> group_name("koboldcpp/Möbius Rêve 12B::Zoë#4"), group_name("models/gguf/mine"), group_name("koboldcpp/")
    ('Möbius Rêve 12B::Zoë#4', 'models/gguf/mine', 'koboldcpp/')
    """
    backend = backend_of(model)
    bare = model if backend is None else model[len(backend) + 1 :]
    owner, slash, name = bare.partition("/")
    return name if slash and owner and name and "/" not in name else bare
