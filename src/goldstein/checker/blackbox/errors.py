"""Why values of a black box speak against its gradients; `goldstein.errors` has these names."""

from goldstein.checker.errors import GoldsteinError


class ContradictedError(GoldsteinError):
    """Differences of values contradict the gradients; `gap`: by how much these vary."""

    def __init__(self, gap: float = 0.0) -> None:
        super().__init__("differences of values contradict the gradients")
        self.gap = gap


class UnresolvedError(GoldsteinError):
    """The values of a function do not resolve steps that are short against a ball."""

    def __init__(self, step: float) -> None:
        super().__init__(
            f"f does not resolve steps of {step:.2g}: its values do not follow its gradients "
            "there. Ask for a larger delta, or compute f with more digits."
        )
