"""What the imported modules hold is set aside from Streamlit's collection after each run, once for each page's modules."""

import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator

import pytest

from horde_policy.ui import shell
from horde_policy.ui.garbage import Kept, keep_modules
from tests.pages.conftest import App


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


class Looped:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.me = self


def test_set_aside_once_until_another_module_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    assert keep_modules(kept)
    held = gc.get_freeze_count()
    assert held > 10_000
    assert not keep_modules(kept)
    monkeypatch.setitem(sys.modules, "a_module_of_this_test", types.ModuleType("a_module_of_this_test"))
    assert keep_modules(kept)


def test_garbage_goes_before_and_what_becomes_garbage_later_goes_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    gone, later = Looped(), Looped()
    seen_gone, seen_later = weakref.ref(gone), weakref.ref(later)
    del gone
    keep_modules(kept)
    assert seen_gone() is None
    del later
    gc.collect()
    assert seen_later() is not None, "what was in use when it was set aside is not looked at"
    monkeypatch.setitem(sys.modules, "a_module_of_this_test", types.ModuleType("a_module_of_this_test"))
    keep_modules(kept)
    assert seen_later() is None


def test_a_page_sets_aside_what_it_needs_after_its_first_run(app: Callable[[], App], monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    monkeypatch.setattr(shell, "KEPT", kept)
    gc.unfreeze()
    shown = app().open("workers")
    shown.assert_well()
    assert gc.get_freeze_count() > 10_000
    seen = kept.modules
    shown.test.run()
    assert kept.modules == seen, "a run of a page that was seen imports nothing, so nothing is set aside again"
