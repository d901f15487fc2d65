"""The operators of ai.onnx.ml: features, encoders, trees and other models that are no networks."""
from __future__ import annotations

from tinyhw.nn.onnx.ml import encoders as encoders, features as features, linear as linear, trees as trees
