"""The headers' messages: their letters, and some rows and numbers against a copy of lines of the headers."""
import re

from tinyhw.autogen import metal

def test_letters() -> None:
  rows = [line.split() for text in metal.MESSAGES.values() for line in text.split("\n") if line.strip()]
  assert len(rows) == 367 and len(metal.MESSAGES) == 36
  for selector, *types in rows:
    if types[-1] == "owned": types.pop()
    assert len(types) - 1 == selector.count(":"), selector
    assert all(re.fullmatch(r"[v@QqBdIiC*#:]|@\?|\^[v@Q]|\{\w+=Q+\}", word) for word in types), selector

def test_ownership_is_by_the_name() -> None:
  for text in metal.MESSAGES.values():
    for line in filter(str.strip, text.split("\n")):
      selector = line.split()[0].lstrip("+")
      is_making = re.match(r"(alloc|new|copy|mutableCopy|init)([A-Z:]|$)", selector) is not None
      assert line.endswith(" owned") <= is_making, line

# From the headers of the macOS 14 SDK
LINES = """
MTLGPUFamilyApple7 = 1007, MTLGPUFamilyMetal3 = 5001, MTLCommandBufferStatusCompleted = 4,
MTLCommandBufferStatusError = 5, MTLBarrierScopeBuffers = 1, MTLDispatchTypeConcurrent = 1,
MTLLanguageVersion3_0 = (3 << 16), MTLResourceHazardTrackingModeUntracked = (1 << 8)
"""
OURS = {"MTLGPUFamilyApple7": metal.FAMILIES["apple7"], "MTLGPUFamilyMetal3": metal.FAMILIES["metal3"],
        "MTLCommandBufferStatusCompleted": metal.COMPLETED, "MTLCommandBufferStatusError": metal.ERROR,
        "MTLBarrierScopeBuffers": metal.SCOPE_BUFFERS, "MTLDispatchTypeConcurrent": metal.CONCURRENT,
        "MTLLanguageVersion3_0": next(number for number, name in metal.VERSIONS.items() if name == "3.0"),
        "MTLResourceHazardTrackingModeUntracked": metal.HAZARDS_UNTRACKED}

def test_numbers_of_the_copied_lines() -> None:
  assert {name: eval(value, {}) for name, value in re.findall(r"(\w+) = (\d+|\(\d+ << \d+\))", LINES)} == OURS
