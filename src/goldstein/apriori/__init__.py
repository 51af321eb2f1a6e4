"""The theory before a run: triples, moduli, targets, proof trees. No certificate rests on it."""
