"""The TOKENIZER and MODEL arguments: every verb says the same of a path that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.cli.main import main

VERBS = {
    "check": "check {}",
    "evaluate": "evaluate {} --text {text}",
    "compare": "compare {} {} --text {text}",
    "encode": "encode {} {text} -o {out}",
    "extend": "extend {} --corpus {text} --n-tokens 5 -o {out}",
    "prune": "prune {} --corpus {text} --n-tokens 5 -o {out}",
    "transfer": "transfer {} {} -o {out}",
    "adapt": "adapt {} --corpus {text} --n-tokens 5 -o {out}",
    "plan": "plan {} --corpus {text}",
    "cpt": "cpt model={} data={text} out={out} n_bytes=9",
    "score": "score {} --text {text}",
    "harness": "harness {} --tasks sib200:en",
    "glitch": "glitch {}",
    "latency": "latency {} --text {text}",
    "serve": "serve {}",
}


ADVICE = {
    "no/such/dir": "check the path (it is relative to {here})",
    "models/x": "HF_HUB_OFFLINE is set and the cache holds no copy; check the path",
}
CASES = [(verb, source) for verb in VERBS for source in ADVICE]
CASES.remove(("harness", "models/x"))  # it opens the tasks' data first, which is not here


@pytest.mark.parametrize(("verb", "source"), CASES)
def test_a_path_that_is_not_there(
    verb: str,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one line, before any work: no such folder, and of a Hub name why it was not fetched."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    pytest.importorskip("transformers")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "t.txt"
    text.write_text("to be or not to be, that is the question\n" * 500)
    words = VERBS[verb].format(source, source, text=text, out=tmp_path / "out").split()
    assert 2 == main(words)
    said = capsys.readouterr().err
    assert f"{source}: no such file or folder" in said
    assert ADVICE[source].format(here=tmp_path) in said
    assert 1 == len(said.splitlines())
    assert {text} == set(tmp_path.iterdir())
