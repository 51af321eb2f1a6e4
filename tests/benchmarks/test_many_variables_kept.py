"""Runs of `benchmarks.many_variables` are kept one by one, and written to the page."""

import json

import pytest
from benchmarks import many_variables
from benchmarks.many_variables import HEADER, MARKS, Kept, write_page

ASKED = {"problem": "brown_2", "d": 1000, "start": 0, "elements": False}
OURS = {
    "success": True, "verified": True, "calls": 201, "cpu": 0.2, "verify": 0.0, "fun": 0.5,
    "eps": 0.01, "rows": 5, "peak": 11_000_000,
}  # fmt: skip


class Runs(list):
    """The runs that were made; each of them answers with the next of `answers`."""

    def __init__(self):
        super().__init__()
        self.answers = [OURS]

    def __call__(self, *args):
        self.append(args)
        return self.answers.pop(0)


@pytest.fixture
def made(monkeypatch):
    runs = Runs()
    monkeypatch.setattr(many_variables, "describe_commit", lambda: "abc")
    monkeypatch.setattr(many_variables, "in_a_process", runs)
    return runs


def test_what_is_kept_is_not_run_again(made, tmp_path, monkeypatch):
    path = tmp_path / "kept" / "runs.jsonl"
    question = {**ASKED, "who": "own"}
    assert Kept(path).run(question, "--one", "own") == OURS
    assert Kept(path).run(question, "--one", "own") == OURS
    assert len(made) == 1
    made.answers = [OURS, OURS]
    Kept(path).run({**question, "d": 2000}, "--one", "own")
    monkeypatch.setattr(many_variables, "describe_commit", lambda: "abd")
    Kept(path).run(question, "--one", "own")
    assert len(made) == 3


def test_a_run_that_failed_is_tried_again(made, tmp_path):
    path = tmp_path / "runs.jsonl"
    made.answers = [{"failed": ["killed"]}, OURS]
    assert "failed" in Kept(path).run({**ASKED, "who": "own"})
    assert Kept(path).run({**ASKED, "who": "own"}) == OURS


def test_the_table_has_the_rows_of_the_last_commit_between_the_marks(tmp_path, monkeypatch):
    path, page = tmp_path / "runs.jsonl", tmp_path / "page.md"
    page.write_text("Before.\n\n" + "\nold\n".join(MARKS) + "\n\nAfter.\n")
    monkeypatch.setattr(many_variables, "PAGE", page)
    peer = {"fun": 0.25, "calls": 77}
    results = [
        ({**ASKED, "who": "own", "commit": "old"}, OURS),
        ({**ASKED, "who": "own", "d": 10_000, "commit": "abc"}, OURS),
        ({**ASKED, "who": "own", "commit": "abc"}, {**OURS, "verified": False}),
        ({**ASKED, "who": "lmbm", "commit": "abc"}, peer),
    ]
    lines = [json.dumps({"question": asked, "answer": answer}) for asked, answer in results]
    path.write_text("\n".join(lines))
    for _ in range(2):  # twice is as good as once
        write_page(Kept(path))
    text = page.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert "old" not in text
    table = text.split(HEADER)[1].split(MARKS[1])[0].strip().splitlines()
    assert [line.split(" | ")[1] for line in table] == ["1,000", "10,000"]
    assert "CONTRADICTED" in table[0]
    assert table[0].endswith("| - | 0.25 (77) |")
