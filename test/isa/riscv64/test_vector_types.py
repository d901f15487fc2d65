"""The instructions that set vl and vtype stand where a state may differ."""
from __future__ import annotations

import pytest

from tinyhw.isa.riscv64.asm.syntax import parse_function, show
from tinyhw.isa.riscv64.select.line import in_state
from tinyhw.isa.riscv64.target import target
from tinyhw.isa.riscv64.vector_types import set_vector_types, setting
from tinyhw.machine.ir.inst import Function

def with_states(text: str) -> Function:
  """A function whose vector instructions need the states that stand behind "@" in its lines."""
  lines = [line.strip() for line in text.strip().split("\n")]
  function = parse_function("\n".join(line.partition(" @")[0] for line in lines))
  states = iter([line.partition(" @")[2] for line in lines if not line.endswith(":")])
  for block in function.blocks:
    for inst in block.insts:
      state = next(states)
      if state: inst.row = in_state(inst.row, state)
  return set_vector_types(function, target("riscv64:v128"))

def names(function: Function) -> list[str]:
  return [show(inst) if inst.row.name.startswith("vset") else inst.row.name for block in function.blocks
          for inst in block.insts]

def test_a_state_is_set_once_for_a_run() -> None:
  made = with_states("""
    vadd.vv v1, v2, v3 @32x4m1
    addi a0, a0, 1
    vmv1r.v v4, v1
    vadd.vv v1, v1, v3 @32x4m1
    vadd.vv v1, v1, v3 @8x4m1
    ret""")
  assert names(made) == ["vsetivli zero, 4, e32, m1, ta, mu", "vadd.vv", "addi", "vmv1r.v", "vadd.vv",
                         "vsetivli zero, 4, e8, m1, ta, mu", "vadd.vv", "ret"]

def test_a_loop_of_one_state_sets_it_where_it_may_be_unknown() -> None:
  made = with_states("""
    vadd.vv v1, v2, v3 @32x4m1
    .loop:
    vadd.vv v1, v1, v3 @32x4m1
    bnez a0, .loop
    vadd.vv v1, v1, v3 @32x4m1
    ret""")
  assert sum(name.startswith("vset") for name in names(made)) == 1

@pytest.mark.parametrize("other,count", [("32x4m1", 1), ("16x4m1", 3)])
def test_paths_that_meet(other: str, count: int) -> None:
  """What both paths leave holds after them."""
  made = with_states(f"""
    vadd.vv v1, v2, v3 @32x4m1
    beqz a0, .after
    vadd.vv v1, v1, v3 @{other}
    .after:
    vadd.vv v1, v1, v3 @32x4m1
    ret""")
  assert sum(name.startswith("vset") for name in names(made)) == count

def test_functions_without_vectors_stay() -> None:
  function = parse_function("addi a0, a0, 1\nret")
  assert names(set_vector_types(function, target("riscv64:v128"))) == ["addi", "ret"]

@pytest.mark.parametrize("state,text", [("32x4m1", "vsetivli zero, 4, e32, m1, ta, mu"),
                                        ("16x8mf2", "vsetivli zero, 8, e16, mf2, ta, mu"),
                                        ("8x32m1", "vsetvli t6, zero, e8, m1, ta, mu")])
def test_settings(state: str, text: str) -> None: assert show(setting(state)) == text

def test_a_state_has_a_form() -> None:
  with pytest.raises(AssertionError, match="32 is no state of vectors"): setting("32")
