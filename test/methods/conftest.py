"""Tests of the semantics of methods run on all engines."""
import pytest

@pytest.fixture(autouse=True)
def everywhere(engine: str) -> None: pass
