"""Every verdict on a runtime, from runtimes that are made to earn it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import regex

import fake_runtimes
from fake_runtimes import fake
from vocabshift.checks import runtime_reports
from vocabshift.checks.runtime_reports import (
    RuntimeReport,
    check_runtimes,
    choose,
    compare_runtimes,
)
from vocabshift.checks.runtimes import RUNTIMES
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import script_texts
from vocabshift.text.languages import LANGUAGES
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer

N_TEXTS = 109


@pytest.fixture
def tokenizer(make_byte_level) -> Tokenizer:
    """It splits text as GPT-2 does, and has tokens that hold a space."""
    return make_byte_level(" fox", " the", "ed", "नम", specials=("<|end|>",))


def report_on(tokenizer: Tokenizer, open_folder, *, time_limit: float = 120) -> RuntimeReport:
    [report] = compare_runtimes(tokenizer, None, [fake(open_folder)], time_limit=time_limit)
    return report


def test_a_runtime_that_gives_the_same_ids_is_ok(tokenizer: Tokenizer) -> None:
    """The texts are ours, and one for each added token."""
    report = report_on(tokenizer, fake_runtimes.faithful)
    assert RuntimeReport("faithful", "ok", None, texts=N_TEXTS + 1) == report
    assert report.ok


def test_other_tokens_of_the_same_text_are_wrong_ids(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.character_by_character)
    assert ("wrong ids", 0) == (report.status, report.lost)
    assert 0 < report.differing < report.texts
    assert not report.ok


def test_the_first_difference_is_where_the_ids_part(make_byte_level) -> None:
    """Before it stand at most ten characters of the text; ids are shown with their text."""
    tokenizer = make_byte_level("jump")
    first = report_on(tokenizer, fake_runtimes.character_by_character).first
    assert first is not None
    assert ("eng", 26, 26) == (first.language, first.at, first.token)
    assert "fox can't jump over a dog that isn't the" == first.text
    assert (tokenizer.vocab["jump"], "jump") == first.ours[0]
    assert (tokenizer.vocab["j"], "j") == first.theirs[0]
    assert 6 == len(first.ours) == len(first.theirs)


def test_text_that_does_not_come_back_is_lost(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.without_spaces)
    assert "lost text" == report.status
    assert 0 < report.lost == report.differing < report.texts
    assert not report.ok


def test_lost_text_is_shown_rather_than_wrong_ids_before_it(make_byte_level) -> None:
    """The first text with other ids is English, the one that is lost comes long after it."""

    tokenizer = make_byte_level(" fox")
    report = report_on(tokenizer, fake_runtimes.with_ids_of_nothing)
    assert ("lost text", 1, 1) == (report.status, report.differing, report.lost)
    assert report.first is not None
    assert (("spaces", "\t", 0), ((1 << 40, ""), (-7, ""))) == (
        (report.first.language, report.first.text, report.first.at),
        report.first.theirs,
    )


def test_a_text_in_another_normal_form_is_not_lost(make_byte_level) -> None:
    """A runtime without the tokenizer's normalizer gives the text as it was written."""
    tokenizer = make_byte_level("ab", normalizer={"type": "NFC"})
    plain = replace(tokenizer, normalizer=None)
    ids, _ = plain.encode_batch(["e\u0301"])
    verdict = runtime_reports._compare(tokenizer, [("marks", "e\u0301")], [ids.tolist()])
    assert (1, 0) == (verdict["differing"], verdict["lost"])


def test_an_error_on_opening_is_a_refusal_in_one_short_line(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.refusing)
    assert ("refuses", 0) == (report.status, report.texts)
    assert report.reason.startswith("ValueError: no such pattern in tokenizer.json \ufffd[31mxxx")
    assert 300 == len(report.reason)
    assert report.ok


def test_a_panic_of_rust_is_a_refusal(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.panicking)
    assert ("refuses", "PanicException: index out of bounds") == (report.status, report.reason)


