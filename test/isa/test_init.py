"""The registry of instruction sets."""
import importlib

import pytest

from tinyhw import isa

@pytest.mark.parametrize("arch", isa.ASSEMBLERS)
def test_an_assembler_is_opened_by_name(arch: str) -> None:
  module = importlib.import_module(isa.ASSEMBLERS[arch])
  assert callable(module.assemble) and callable(module.disassemble)
  assert arch in isa.TARGETS
