import pytest

from horde_policy.board.names import backend_of, group_name


@pytest.mark.parametrize(
    ("model", "backend", "group"),
    [
        ("koboldcpp/L3-8B-Stheno-v3.2", "koboldcpp", "L3-8B-Stheno-v3.2"),
        ("aphrodite/TheDrummer/Behemoth-123B-v1.2", "aphrodite", "Behemoth-123B-v1.2"),
        ("TheDrummer/Behemoth-123B-v1.2", None, "Behemoth-123B-v1.2"),
        ("koboldcpp/Behemoth-123B-v1.2", "koboldcpp", "Behemoth-123B-v1.2"),
        ("asmodeus", None, "asmodeus"),
        ("my merge (Q4_K_M).gguf", None, "my merge (Q4_K_M).gguf"),
        ("koboldcpp/Möbius Rêve 12B::Zoë#4", "koboldcpp", "Möbius Rêve 12B::Zoë#4"),
        ("models/gguf/mine", None, "models/gguf/mine"),
        ("koboldcpp/", None, "koboldcpp/"),
        ("/x", None, "/x"),
        ("x/", None, "x/"),
        ("", None, ""),
        ("Koboldcpp/x", None, "x"),
    ],
)
def test_the_prefix_names_the_backend_and_what_is_behind_it_the_group(model: str, backend: str | None, group: str) -> None:
    assert backend_of(model) == backend
    assert group_name(model) == group
