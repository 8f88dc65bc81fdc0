"""Text files in, batches of ids out. What is named here needs neither JAX nor Grain.

Downloads are in `plainformer.data.fetch`, apart: the network is imported only where it is used.
"""

from plainformer.data.formats import read_lines as read_lines
from plainformer.data.labelled import Labelled as Labelled, read_labelled as read_labelled
from plainformer.data.labelled_report import (
    CleanedLabelled as CleanedLabelled,
    LabelledCleaningReport as LabelledCleaningReport,
    clean_labelled as clean_labelled,
)
from plainformer.data.labels import check_labels as check_labels, label_names as label_names
from plainformer.data.origins import Origins as Origins
from plainformer.data.pairs import Pairs as Pairs, fingerprint as fingerprint, read_pairs as read_pairs
from plainformer.data.report import Cleaned as Cleaned, CleaningReport as CleaningReport, clean as clean
