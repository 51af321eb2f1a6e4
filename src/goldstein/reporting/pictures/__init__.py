"""Each function draws into an Axes it is given, in the style it finds."""
