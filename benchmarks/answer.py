"""What a benchmarked method hands back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldstein import GoldsteinCertificate


@dataclass(frozen=True)
class Answer:
    """The final point, and the certificate if the method has one of its own."""

    x: np.ndarray
    status: str
    certificate: GoldsteinCertificate | None = None

    @classmethod
    def with_evidence(
        cls, x: np.ndarray, status: str, points: list[np.ndarray], gradients: list[np.ndarray]
    ) -> Answer:
        """An answer certified by gradients taken at points near x."""
        certificate = GoldsteinCertificate.from_gradients(x, np.array(points), np.array(gradients))
        return cls(x, status, certificate)
