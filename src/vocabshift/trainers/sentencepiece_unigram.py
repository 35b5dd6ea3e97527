"""Unigram language models by SentencePiece's own trainer, from counted words.

Owns the call (method.md section 6: no code of ours). Knows nothing of corpora, for words come with
their counts, nor of the tokenizer that is made of the pieces.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from vocabshift.bpe.unigram import UNKNOWN, Scored

_THREADS = 16
"""SentencePiece adds up parts of each thread: this number, and not the machine's, is part of what
is learned."""


def learn_unigram(
    words: Iterable[tuple[str, int]],
    vocab_size: int,
    *,
    character_coverage: float,
    max_piece_length: int,
    asked: str | None = None,
) -> Scored:
    """Pieces for words with their counts.

    There are fewer than `vocab_size` where the words have no more to give. Every machine and
    number of threads gives the same pieces. ValueError where `vocab_size` has no room for the
    characters; `asked` says in the message what the user asked for.
    """
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "words.tsv"
        with table.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\t{count}\n" for word, count in words)
        prefix = str(Path(folder) / "unigram")
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                model_prefix=prefix,
                model_type="unigram",
                vocab_size=vocab_size,
                hard_vocab_limit=False,
                character_coverage=character_coverage,
                max_sentencepiece_length=max_piece_length,
                byte_fallback=True,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                split_by_unicode_script=True,
                split_by_number=True,
                train_extremely_large_corpus=True,
                max_sentence_length=1 << 20,
                shuffle_input_sentence=False,
                num_threads=_THREADS,
                unk_piece=UNKNOWN,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            if "required_chars" in str(error) or "vocab_size" in str(error):
                raise ValueError(
                    f"{asked or f'vocab_size {vocab_size}'} has no room for the characters of the "
                    "text beside 256 bytes; give more, or a lower character_coverage"
                ) from None
            raise
        model = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    size = model.get_piece_size()
    return Scored(
        tuple(model.id_to_piece(i) for i in range(size)),
        tuple(model.get_score(i) for i in range(size)),
    )
