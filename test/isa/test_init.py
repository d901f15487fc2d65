"""The registry of instruction sets."""
import importlib

import pytest

from tinyhw import isa

@pytest.mark.parametrize("arch", isa.ASSEMBLERS)
def test_an_assembler_is_opened_by_name(arch: str) -> None:
  module = importlib.import_module(isa.ASSEMBLERS[arch])
  last = {"gfx": "s_endpgm", "sm_": "EXIT"}.get(arch[:3], "ret")
  code = module.assemble(last, arch)
  assert module.assemble(module.disassemble(code, arch), arch) == code

def test_what_kernels_are_made_for_has_an_assembler() -> None:
  # not those from outside
  assert {arch for arch, module in isa.TARGETS.items() if module.startswith("tinyhw.")} <= set(isa.ASSEMBLERS)
