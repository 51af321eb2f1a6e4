"""Objectives as data: each model is an Expression with a start point."""

from goldstein.models.margin_svm import MarginSVM, MulticlassMargin, margin_svm, multiclass_margin
from goldstein.models.networks import ReLUOneLayer, ReLUTwoLayer, relu_one_layer, relu_two_layer

__all__ = [
    "MarginSVM", "MulticlassMargin", "ReLUOneLayer", "ReLUTwoLayer", "margin_svm",
    "multiclass_margin", "relu_one_layer", "relu_two_layer",
]  # fmt: skip
