"""What `check` finds is what a plain look finds, on vocabularies that were trained and damaged."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from strategies import documents, examples
from vocabshift.checks.check import check
from vocabshift.checks.reachability import pipeline_reachability, unreachable_by_pipeline
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer

SAMPLE = [
    "the cat sat on the mat!! it's 12 e\u0301t\u00e9 // \n\n/",
    "की किताब की दुकान से कि क्षण",
] * 3
BASES = {
    name: BpeTrainer(vocab_size=380, pre_tokenizer=name).train(Corpus.from_texts(SAMPLE))
    for name in ("gpt2", "cl100k", "o200k", "matra")
}
added_texts = st.sets(st.sampled_from(("the", " cat", "at", "क", "!!", "<end>", "की ")), max_size=3)


@st.composite
def tokenizers(draw: st.DrawFn) -> Tokenizer:
    """A trained one; merges may be missing, tokens added, merges skipped, text normalized."""
    base = BASES[draw(st.sampled_from(sorted(BASES)))]
    merges = base.model.merges
    dropped = draw(st.sets(st.integers(0, len(merges) - 1), max_size=5))
    kept = tuple(merge for rank, merge in enumerate(merges) if rank not in dropped)
    added = [
        AddedToken(text, base.row_count + 2 * i, special=draw(st.booleans()))
        for i, text in enumerate(sorted(draw(added_texts)))
        if text not in base.model.vocab
    ]
    model = replace(base.model, merges=kept, ignore_merges=draw(st.booleans()))
    normalizer = draw(st.sampled_from((None, {"type": "NFC"}, {"type": "NFKC"})))
    return replace(base, model=model, added_tokens=tuple(added), normalizer=normalizer)


def text_of(token: str) -> str | None:
    try:
        return byte_level.to_bytes(token).decode()
    except UnicodeDecodeError:
        return None


@examples(60)
@given(tokenizer=tokenizers())
def test_every_finding_is_what_a_plain_look_finds(tokenizer: Tokenizer) -> None:
    report = check(tokenizer)
    plain = [token for token in tokenizer.model.vocab if len(token) > 1]
    texts = {token: text for token in plain if (text := text_of(token)) is not None}
    assert {token for token in plain if token not in texts} == set(report.partial_utf8)
    contents = [token.content for token in tokenizer.added_tokens]
    assert {t for t, text in texts.items() if any(c in text for c in contents)} == set(
        report.shadowed
    )
    spelled = [*texts.values(), *(t.content for t in tokenizer.added_tokens if not t.special)]
    twice = [text for text in set(spelled) if spelled.count(text) > 1]
    assert 2 * len(twice) == len(report.duplicates)
    ids = {*tokenizer.model.vocab.values(), *(token.id for token in tokenizer.added_tokens)}
    assert {*range(report.rows)} - ids == set(report.id_holes)
    assert () == report.missing_byte_pieces
    assert 256 == report.byte_pieces

    backend = tokenizer.backend.model
    rebuilt = replace(tokenizer.model, ignore_merges=False)
    merges_alone = replace(tokenizer, model=rebuilt).backend.model
    dead = {t for t in plain if [piece.value for piece in merges_alone.tokenize(t)] != [t]}
    assert dead == set(report.unreachable)
    for token in report.only_by_merge_skipping:
        assert token in dead
        assert [token] == [piece.value for piece in backend.tokenize(token)]
    if not tokenizer.model.ignore_merges:
        assert () == report.only_by_merge_skipping


BESIDE = ("", "a", "1", " ", "!", "\n", "क")
RARE_BEFORE, RARE_BEHIND = "!!", "\t\n"


@examples(15)
@given(tokenizer=tokenizers())
def test_who_stands_beside_a_token_that_is_reached(tokenizer: Tokenizer) -> None:
    """Every pair of neighbours, tried for every token."""
    encoder = Encoder(tokenizer)
    added = {token.content for token in tokenizer.added_tokens}

    def reached(token: str, before: tuple[str, ...], behind: tuple[str, ...]) -> bool:
        token_id, text = tokenizer.model.vocab[token], text_of(token)
        return any(
            token_id in encoder.encode(f"{left}{text}{right}", parse_special=False)
            for left in before
            for right in behind
        )

    tested = [t for t in tokenizer.model.vocab if len(t) > 1 and text_of(t) and t not in added]
    unusual = {token for token in tested if not reached(token, BESIDE, BESIDE)}
    wide = ((*BESIDE, RARE_BEFORE), (*BESIDE, RARE_BEHIND))
    usual, rare = pipeline_reachability(tokenizer)
    assert unusual == set(usual)
    assert {token for token in unusual if reached(token, *wide)} == set(rare)
    assert unusual - set(rare) == set(unreachable_by_pipeline(tokenizer))


@examples(40)
@given(tokenizer=tokenizers(), texts=documents(), threads=st.integers(1, 3))
def test_text_by_language(tokenizer: Tokenizer, texts: list[str], threads: int) -> None:
    """Lines that come back, tokens and pre-tokens, counted one by one by `tokenizers`."""
    corpus = Corpus.from_texts({"x": texts, "y": SAMPLE})
    rows = {row.language: row for row in check(tokenizer, corpus, threads=threads).languages}
    backend = tokenizer.backend
    for label, lines in (("x", texts), ("y", SAMPLE)):
        row = rows[label]
        ids = [backend.encode(line, add_special_tokens=False).ids for line in lines]
        lost = [
            line
            for line, line_ids in zip(lines, ids, strict=True)
            if backend.decode(line_ids, skip_special_tokens=False) != line
        ]
        assert (len(lines), sum(map(len, ids)), len(lost)) == (
            row.lines,
            row.tokens,
            row.round_trip_failures,
        )
        assert lost[:20] == row.lost_lines
        assert sum(len(line.encode()) for line in lines) == row.n_bytes
        assert row.ceiling is None or row.bytes_per_token <= row.ceiling + 1e-9
