"""Operands of AArch64 that the text names by words: conditions, shifts, barriers, prefetches, patterns of SVE.

A table has a word for each code, or None for a code without a name, which the text writes as a number. Sources: Arm
Architecture Reference Manual, DDI 0487, sections C1.2.4 (conditions), C6.2 (extensions, barriers, prefetch), and DDI
0584 (predicate constraints).
"""
from __future__ import annotations

from tinyhw.machine.assembler.holes import WordTable

def _words(text: str, default: int = 0, others: dict[str, int] | None = None, numbered: bool = False) -> WordTable:
  return WordTable(tuple(None if w == "-" else w for w in text.split()), default, others or {}, numbered)

CONDITIONS = "eq ne hs lo mi pl vs vc hi ls ge lt gt le"
CARRY = {"cs": 2, "cc": 3}
# type, level and policy are bits 4:3, 2:1 and 0 of the code
LEVELS = [f"l{level}{policy}" for level in (1, 2, 3) for policy in ("keep", "strm")]
LOADS, CODE, STORES = (" ".join(kind + level for level in LEVELS) + " - -" for kind in ("pld", "pli", "pst"))

TABLES: dict[str, WordTable] = {
  "cond": _words(f"{CONDITIONS} al nv", others=CARRY),
  "opposite": _words("ne eq lo hs pl mi vc vs ls hi lt ge le gt", others={"cs": 3, "cc": 2}),
  "shift": _words("lsl lsr asr"),
  "rotate": _words("lsl lsr asr ror"),
  "extend": _words("uxtb uxth uxtw uxtx sxtb sxth sxtw sxtx"),
  "extend32": _words("uxtb uxth uxtw - sxtb sxth sxtw -"),
  "extend64": _words("uxtx sxtx"),
  "scale": _words("lsl sxtx"),
  "scale32": _words("uxtw sxtw"),
  "barrier": _words("- oshld oshst osh - nshld nshst nsh - ishld ishst ish - ld st sy", 15, numbered=True),
  "isb": _words("- - - - - - - - - - - - - - - sy", 15, numbered=True),
  "prefetch": _words(f"{LOADS} {CODE} {STORES}" + " -" * 8, numbered=True),
  "svepref": _words(f"{LOADS} {STORES}", numbered=True),
  "pattern": _words("pow2 vl1 vl2 vl3 vl4 vl5 vl6 vl7 vl8 vl16 vl32 vl64 vl128 vl256" + " -" * 15 + " mul4 mul3 all",
                    31, numbered=True),
  "creg": _words(" ".join(f"c{i}" for i in range(16))),
  "bti": _words("- c j jc"),
  "pstate": _words("- SSBS DIT - TCO - DAIFSet DAIFClr"),
  "vlx": _words("vlx2 vlx4"),
}

# System registers by name: op0, op1, CRn, CRm, op2. Others are written as S<op0>_<op1>_C<n>_C<m>_<op2>.
# Source: DDI 0487, chapter D19
SYSTEM = """
MIDR_EL1 3,0,0,0,0  MPIDR_EL1 3,0,0,0,5  REVIDR_EL1 3,0,0,0,6  ID_AA64PFR0_EL1 3,0,0,4,0  ID_AA64PFR1_EL1 3,0,0,4,1
ID_AA64ZFR0_EL1 3,0,0,4,4  ID_AA64SMFR0_EL1 3,0,0,4,5  ID_AA64DFR0_EL1 3,0,0,5,0  ID_AA64DFR1_EL1 3,0,0,5,1
ID_AA64ISAR0_EL1 3,0,0,6,0  ID_AA64ISAR1_EL1 3,0,0,6,1  ID_AA64ISAR2_EL1 3,0,0,6,2  ID_AA64MMFR0_EL1 3,0,0,7,0
ID_AA64MMFR1_EL1 3,0,0,7,1  ID_AA64MMFR2_EL1 3,0,0,7,2  CTR_EL0 3,3,0,0,1  DCZID_EL0 3,3,0,0,7  RNDR 3,3,2,4,0
RNDRRS 3,3,2,4,1  NZCV 3,3,4,2,0  FPCR 3,3,4,4,0  FPSR 3,3,4,4,1  DIT 3,3,4,2,5  SSBS 3,3,4,2,6  TCO 3,3,4,2,7
TPIDR_EL0 3,3,13,0,2  TPIDRRO_EL0 3,3,13,0,3  TPIDR2_EL0 3,3,13,0,5  CNTFRQ_EL0 3,3,14,0,0  CNTPCT_EL0 3,3,14,0,1
CNTVCT_EL0 3,3,14,0,2  CNTPCTSS_EL0 3,3,14,0,5  CNTVCTSS_EL0 3,3,14,0,6  PMCCNTR_EL0 3,3,9,13,0
"""

# Operations of sys by name: op1, CRn, CRm, op2, and whether they take a register. Source: DDI 0487, section C5.1
CACHE = """
dc_ivac 0,7,6,1,1  dc_isw 0,7,6,2,1  dc_csw 0,7,10,2,1  dc_cisw 0,7,14,2,1  dc_zva 3,7,4,1,1  dc_cvac 3,7,10,1,1
dc_cvau 3,7,11,1,1  dc_civac 3,7,14,1,1  ic_ialluis 0,7,1,0,0  ic_iallu 0,7,5,0,0  ic_ivau 3,7,5,1,1
"""

def numbers(text: str) -> dict[str, tuple[int, ...]]:
  """Pairs of a name and comma-separated numbers."""
  words = text.split()
  return {name: tuple(map(int, codes.split(","))) for name, codes in zip(words[::2], words[1::2])}