def test_an_error_on_one_text_is_a_refusal(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.refusing_one_text)
    assert ("refuses", N_TEXTS, 0) == (report.status, report.texts, report.differing)
    assert f"1 of {N_TEXTS + 1} texts: IndexError: out of range" == report.reason


def test_ids_that_are_no_numbers_are_a_refusal(tokenizer: Tokenizer) -> None:
    """A text without words gives none at all, which is another matter."""
    report = report_on(tokenizer, fake_runtimes.of_strings)
    assert "lost text" == report.status
    assert "invalid literal" in report.reason


def test_a_runtime_for_other_kinds(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.not_for_this_kind)
    assert ("does not apply", "the folder has no tokenizer.model") == (report.status, report.reason)
    assert report.ok


def test_a_crash_on_opening(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.aborting)
    assert ("crashes", "SIGABRT, while opening the tokenizer") == (report.status, report.reason)
    assert not report.ok


def test_a_crash_names_the_text_that_it_happened_on(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.leaving_early)
    texts = runtime_reports._texts(tokenizer, None)
    place = [text for _, text in texts].index(fake_runtimes.TRIGGER)
    assert ("crashes", place) == (report.status, report.texts)
    assert f"exit status 0, at text {place + 1} of {N_TEXTS + 1}, '\\t'" == report.reason


def test_a_crash_after_the_last_answer_is_none(tokenizer: Tokenizer) -> None:
    assert "ok" == report_on(tokenizer, fake_runtimes.crashing_at_the_end).status


def test_a_runtime_that_hangs_is_ended(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.hanging, time_limit=0.5)
    assert "times out" == report.status
    assert "not done after 0.5 s, while opening the tokenizer" == report.reason
    assert not report.ok


def test_what_a_runtime_prints_is_no_answer(tokenizer: Tokenizer, capfd) -> None:
    assert "ok" == report_on(tokenizer, fake_runtimes.chatting).status
    assert ("", "") == capfd.readouterr()


def test_a_runtime_that_is_not_installed_is_listed(tokenizer: Tokenizer) -> None:
    missing = replace(fake(fake_runtimes.faithful), modules=("tokenizers", "no_such.module"))
    assert (RuntimeReport("faithful", "not installed"),) == compare_runtimes(
        tokenizer, None, [missing]
    )


def test_a_runtime_that_knows_no_special_tokens_is_not_asked_for_them(
    tokenizer: Tokenizer,
) -> None:
    plain = fake(fake_runtimes.faithful, parses_special=False)
    [report] = compare_runtimes(tokenizer, None, [plain])
    assert N_TEXTS == report.texts


def test_further_text_is_compared_by_language(tokenizer: Tokenizer) -> None:
    """Of a long one the beginning."""
    corpus = Corpus.from_texts({"xx": ["a b", "c d " * 100_000, "e"], "yy": ["f"]})
    texts = runtime_reports._texts(tokenizer, corpus)[N_TEXTS + 1 :]
    assert ["xx", "xx", "yy"] == [label for label, _ in texts]
    assert 1 << 16 == sum(len(text) for label, text in texts if label == "xx")


def test_at_most_eight_added_tokens_are_tried(make_byte_level) -> None:
    tokenizer = make_byte_level("ab", specials=tuple(f"<{i}>" for i in range(20)))
    assert N_TEXTS + 8 == len(runtime_reports._texts(tokenizer, None))


