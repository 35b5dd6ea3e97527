"""The auxiliary tokenizer of the baselines for SentencePiece BPE: SentencePiece's own trainer.

The dead tokens of the published runs on Mistral-7B are met by nothing else: SentencePiece breaks
ties in its own way. Its package is no dependency of ours; only these baselines need it. Owns how
the trainer is asked; the text reaches it as it is, or in the Unicode form that is named.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from vocabshift.bpe.sentencepiece_rules import SentencePieceRules
from vocabshift.bpe.token_groups import require_metaspace
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import CorpusError
from vocabshift.extension.auxiliary import SIZE, Auxiliary
from vocabshift.text.corpus import Corpus
from vocabshift.text.normalize import normalizer_function

_LONGEST = 1 << 30  # bytes; longer sentences would be left out
_N_ROLES = 3 + 256  # <unk> <s> </s> and the byte pieces: the trainer's smallest vocabulary


def train_sentencepiece_auxiliary(
    base: Tokenizer,
    corpus: Corpus,
    *,
    rules: SentencePieceRules | None = None,
    vocab_size: int = SIZE,
    normalizer: str | None = None,
    threads: int = 1,
) -> Auxiliary:
    """Train the auxiliary tokenizer of a base that spells the space "▁"; it names no merges.

    `rules` stand for those of the base's own model. Every character of the text becomes a token.
    `vocab_size` counts three role tokens and 256 byte pieces; fewer come back where pairs run out.
    Corpus weights play no part. ValueError for a base of another kind, or without the package
    sentencepiece; CorpusError for text that it cannot train on.
    """
    require_metaspace(base)
    try:
        import sentencepiece
    except ImportError:
        raise ValueError(
            "the baselines of a SentencePiece tokenizer are trained by SentencePiece itself; "
            "install it with: pip install sentencepiece"
        ) from None
    rules = rules or base.piece_rules or SentencePieceRules()
    corpus.require_text()
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_sentences(corpus, normalizer),
            model_writer=model,
            model_type="bpe",
            vocab_size=max(vocab_size, _N_ROLES + 1),
            hard_vocab_limit=False,
            character_coverage=1.0,
            byte_fallback=True,
            normalization_rule_name="identity",
            max_sentence_length=_LONGEST,
            max_sentencepiece_length=rules.max_length,
            split_by_unicode_script=rules.split_by_script,
            split_by_number=rules.split_by_number,
            split_by_whitespace=rules.split_by_whitespace,
            split_digits=rules.split_digits,
            treat_whitespace_as_suffix=rules.whitespace_as_suffix,
            allow_whitespace_only_pieces=rules.whitespace_only,
            num_threads=threads,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise CorpusError(f"SentencePiece cannot train on this text: {error}") from None
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    plain = (
        piece_id
        for piece_id in range(pieces.get_piece_size())
        if not (
            pieces.is_control(piece_id) or pieces.is_unknown(piece_id) or pieces.is_byte(piece_id)
        )
    )
    return Auxiliary(tuple(pieces.id_to_piece(piece_id) for piece_id in plain), ())


def _sentences(corpus: Corpus, normalizer: str | None) -> Iterator[str]:
    normalize = normalizer_function(normalizer)
    for _, text in corpus.texts():
        yield text if normalize is None else normalize(text)
