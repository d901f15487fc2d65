"""Operands that do not go together."""
import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.riscv64.asm.syntax import assemble, parse
from tinyhw.isa.riscv64.table.check import reserved

@pytest.mark.parametrize("text,reason", [
  ("vadd.vv v0, v1, v2, v0.t", "which is the mask"), ("vmerge.vvm v0, v1, v2, v0", "which is the mask"),
  ("vlseg2e8.v v0, (a0), v0.t", "which is the mask"), ("vsext.vf2 v4, v4", "v4 is also a source"),
  ("vwadd.vv v4, v5, v4", "v4 is also a source"), ("vwadd.wv v4, v4, v4", "v4 is also the narrower source"),
  ("vslideup.vi v4, v4, 1", "v4 is also a source"), ("vluxseg3ei8.v v4, (a0), v6", "is also a source")])
def test_refused(text: str, reason: str) -> None:
  with pytest.raises(ParseError, match=reason): assemble(text)

@pytest.mark.parametrize("text", ["vmseq.vv v0, v1, v2, v0.t", "vredsum.vs v0, v1, v2, v0.t", "vwadd.wv v4, v4, v5",
                                  "vnsrl.wi v4, v4, 3", "vslidedown.vi v4, v4, 1", "vwadd.wx v4, v4, a0, v0.t",
                                  "vse8.v v0, (a0), v0.t"])
def test_taken(text: str) -> None:
  inst = parse(text)
  assert reserved(inst.row.isa, inst.operands) == ""
