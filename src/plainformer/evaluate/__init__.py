"""How good a model is: scores of its translations or labels, likelihood of the references, and the report of both."""

from plainformer.evaluate.bleu import TOKENIZERS, Scores, check_tokenizer, score_translations
from plainformer.evaluate.classification import ClassificationScores, LabelScores, score_labels
from plainformer.evaluate.report import Likelihood, Report, versions, write_report

__all__ = [
    "TOKENIZERS",
    "ClassificationScores",
    "LabelScores",
    "Likelihood",
    "Report",
    "Scores",
    "check_tokenizer",
    "score_labels",
    "score_translations",
    "versions",
    "write_report",
]
