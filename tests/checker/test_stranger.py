"""A checker written by a stranger from the format page alone agrees with goldstein-check."""

import contextlib
import io
import json
import random
import runpy
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import goldstein_check

STRANGER = runpy.run_path(str(Path(__file__).with_name("stranger.py")))
decide, limit, read_node = (STRANGER[name] for name in ("decide", "limit", "read_node"))
VERDICTS = {0: "TRUE", 1: "FALSE", 2: "UNREADABLE"}
ABS = {"breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]}
RELU = {"breakpoints": ["0"], "pieces": [["0"], ["0", "1"]]}
RAMP = {"breakpoints": ["0", "1"], "pieces": [[], ["0", "1"], ["1"]]}
BENT = {"breakpoints": ["-1", "0", "1"], "pieces": [["1", "1"], ["0"], ["0", "0"], ["-1", "1"]]}
STRAIGHT = {"breakpoints": ["0"], "pieces": [["0", "1"], ["0", "1", "0"]]}
Node = dict[str, Any]


def written(value: Fraction | int, rng: random.Random) -> str:
    """A number in one of the formats of the page."""
    value = Fraction(value)
    a, b, sign = abs(value.numerator), value.denominator, "-" if value < 0 else ""
    forms = [str(value), f"{sign}{2 * a}/{2 * b}", f"{sign}{a:#x}/{b:#x}"]
    if Fraction(float(value)) == value:
        forms.append(float(value).hex())
    return rng.choice(forms[:1] * 3 + forms)


def random_function(rng: random.Random, n: int) -> list[Node]:
    """A function of n variables with kinks at small integers, and terms that cancel."""
    nodes: list[Node] = [{"op": "variable", "size": n}]
    sizes = [n]

    def add(size: int, op: str, of: list[int], **more: Any) -> int:
        nodes.append({"op": op, "of": of, **more})
        sizes.append(size)
        return len(nodes) - 1

    def affine(arg: int, count: int) -> int:
        columns = rng.choice([k for k in (1, 1, 2) if sizes[arg] % k == 0])
        width = sizes[arg] // columns
        data: Node = {"columns": columns, "width": width}
        lengths = [width] * count
        if rng.random() < 0.4:
            places = [rng.sample(range(width), rng.randint(0, width)) for _ in range(count)]
            data["at"], lengths = places, [len(row) for row in places]
        if "at" not in data or rng.random() < 0.7:
            entries = (-1, 0, 0, 1, 1, 2)
            data["rows"] = [[written(rng.choice(entries), rng) for _ in range(k)] for k in lengths]
            if "at" not in data and rng.random() < 0.4:
                data["rows"][-1] = data["rows"][0]  # one function twice
        if rng.random() < 0.3:
            data["offset"] = [written(rng.choice([-1, 0, 1]), rng) for _ in range(count * columns)]
        return add(count * columns, "affine", [arg], **data)

    def scaled(arg: int, factor: int) -> int:
        k = sizes[arg]
        return add(k, "affine", [arg], columns=k, width=1, rows=[[written(factor, rng)]])

    for _ in range(rng.randint(2, 5)):
        last = rng.choice([len(nodes) - 1, len(nodes) - 1, rng.randrange(len(nodes))])
        choice = rng.random()
        if choice < 0.15:  # one function twice, in a maximum, which may lose itself again
            row = [written(rng.choice([-1, 0, 1, 1]), rng) for _ in range(sizes[last])]
            rows = [row, row, *[["0"] * sizes[last]] * rng.randint(0, 1)]
            twins = add(len(rows), "affine", [last], columns=1, width=sizes[last], rows=rows)
            if rng.random() < 0.4:
                twins = add(len(rows), "add", [twins] * rng.randint(1, 2))
            top = add(1, "max", [twins], columns=len(rows))
            if rng.random() < 0.5:
                first = add(
                    1, "affine", [twins], columns=1, width=len(rows), rows=[["-1"]], at=[[0]]
                )
                add(1, "piecewise", [add(1, "add", [top, first])], **ABS)
        elif choice < 0.3:
            affine(last, rng.randint(1, 3))
        elif choice < 0.6:
            shape = rng.choice([ABS, ABS, RELU, RELU, RAMP, BENT, STRAIGHT])
            add(sizes[last], "piecewise", [last], **shape)
        elif choice < 0.75:
            columns = rng.choice([k for k in (1, 2, 3, 4) if sizes[last] % k == 0][-2:])
            add(sizes[last] // columns, "max", [last], columns=columns)
        elif choice < 0.9:  # u - u, and a kink at 0
            gone = add(sizes[last], "add", [scaled(last, 1), scaled(last, -1)])
            add(sizes[last], "piecewise", [gone], **rng.choice([ABS, RELU, STRAIGHT]))
        else:
            alike = [k for k in range(len(nodes)) if sizes[k] == sizes[last]]
            add(sizes[last], "add", [last, *rng.choices(alike, k=rng.randint(0, 2))])
    ends = [len(nodes) - 1]
    if rng.random() < 0.5:
        ends.append(rng.randrange(len(nodes)))
    ends = [
        add(1, "affine", [k], columns=1, width=sizes[k], at=[list(range(sizes[k]))]) for k in ends
    ]
    add(1, "add", ends)
    return nodes


def near_root(square: Fraction, rng: random.Random) -> Fraction:
    """The root if it is rational, or a bit more, or a bit less."""
    scale = 10**6 * square.denominator
    root = Fraction(isqrt(int(square * scale**2)), scale)
    move = rng.choice([0, 0, 0, 1, 1, -1])
    if root**2 < square and move >= 0:
        root += Fraction(1, scale)
    return max(Fraction(0), root + Fraction(move, scale))


def random_proof(rng: random.Random) -> dict[str, Any]:
    n = rng.randint(1, 3)
    function = random_function(rng, n)
    pivot = [Fraction(rng.choice([-1, 0, 0, 0, 1, 1])) for _ in range(n)]
    count = rng.randint(1, 4)
    directions = [[rng.choice([-2, -1, -1, 0, 1, 1, 3]) for _ in range(n)] for _ in range(count)]
    weights = [rng.choice([0, 1, 1, 1, 2, 3]) for _ in range(count)]
    # The true value of the evidence; where a direction stays on a kink, any number.
    nodes, sizes = json.loads(json.dumps(function)), []
    for node in nodes:
        sizes.append(read_node(node, sizes))
    total = [Fraction(0)] * n
    for weight, v in zip(weights, directions, strict=True):
        gradient = limit(nodes, pivot, [Fraction(t) for t in v]) or [Fraction(1)] * n
        total = [a + weight * g for a, g in zip(total, gradient, strict=True)]
    eps = near_root(sum(t**2 for t in total) / max(1, sum(weights)) ** 2, rng)
    step = [Fraction(rng.choice([0, 0, 3, 4, -4, 1]), 4) for _ in range(n)]
    delta = near_root(sum((t**2 for t in step), Fraction(0)), rng)
    if rng.random() < 0.1:
        weights[rng.randrange(count)] -= 1  # forged: another combination, or a negative weight
    if rng.random() < 0.1:
        pivot[rng.randrange(n)] += rng.choice([-1, 1])  # moved: too far, or another gradient
    x = [a - b for a, b in zip(pivot, step, strict=True)]
    return {
        "schema": "goldstein-proof",
        "version": rng.choice([1, 2]),
        "claim": {"kind": "near", "eps": written(eps, rng), "delta": written(delta, rng)},
        "x": [written(t, rng) for t in x],
        "evidence": {
            "pivot": [written(t, rng) for t in pivot],
            "directions": [[written(t, rng) for t in v] for v in directions],
            "weights": [written(t, rng) for t in weights],
        },
        "function": function,
    }


def damaged(proof: dict[str, Any], rng: random.Random) -> str:
    """The text of a file with one fault, which may leave it readable."""
    proof = json.loads(json.dumps(proof))
    objects = [proof, proof["claim"], proof["evidence"], *proof["function"]]
    lists = [proof["x"], *proof["evidence"].values(), proof["function"]]
    lists += [value for node in proof["function"] for value in node.values()]
    lists = [value for value in lists if isinstance(value, list) and value]
    victim, values = rng.choice(objects), rng.choice(lists)
    fault = rng.randrange(9)
    if fault == 0:
        del victim[rng.choice(list(victim))]
    elif fault == 1:
        victim[rng.choice(["columns", "bounds", "of", "at", "note"])] = rng.choice([None, [], 1])
    elif fault == 2:
        values.pop(rng.randrange(len(values)))
    elif fault == 3:
        values.append(values[-1])
    elif fault == 4:
        bad = ["", "+1", "1/0", "1/-2", "1.5", " 1", "inf", "0x1.8p+2000", "0X1", "1e1", "1_0"]
        values[rng.randrange(len(values))] = rng.choice([*bad, 1, 1.0, None, True, -1, "1"])
    elif fault == 5:
        victim[rng.choice(list(victim))] = rng.choice([0, 3, -1, "-1", "2", None, {}, [["0"]]])
    text = json.dumps(proof)
    if fault == 6:
        key = rng.choice(['"schema"', '"kind"', '"op"', '"pivot"', '"size"'])
        text = text.replace(key, f'{key}: "1", {key}', 1)
    elif fault == 7:
        text = rng.choice(["\ufeff" + text, text[:-1], text + "]", f"[{text}]", "\n" + text + " "])
    elif fault == 8:  # outside of the fragment, or nowhere
        new = rng.choice(['"op": "log"', '"op": "abs"', '"op": "variable"'])
        text = text.replace('"op": "add"', new, 1)
    return text


def test_a_stranger_and_the_reference_agree(tmp_path: Path) -> None:
    rng = random.Random(20)
    path = tmp_path / "proof.json"
    counts = {"TRUE": 0, "FALSE": 0, "UNREADABLE": 0, "OUTSIDE": 0}
    for case in range(440):
        proof = random_proof(rng)
        text = damaged(proof, rng) if case % 5 == 0 else json.dumps(proof)
        verdict = decide(text)
        counts[verdict] += 1
        if verdict == "OUTSIDE":
            continue
        path.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            code = goldstein_check.main([str(path)])
        assert VERDICTS[code] == verdict, text
    assert sum(counts.values()) - counts["OUTSIDE"] >= 200, counts
    assert min(counts["TRUE"], counts["FALSE"]) >= 40, counts
    assert counts["UNREADABLE"] >= 10, counts
