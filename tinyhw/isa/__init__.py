"""Registry of instruction sets: the modules that serve an architecture, by the first part of a device's `arch`.

This module imports none of them. A target has `capabilities(arch) -> Capabilities` and `compile(program, arch) ->
Code`.

An assembler converts one instruction: `assemble(text, arch) -> bytes` and `disassemble(code, arch) -> text`. Both
refuse with an error of errors.py. `plain(code, arch)` is the text without a control word, if there is one.

A lister is for DEBUG=7: `compile_listed(program, arch, microarchitecture) -> (Code, listing)`. Its
`microarchitecture(vendor, signature, features)` names the microarchitecture that the processor reports.
"""
NVIDIA = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_120a")
KERNELS = NVIDIA[:5]  # the NVIDIA architectures that kernels are compiled for
AMD = ("gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1201")
# suffixes of `arch`, after a colon
VARIANTS = {"x86_64": ("avx2", "avx512", "avx512vnni", "avx512bf16", "amx"),
            "arm64": ("neon", "dotprod", "bf16", "fhm"),
            "riscv64": ("g", "rva22", "v128", "v256"),
            **dict.fromkeys(AMD[:2], ("wave64",)), **dict.fromkeys(AMD[2:], ("wave32", "wave64"))}

TARGETS = {
  "x86_64": "tinyhw.isa.x86.target",
  "arm64": "tinyhw.isa.arm64.target",
  "riscv64": "tinyhw.isa.riscv64.target",
  **dict.fromkeys(AMD, "tinyhw.isa.amd.target"),
  **dict.fromkeys(KERNELS, "tinyhw.isa.sass.target"),
}

def register(arch: str, target: str) -> None:
  """Add an architecture from outside of this tree. arch: its first part; target: the name of its target module."""
  TARGETS[arch] = target

ASSEMBLERS = {
  "x86_64": "tinyhw.isa.x86.asm.syntax",
  "arm64": "tinyhw.isa.arm64.asm.syntax",
  "riscv64": "tinyhw.isa.riscv64.asm.syntax",
  **dict.fromkeys(AMD, "tinyhw.isa.amd.asm.syntax"),
  **dict.fromkeys(NVIDIA, "tinyhw.isa.sass.asm.syntax"),
}
LISTERS = {
  "x86_64": "tinyhw.isa.x86.describe",
  "arm64": "tinyhw.isa.arm64.describe",
  "riscv64": "tinyhw.isa.riscv64.describe",
  **dict.fromkeys(AMD, "tinyhw.isa.amd.describe"),
  **dict.fromkeys(KERNELS, "tinyhw.isa.sass.describe"),
}
