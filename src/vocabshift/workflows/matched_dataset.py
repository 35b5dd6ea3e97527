"""The public `matched_dataset`: packed text and a teacher's reading of it, for a trainer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from vocabshift.cpt.chunks import Teacher
    from vocabshift.cpt.config import LoopConfig
    from vocabshift.cpt.packed_dataset import MatchedDataset
    from vocabshift.cpt.packed_ids import PackedIds
    from vocabshift.tokenizer.formats.load import TokenizerLike


def matched_dataset(
    model: PreTrainedModel,
    tokenizer: TokenizerLike,
    packed: PackedIds | str | Path,
    teacher: Teacher,
    config: LoopConfig | None = None,
) -> MatchedDataset:
    """The training data of `LikelihoodMatching`: packed documents, and what a teacher says of them.

    model, tokenizer: those that are trained. packed: a folder that `vocabshift encode` wrote with
        this tokenizer. teacher: a `StoredTeacher` of the same text in the same order, or a live
        one. config: `sequence_length` and the settings of the objective.

    Documents keep their order; a trainer shuffles rows. Errors as for `pretrain`: ValueError or
    VocabMismatchError for a model, tokenizer, teacher and text that do not fit each other.
    """
    import numpy as np

    from vocabshift.cpt.chunks import MatchedRows
    from vocabshift.cpt.config import MATCHING, LoopConfig, Phase
    from vocabshift.cpt.loop import check_model
    from vocabshift.cpt.objectives import special_ids
    from vocabshift.cpt.packed_dataset import MatchedDataset
    from vocabshift.cpt.packed_ids import MappedRows, PackedIds
    from vocabshift.cpt.teacher_folder import check_teacher
    from vocabshift.tokenizer.formats.load import as_tokenizer

    config = config or LoopConfig(objective=MATCHING)
    if config.objective != MATCHING:
        raise ValueError(f"the objective is {config.objective!r}; it must be {MATCHING!r} here")
    ours = as_tokenizer(tokenizer)
    opened = packed if isinstance(packed, PackedIds) else PackedIds.open(packed)
    opened.require(ours)
    separator = check_model(model, ours.row_count, config, [Phase(n_bytes=1)])
    check_teacher(config, teacher, opened.document_bytes)
    special = special_ids(model, ours, separator, config)
    chosen = np.flatnonzero(opened.document_bytes)
    rows = MappedRows(opened, chosen, separator=separator, length=config.sequence_length)
    matched = MatchedRows(rows, rows.documents, config.sequence_length, ours, teacher, config)
    return MatchedDataset(matched, config, special)