def test_a_folder_is_opened_as_it_is(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Whatever else lies in it: here a file that no runtime may trip over."""
    tokenizer.save_pretrained(tmp_path / "own")
    with runtime_reports._folder_of(tokenizer, tmp_path / "own") as folder:
        assert tmp_path / "own" == folder


@pytest.mark.parametrize(
    ("name", "data", "target"),
    [
        ("mine.json", None, "tokenizer.json"),
        ("tokenizer.json", b'{"kept": "as it is"}', "tokenizer.json"),
        ("a.gguf", b"GGUF...", "model.gguf"),
        ("m.model", b"\n\x05pieces", "tokenizer.model"),
    ],
)
def test_a_file_is_given_the_name_that_runtimes_look_for(
    tokenizer: Tokenizer, tmp_path: Path, name: str, data: bytes | None, target: str
) -> None:
    file = tmp_path / name
    file.write_bytes(tokenizer.to_json().encode() if data is None else data)
    with runtime_reports._folder_of(tokenizer, file) as folder:
        found = (folder / target).read_bytes()
        assert {"tokenizer.json", "tokenizer_config.json", target} == {
            path.name for path in folder.iterdir()
        }
    assert (data or tokenizer.to_json().encode() + b"\n") == found
    assert not folder.exists()


def test_a_tokenizer_without_a_file_is_saved_first(tokenizer: Tokenizer) -> None:
    for source in (None, "tiktoken:o200k_base"):
        with runtime_reports._folder_of(tokenizer, source) as folder:
            assert (folder / "tokenizer_config.json").is_file()


@pytest.mark.parametrize("time_limit", [0, -1, float("inf"), float("nan")])
def test_a_time_limit_is_a_number_of_seconds(tokenizer: Tokenizer, time_limit: float) -> None:
    with pytest.raises(ValueError, match="give a number of seconds above 0"):
        check_runtimes(tokenizer, "tokenizers", time_limit=time_limit)


def test_runtimes_are_chosen_by_name() -> None:
    """In the order of the registry; "all" is every one, installed or not."""
    assert list(RUNTIMES) == [runtime.name for runtime in choose()]
    chosen = [runtime.name for runtime in choose("transformers,tokenizers")]
    assert ["tokenizers", "transformers"] == chosen
    assert ["tokenizers"] == [runtime.name for runtime in choose(["tokenizers"])]
    for names in ("kitten", "", "all,tokenizers", ["tokenizers", "kitten"]):
        with pytest.raises(ValueError, match="no such runtime; known are tokenizers, "):
            choose(names)


def test_a_named_runtime_must_be_installed(monkeypatch) -> None:
    """The error says what to install: an extra, or a package that no extra has."""
    for name in ("kitoken", "llama-cpp-python"):
        missing = replace(RUNTIMES[name], modules=("no_such_module",))
        monkeypatch.setitem(RUNTIMES, name, missing)
    with pytest.raises(ImportError) as raised:
        choose("tokenizers,kitoken,llama-cpp-python")
    assert (
        "not installed: kitoken, llama-cpp-python "
        "(pip install 'vocabshift[runtimes]' llama-cpp-python)"
    ) == str(raised.value)


def test_a_report_as_json(tokenizer: Tokenizer) -> None:
    report = report_on(tokenizer, fake_runtimes.without_spaces)
    found = json.loads(json.dumps(report.to_dict()))
    assert ("lost text", report.differing) == (found["status"], found["differing"])
    assert {"language", "text", "at", "token", "ours", "theirs"} == set(found["first"])


def test_the_texts_are_in_every_script_that_we_name() -> None:
    """And one has each kind of character on which patterns differ."""
    text = "".join(text for _, text in script_texts())
    scripts = {script for language in LANGUAGES for script in language.scripts}
    assert [] == [name for name in sorted(scripts) if not regex.search(rf"\p{{sc={name}}}", text)]
    for kind in ("\u200c", "\u200d", "\r\n", "\t", "\u00a0", "\u3000", "\ufe0f", "e\u0301", "'LL"):
        assert kind in text


def test_an_added_token_is_surrounded_by_text(make_byte_level) -> None:
    tokenizer = replace(
        make_byte_level("ab"), added_tokens=(AddedToken("<x>", 300, special=False),)
    )
    [(label, text)] = runtime_reports._texts(tokenizer, None)[N_TEXTS:]
    assert ("added tokens", "<x>Hello <x> नमस्ते<x>\n") == (label, text)
