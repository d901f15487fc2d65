"""The registry of instruction sets: the first part of a device's `arch` and the modules that know it. It imports none of them.

A target has `capabilities(arch) -> Capabilities` and `compile(program, arch) -> Code`. An assembler has, for one instruction, `assemble(text) ->
bytes` and `disassemble(code) -> text`, which refuse with an error of errors.py.
"""
TARGETS = {
  "x86_64": "tinyhw.isa.x86.target",
}
ASSEMBLERS = {
  "x86_64": "tinyhw.isa.x86.syntax",
}
