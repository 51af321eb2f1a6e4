"""Objectives as data: each model is an Expression with a start point."""

from goldstein.models.margin_svm import MarginSVM, margin_svm
from goldstein.models.multiclass_margin import MulticlassMargin, multiclass_margin
from goldstein.models.relu_one_layer import ReLUOneLayer, relu_one_layer
from goldstein.models.relu_two_layer import ReLUTwoLayer, relu_two_layer

__all__ = [
    "MarginSVM",
    "MulticlassMargin",
    "ReLUOneLayer",
    "ReLUTwoLayer",
    "margin_svm",
    "multiclass_margin",
    "relu_one_layer",
    "relu_two_layer",
]
