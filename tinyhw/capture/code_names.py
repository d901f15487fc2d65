"""The names in the code of a called function, from which it may read."""
from __future__ import annotations
import dis
import functools
from types import CodeType

from tinyhw.named_tuple import NamedTuple

_GROW = frozenset({"append", "add", "extend", "appendleft"})     # a list that is only appended to is not read
_ENVIRONMENT = ("environ", "getenv")
_ASKING = frozenset({"getattr", "hasattr", "setattr", "attrgetter"})
_FILLING = ("CACHE", "PRECALL", "PUSH_NULL")      # instructions without a meaning here

class Names(NamedTuple):
  """The names in code and in its nested code. grown: names used only to add to their values."""
  globals: frozenset[str]
  attributes: frozenset[str]
  asked: frozenset[str]       # attributes that may be missing: hasattr(x, "name")
  grown: frozenset[str]
  modules: frozenset[str]
  environment: frozenset[str | None]      # environment variables; None: any, as in os.environ[name]

@functools.lru_cache(maxsize=None)
def names_of(code: CodeType) -> Names:
  """Return the names in code. Results are kept, since a capture asks at each call."""
  found: dict[str, set[str]] = {kind: set() for kind in ("global", "attribute", "asked", "grown", "read", "module")}
  environment: set[str | None] = set()
  todo = [code]
  while todo:
    code = todo.pop()
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _FILLING]
    for k, (instruction, after) in enumerate(zip(instructions, [*instructions[1:], None])):
      operation, name = instruction.opname, instruction.argval
      if operation.endswith(("_GLOBAL", "_NAME")) and not operation.startswith("IMPORT"): found["global"].add(name)
      elif operation.endswith(("_ATTR", "_METHOD")): found["attribute"].add(name)
      elif operation == "IMPORT_FROM": found["attribute"].add(name)
      elif operation == "IMPORT_NAME": found["module"].add(name)
      if operation.startswith("LOAD_") and isinstance(name, str):
        grows = after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD") and after.argval in _GROW
        found["grown" if grows else "read"].add(name)
        if name in _ENVIRONMENT and operation != "LOAD_CONST": environment.add(_written_key(instructions[k + 1:k + 3]))
    texts = {c for c in code.co_consts if isinstance(c, str) and c.isidentifier()}
    if _ASKING & {*code.co_names}: found["asked"].update(texts)
    if "globals" in code.co_names: found["global"].update(texts)
    todo += [c for c in code.co_consts if isinstance(c, CodeType)]
  return Names(frozenset(found["global"]), frozenset(found["attribute"] | found["asked"]), frozenset(found["asked"]),
               frozenset(found["grown"] - found["read"]), frozenset(found["module"]), frozenset(environment))

def _written_key(after: list[dis.Instruction]) -> str | None:
  """Return the literal key of environ["KEY"], environ.get("KEY") or getenv("KEY"), from the instructions after the
  name. None for a computed key."""
  if after and after[0].argval == "get" and after[0].opname != "LOAD_CONST": after = after[1:]
  found = after[0].argval if after and after[0].opname == "LOAD_CONST" else None
  return found if isinstance(found, str) else None
