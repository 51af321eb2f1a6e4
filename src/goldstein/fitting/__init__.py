"""How margin machines are fitted and proved, below scikit-learn."""
