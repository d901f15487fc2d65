"""Macros: their text, the rows that allocation sees, and what they become."""
import pytest

from tinyhw.isa.amd import regs
from tinyhw.isa.amd.encode import encode
from tinyhw.isa.amd.form import Generation
from tinyhw.isa.amd.macros import MACROS, classes_of, expand_macros, macro_row, make, masked_row
from tinyhw.isa.amd.table import build, table
from tinyhw.isa.amd.target import target
from tinyhw.machine.inst import Access, Block, Effect, Function, MInst, Reg

ARCHS = ("gfx1100", "gfx1100:wave64", "gfx1200", "gfx942", "gfx950")

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", MACROS)
def test_every_macro_can_be_encoded(name: str, arch: str) -> None:
  """With registers that share nothing, as allocation gives them; operands of any kind as vectors."""
  generation, macro = Generation(arch), MACROS[name]
  kinds = tuple(classes_of(generation)[f"{'s' if name[:2] == 's_' else 'v'}{letters[1]}"] for _, _, letters in macro.operands if letters[0] == "x")
  row = macro_row(generation, name, kinds)
  operands = [3 if o.cls is None else regs.reg(o.cls, 8 * k) for k, o in enumerate(row.operands)]
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [MInst(row, list(operands))]
  expand_macros(function, target(arch))
  made = function.blocks[0].insts
  assert len(made) == len(macro.lines) and all(encode(inst) for inst in made) and all(inst.comment == name for inst in made)

@pytest.mark.parametrize("name", MACROS)
def test_no_line_reads_what_was_not_written(name: str) -> None:
  """Results and temporary registers hold nothing at the start. Halves count by themselves."""
  macro, rows = MACROS[name], table("gfx1100")
  wide = {operand: letters[1:] == "2" for operand, _, letters in macro.operands}
  known = {"vcc.lo", "vcc.hi"} | {f"{o}.{half}" for o, access, _ in macro.operands if access is not Access.WRITE for half in ("lo", "hi")}
  def halves(operand: str, half: str | None) -> set[str]:
    return {f"{operand}.{h}" for h in ([half] if half else ["lo", "hi"] if wide.get(operand) else ["lo"])}
  for line in macro.lines:
    specs = [spec for spec in rows[line.key].isa.specs if spec.show]
    for spec, word in zip(specs, line.operands):
      if not isinstance(word, int) and spec.access is not Access.WRITE:
        assert halves(word[0], word[1]) <= known, f"{name}: {line.key} reads {word[0]}"
    for spec, word in zip(specs, line.operands):
      if not isinstance(word, int) and spec.access is not Access.READ: known |= halves(word[0], word[1])
  for operand, access, _ in macro.operands[:macro.shown]:
    if access is Access.WRITE: assert halves(operand, None) <= known, f"{name} does not write all of {operand}"

def test_temporary_registers_are_the_macro_s_own() -> None:
  generation, function = Generation("gfx1100"), Function("k")
  dst, a, b = (function.new_reg(regs.V[1]) for _ in range(3))
  made = make(function, generation, "div_f32", dst, a, b)
  assert len(made.operands) == 8 and len({id(o) for o in made.operands}) == 8
  assert all(o.early for o in made.row.operands if o.access is Access.WRITE)

def test_constants_have_halves() -> None:
  function, generation = Function("k"), Generation("gfx1100")
  row = macro_row(generation, "move64", (None,))
  function.blocks = [Block(0)]
  function.blocks[0].insts = [MInst(row, [regs.v(4, 2), 0x1_0000_0007])]
  expand_macros(function, target("gfx1100"))
  assert [inst.operands[:2] for inst in function.blocks[0].insts] == [[regs.v(4), 7], [regs.v(5), 1]]

@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_a_masked_access_narrows_exec_and_restores_it(arch: str) -> None:
  generation, rows = Generation(arch), table(arch)
  load = build(rows["global_load_b32"], regs.v(1), regs.v(0), regs.s(2, 2))
  row = masked_row(load.row, generation)
  assert row.effects & Effect.WRITE_FLAGS and row.operands[2].access is Access.BOTH
  mask: list[Reg] = [regs.s(4 * k, generation.wave // 32) for k in (2, 3)]
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [MInst(row, [*mask, *load.operands])]
  expand_macros(function, target(arch))
  narrowed, access, whole = function.blocks[0].insts
  assert narrowed.row.name == f"s_and_saveexec_b{generation.wave}" and narrowed.operands == [mask[1], mask[0]]
  assert access.operands == load.operands and whole.operands[1] == mask[1] and repr(whole.operands[0])[:4] == "exec"
