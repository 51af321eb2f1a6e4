"""Claims that are stated where calls run out."""

import numpy as np

from goldstein.certificates.stating import Stating
from goldstein.errors import OutOfCalls
from goldstein.oracles import Oracle


class Silent(Oracle):
    """An oracle without a call left."""

    def value(self, x):
        raise OutOfCalls("value")

    def gradient(self, y):
        raise OutOfCalls("gradient")


def test_a_claim_outlives_what_was_forgotten_beside_its_points():
    """The first claim rests on what was told; nearer looks find no call, the next is worse."""
    gradients = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 10.0]])
    points = 0.5 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    stating = Stating(Silent(), np.zeros(2), 1.0, points, gradients, seed=0)
    for j, told in enumerate([[1.0, 0.5], [-1.0, 0.5], [0.0, 10.0]]):
        stating.tell(j, np.array(told))
    claim = stating.claim(enough=1e-3)
    assert claim is not None
    assert 0.5 <= claim.eps < 10.0
    assert claim.weights.sum() == 1.0
