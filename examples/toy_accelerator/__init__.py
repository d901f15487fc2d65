"""An invented accelerator, to show how little a new one needs. docs/new-accelerator.md builds it step by step.

Importing this registers it.
"""
from tinyhw.device import Device
from tinyhw.isa import register

register("toy", "examples.toy_accelerator.target")
Device.register("TOY", "examples.toy_accelerator.driver")
