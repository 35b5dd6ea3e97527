"""Notes on metrics say what the registry says."""

from __future__ import annotations

from vocabshift.evaluation.metrics.ratios import METRICS
from vocabshift.report.metric_notes import IN_PLACE_OF_LANGUAGES, NOTES, WHOLE, note_of


def test_every_metric_has_a_note_with_its_direction() -> None:
    signs = {"lower": -1, "higher": 1, "neither": 0}
    for name, metric in METRICS.items():
        assert name in NOTES
        assert signs[metric.better] == NOTES[name].better, name
    assert {*WHOLE, *IN_PLACE_OF_LANGUAGES} <= set(METRICS)


def test_labels_are_told_apart() -> None:
    labels = [note.label for note in NOTES.values()]
    assert len(labels) == len(set(labels))
    assert "my metric" == note_of("my_metric").label
