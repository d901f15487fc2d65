"""Lines as a function of blocks, and the text of one instruction, for the assembler of x86-64."""
from __future__ import annotations

import pytest

from tinyhw.errors import DecodeError, ParseError
from tinyhw.isa.x86.asm.decode import decode
from tinyhw.isa.x86.asm.syntax import parse, show
from tinyhw.machine.ir.assembly import function_of, whole_text
from tinyhw.machine.ir.inst import Function, MInst

def function(*lines: str) -> Function:
  def with_labels(line: str) -> MInst: return parse(line, labels=True)
  return function_of(enumerate(lines, 1), with_labels, "f")

def test_labels_become_blocks_wherever_they_stand() -> None:
  found = function("jmp .end", ".again:", "add eax, 1", "jne .again", ".end:", "ret")
  assert [block.name for block in found.blocks] == ["", "again", "end"]
  assert found.blocks[0].insts[0].operands[0] is found.blocks[2]
  assert found.blocks[1].insts[-1].operands[0] is found.blocks[1]

@pytest.mark.parametrize("lines,reason", [
  ((".a:", "ret", ".a:"), "line 3: .a stands twice"), (("ret", "foo"), "line 2: "), (("jmp .b",),
                                                                                   "no line is the label .b:")])
def test_mistakes(lines: tuple[str, ...], reason: str) -> None:
  with pytest.raises(ParseError) as caught: function(*lines)
  assert caught.value.message.startswith(reason)

def test_all_bytes_belong_to_the_instruction() -> None:
  assert whole_text(b"\xc3", decode, show) == "ret"
  with pytest.raises(DecodeError, match="ret ends after 1 bytes; these are left: 90 90"):
    whole_text(b"\xc3\x90\x90", decode, show)
