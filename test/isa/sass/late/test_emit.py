"""Bytes of scheduled blocks: jumps by distance, and the code after the end."""
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.asm.syntax import parse, show
from tinyhw.isa.sass.late.emit import encode_function
from tinyhw.isa.sass.table.branch import jump
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.form import Generation
from tinyhw.machine.ir.inst import Block

def test_jumps_both_ways_and_the_end() -> None:
  for arch in ("sm_80", "sm_90"):
    first, second = Block(0), Block(1)
    nop, control = parse("NOP", arch)[0], Control(3)
    text, placed = encode_function([(first, [(nop, control), (jump(second), control), (jump(first), control)]),
                                    (second, [(nop, control)])],
                                   Generation(arch))
    lines = [show(inst, pc=at) for at, inst, _ in decode_all(text, arch)]
    assert lines == ["NOP", "BRA 0x30", "BRA 0x0", "NOP", "BRA 0x40", "NOP", "NOP", "NOP"]
    assert [at for at, _, _ in placed] == [0, 16, 32, 48] and {c for _, _, c in placed} == {control}
