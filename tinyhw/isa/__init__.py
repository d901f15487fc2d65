"""The registry of instruction sets: the first part of a device's `arch` and the modules that know it. It imports none
of them.

A target has `capabilities(arch) -> Capabilities` and `compile(program, arch) -> Code`. An assembler has, for one
instruction, `assemble(text, arch) -> bytes` and `disassemble(code, arch) -> text`, which refuse with an error of
errors.py; `plain(code, arch)` is the text without a control word, if there is one. A lister has
`compile_listed(program, arch, microarchitecture) -> (Code, listing)`, for DEBUG=7, and
`microarchitecture(vendor, signature, features)`, the name for what the processor says about itself.
"""
NVIDIA = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_120a")
KERNELS = NVIDIA[:5]  # those of them that kernels are made for
AMD = ("gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1201")
# behind a colon
VARIANTS = {"x86_64": ("avx2", "avx512"), **dict.fromkeys(AMD[:2], ("wave64",)),
            **dict.fromkeys(AMD[2:], ("wave32", "wave64"))}

TARGETS = {
  "x86_64": "tinyhw.isa.x86.target",
  **dict.fromkeys(AMD, "tinyhw.isa.amd.target"),
  **dict.fromkeys(KERNELS, "tinyhw.isa.sass.target"),
}

def register(arch: str, target: str) -> None:
  """Add an architecture from outside of this tree: the first part of `arch`, and the module that is its target."""
  TARGETS[arch] = target

ASSEMBLERS = {
  "x86_64": "tinyhw.isa.x86.asm.syntax",
  **dict.fromkeys(AMD, "tinyhw.isa.amd.asm.syntax"),
  **dict.fromkeys(NVIDIA, "tinyhw.isa.sass.asm.syntax"),
}
LISTERS = {
  "x86_64": "tinyhw.isa.x86.describe",
  **dict.fromkeys(AMD, "tinyhw.isa.amd.describe"),
  **dict.fromkeys(KERNELS, "tinyhw.isa.sass.describe"),
}
