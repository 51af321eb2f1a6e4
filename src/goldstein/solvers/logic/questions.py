"""What a search asks for next."""

#: Nothing: the step is over.
NOTHING = 0
#: The value at the point; it must be finite.
VALUE = 1
#: The value at a trial point, where overflow only means: too far (infinity).
TRIAL = 2
#: The gradient at the point.
GRADIENT = 3
