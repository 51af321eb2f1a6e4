"""What one look at a model in training found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Observation:
    """How stationary a model is, and its loss: read both together.

    Attributes
    ----------
    epoch : int
    loss : float
        Mean loss over the samples that were looked at, in evaluation mode.
    eps : float
        Bound on the distance from 0 to the hull of the gradients within `delta`: `observed +
        slack`.
    observed, slack : float
        What was seen, and what the choice of the samples may hide at this confidence.
    confidence : float
        1 where all data were looked at.
    label : str
        "conditional" for a certificate over all data in float64 that can be verified; "estimated"
        for a bound from some samples, or in the precision of the model.
    samples : int
        How many were looked at.
    delta : float
    relative_eps : float
        `eps` divided by the norm of the gradient at the first look.
    relative_delta : float
        `delta` divided by the norm of the weights.
    layers : dict
        The norm of the same combination of gradients in each parameter tensor, by name, without the
        slack.
    seconds : float
        What this look cost.
    """

    epoch: int
    loss: float
    eps: float
    observed: float
    slack: float
    confidence: float
    label: str
    samples: int
    delta: float
    relative_eps: float
    relative_delta: float
    layers: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        sure = "" if self.confidence == 1.0 else f" with confidence {self.confidence:g}"
        return (
            f"epoch {self.epoch}: loss {self.loss:.4g}, eps <= {self.eps:.3g} at delta "
            f"{self.delta:g} ({self.relative_eps:.2g} of the first gradient){sure}, "
            f"{self.samples} samples, {self.label}"
        )

    def scalars(self) -> dict[str, float]:
        """Return what is written to TensorBoard and to other loggers, by tag."""
        named = {
            "goldstein/eps": self.eps,
            "goldstein/relative_eps": self.relative_eps,
            "goldstein/observed": self.observed,
            "goldstein/loss": self.loss,
        }
        return {**named, **{f"goldstein/layers/{n}": norm for n, norm in self.layers.items()}}

    def to_record(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)
