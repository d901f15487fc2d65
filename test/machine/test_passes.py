"""The pass list obeys its constraints; hooks, dumps and CHECK work."""
from __future__ import annotations
import pytest
from hypothesis import given, settings, strategies as st
from generators.program_builder import Builder
from generators.invented import cisc, inputs, lanes, matmul_loop, random_function, run as execute

from tinyhw.config import Context
from tinyhw.dtype import dtypes
from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.show import show
from tinyhw.machine.ir.target import Target
from tinyhw.machine.passes import ORDER, PASSES, Before, cpu_code, hook_reasons, reason_of, reasons, run, steps
from tinyhw.uop.ops import UOp

def test_order_of_passes() -> None:
  names = list(PASSES)
  for first, second, reason in ORDER: assert names.index(first) < names.index(second), reason

def test_an_order_that_is_not_kept_is_refused_at_import() -> None:
  assert reasons(["a", "b"], [Before("a", "b", "so")]) == {"a": "before b: so", "b": "after a: so"}
  with pytest.raises(AssertionError, match="pass b must run before a: so"):
    reasons(["a", "b"], [Before("b", "a", "so")])
  with pytest.raises(AssertionError, match="a or c is no pass; there are a, b"):
    reasons(["a", "b"], [Before("a", "c", "so")])
  with pytest.raises(AssertionError, match="no reason for .'c'."): reasons(["a", "b", "c"], [Before("a", "b", "so")])

def test_the_code_of_a_program_has_its_arguments() -> None:
  b, function = Builder("two"), Function("two")
  out = b.param(0, dtypes.float32, 4)
  with b.loop(b.add(UOp.variable("n", 1, 4))) as r: b.store(out, r, UOp.const(dtypes.float32, 1.0))
  function.local_bytes = 64
  code = cpu_code(b.program(), "x86_64:avx2", function, b"\xc3")
  assert (code.name, code.arguments, code.text, code.local_bytes) == ("two", ("buffer", "int64"), b"\xc3", 64)

def test_hooks_have_names_and_reasons() -> None:
  def tidy(function: Function, target: Target) -> Function:
    """Tidy up. At once."""
    return function
  target = cisc(10, 12)
  target.hooks = {"before:spill": (tidy,)}
  found = {name: reason_of(name, step, place, target.reasons) for name, step, place in steps(target)}
  assert (list(found)[list(found).index("spill") - 1] == "tidy" and found["tidy"] == "before spill: Tidy up"
          and found["spill"])

def test_reasons_of_hooks_are_checked() -> None:
  def tidy(function: Function, target: Target) -> Function: return function
  hooks = {"before:spill": (tidy,)}
  assert hook_reasons(hooks, [Before("tidy", "spill", "spills are tidy")]) == {"tidy": "before spill: spills are tidy"}
  with pytest.raises(AssertionError, match="no reason for"): hook_reasons(hooks, [])
  with pytest.raises(AssertionError, match="pass spill must run before tidy: so"):
    hook_reasons(hooks, [Before("spill", "tidy", "so")])
  with pytest.raises(AssertionError, match="after:fly"): hook_reasons({"after:fly": (tidy,)}, [])

def test_dumps_have_control_words() -> None:
  function = matmul_loop(cisc(), 2, 1)
  for block in function.blocks: function.controls[block] = [f"<{k}>" for k in range(len(block.insts))]
  assert all(f"  <{k}> " in show(function) for k in range(len(function.blocks[0].insts)))

def test_hooks_run_at_their_places() -> None:
  seen: list[str] = []
  def hook(name: str):  # type: ignore[no-untyped-def]
    def step(function: Function, target: Target) -> Function:
      seen.append(f"{name} {function.spills}")
      return function
    return step
  target = cisc(10, 12)
  target.hooks = {"before:spill": (hook("a"),), "after:expand": (hook("b"), hook("c"))}
  function = run(matmul_loop(target, 12, 2), target)
  assert seen == ["a 0", f"b {function.spills}", f"c {function.spills}"] and function.spills

def test_unknown_hook_is_refused() -> None:
  target = cisc()
  target.hooks = {"after:fly": ()}
  with pytest.raises(AssertionError, match="after:fly"): run(matmul_loop(target, 2, 1), target)

def test_dump(capsys: pytest.CaptureFixture[str]) -> None:
  target = cisc(10, 15)
  for setting, has, lacks in (("select:matmul", "%16:", "r7"), ("layout:matmul", "jl .loop1", "%"),
                              ("layout", "jl .loop1", "%"),
                              ("layout:other", "", "matmul")):
    with Context(DUMP=setting): run(matmul_loop(target, 12, 2), target)
    out = capsys.readouterr().out
    assert has in out and lacks not in out, setting

def test_check_finds_what_a_hook_breaks() -> None:
  def drop(function: Function, target: Target) -> Function:
    insts = next(b.insts for b in function.blocks if b.name == "loop")
    insts.remove(next(i for i in insts if i.row.name == "vfma"))
    return function
  target = cisc(10, 15)
  target.hooks = {"after:allocate": (drop,)}
  with Context(CHECK=0): run(matmul_loop(target, 12, 2), target)
  with Context(CHECK=1), pytest.raises(AllocationError, match="vfma.*missing"): run(matmul_loop(target, 12, 2), target)

@settings(max_examples=30)
@given(st.integers(0, 1 << 30), st.integers(2, 30), st.booleans())
def test_every_pass_keeps_the_meaning(seed: int, pressure: int, gpu: bool) -> None:
  target = lanes(16, 3) if gpu else cisc(7, 4)
  function = random_function(target, seed, pressure, 40)
  arguments, memory = inputs(seed)
  try: expected = execute(function, arguments, memory)
  except TimeoutError: return
  for name, step in PASSES.items():
    function = step(function, target)
    assert execute(function, arguments, memory, seed=9, fuel=400_000) == expected, name
