"""What goes with what: one table, one sentence for each pair that does not."""

from __future__ import annotations

from goldstein.errors import InputError, InputTypeError

#: What a call has that do not go together, what is raised, and what is said. Solvers, kinds of
#: stationarity and terms declare what they need (`needs`); arguments go by their names.
TABLE: dict[frozenset[str], tuple[type[Exception], str]] = {
    frozenset({"values only", "an expression"}): (
        InputTypeError,
        "stationarity={kind!r} is proved from the structure of an Expression; values alone support "
        "'goldstein', with a confidence.",
    ),
    frozenset({"values only", "plus"}): (
        InputError,
        "plus= needs a gradient of fun, and only values are asked for here; pass jac=, or write "
        "the term into fun.",
    ),
    frozenset({"differences", "gradients"}): (
        InputError,
        "jac={jac!r} goes with method='auto' or 'values', not with {method!r}: it needs gradients.",
    ),
    frozenset({"no limits", "limits"}): (
        InputError,
        "method={method!r} knows no bounds and no constraints; method='values' does.",
    ),
    frozenset({"values only", "layout", "constraints"}): (
        InputTypeError,
        "statistics of constraints need points that are vectors, and x0 is none; ravel it and "
        "unpack it in the functions, or give every constraint a jac.",
    ),
    frozenset({"plus", "constraints"}): (
        InputError,
        "plus= does not go together with constraints; write h into fun.",
    ),
    frozenset({"checkpoint", "workers"}): (
        InputError,
        "a checkpoint is a journal of answers one by one, and workers take many at a time; drop "
        "checkpoint= or workers=.",
    ),
    frozenset({"feasible", "unlimited"}): (
        InputError,
        "options={{'feasible': True}} is about constraints, and there are none.",
    ),
}


def refuse(present: set[str], **words: object) -> None:
    """Refuse the first pair of the table that a call has."""
    for pair, (error, sentence) in TABLE.items():
        if pair <= present:
            raise error(sentence.format(**words))
