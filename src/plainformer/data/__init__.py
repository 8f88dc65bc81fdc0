"""Text files in, batches of ids out. What is named here needs neither JAX nor Grain.

Downloads are in `plainformer.data.fetch`, apart: the network is imported only where it is used.
"""

from plainformer.data.corpus import (
    Origins as Origins,
    Pairs as Pairs,
    fingerprint as fingerprint,
    read_pairs as read_pairs,
)
from plainformer.data.formats import read_lines as read_lines
from plainformer.data.labelled import (
    CleanedLabelled as CleanedLabelled,
    Labelled as Labelled,
    LabelledReport as LabelledReport,
    check_labels as check_labels,
    clean_labelled as clean_labelled,
    label_names as label_names,
    read_labelled as read_labelled,
)
from plainformer.data.report import Cleaned as Cleaned, Report as Report, clean as clean
