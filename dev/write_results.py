"""Write the tables of docs/results.md, and their curves, from results/.

    python dev/write_results.py [FILE]

What stands between `<!-- rows: GROUP -->` and `<!-- end -->` is written anew from the rows of that group and from what
is recorded of them, what stands after `<!-- differences: GROUP -->` from those that are compared with another row; all
else on the page is left as it is. Pictures (extra `plots`) are drawn into `figures/` beside FILE, if that folder is
there.
"""

import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from plainformer.reproduce.compare import Delta, deltas
from plainformer.reproduce.record import Record, Run, read_record, spread
from plainformer.reproduce.rows import Row, find_row, read_rows
from plainformer.reproduce.say import DIGITS, name_of

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "results.md"
PART = re.compile(r"(<!-- (rows|differences): ([\w-]+) -->\n).*?(<!-- end -->)", flags=re.DOTALL)
HEAD = (
    "row",
    "published",
    "theirs",
    "ours, over seeds",
    "metric",
    "also",
    "recipe",
    "seeds: steps",
    "training",
    "commit",
)
DELTAS = ("BLEU", "perplexity, per cent")
LEAST_COMPILING = 3.0  # seconds; less is 0.0 minutes
DISTURBED = 1.1  # times what the steps would take at their median: other work shared the processor


def main(target: Path) -> None:
    """Write the page, and draw the curves; print where they are."""
    rows = read_rows(RESULTS)
    text = PAGE.read_text(encoding="utf-8")
    write = {"rows": table, "differences": differences_table}
    target.write_text(PART.sub(lambda part: part[1] + write[part[2]](part[3], rows) + part[4], text), encoding="utf-8")
    print(target)
    pictures = target.parent / "figures"
    for group in dict.fromkeys(row.group for row in rows) if pictures.is_dir() else ():
        draw(group, rows, pictures / picture(group))
    for part in PART.finditer(text) if pictures.is_dir() else ():
        if part[2] == "differences":
            draw_differences(part[3], rows, pictures / picture(f"{part[3]}-differences"))


def picture(name: str) -> str:
    """The file of a picture: of a group its curves."""
    return f"results-{name}.svg"


def table(group: str, rows: Sequence[Row]) -> str:
    """The rows of a group, beside what was published, and what belongs under them."""
    records = {row.name: (row, read_record(RESULTS, row.name)) for row in rows if row.group == group}
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    lines += [f"| {' | '.join(_cells(row, record))} |" for row, record in records.values()]
    notes = [line for row, record in records.values() for line in _under(row, record)]
    lines += ["", *notes] if notes else []
    if any(record for _, record in records.values()):
        lines += ["", f"![Curves of training and of the development set](figures/{picture(group)})"]
    return "\n".join(lines) + "\n"


def draw(group: str, rows: Sequence[Row], path: Path) -> None:
    """The curves of a group's recorded runs, as SVG; nothing where none is recorded."""
    from plainformer.figures.recorded import chart_of_recorded
    from plainformer.inspect.chart import save

    found = {row.name: record for row in rows if row.group == group and (record := read_record(RESULTS, row.name))}
    if found:
        panels = {
            name: {run.seed: {"train": run.train, "dev": run.dev} for run in record.runs}
            for name, record in found.items()
        }
        save(chart_of_recorded(panels), path)
        print(path)


def differences_table(group: str, rows: Sequence[Row]) -> str:
    """How far the rows of a group are from the row that each is compared with: as published, and here."""
    found = _deltas_by_row(group, rows)
    if not found:
        return "Nothing to compare is recorded yet.\n"
    head = ("row", *(f"{title}: {whose}" for title in DELTAS for whose in ("theirs", "ours, over seeds")))
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name, pair in found.items():
        cells = [cell for one in pair for cell in (_signed(one.published), _signed(*one.measured))]
        lines.append(f"| {' | '.join([f'`{name}`', *cells])} |")
    name = picture(f"{group}-differences")
    return "\n".join([*lines, "", f"![How far each row is from its base, there and here](figures/{name})"]) + "\n"


def draw_differences(group: str, rows: Sequence[Row], path: Path) -> None:
    """The table of differences as a picture, SVG."""
    from plainformer.figures.recorded import chart_of_differences
    from plainformer.inspect.chart import save

    found = _deltas_by_row(group, rows)
    panels = {
        title: {name: (pair[at].published, pair[at].measured) for name, pair in found.items()}
        for at, title in enumerate(DELTAS)
    }
    if found:
        save(chart_of_differences(panels), path)
        print(path)


def _deltas_by_row(group: str, rows: Sequence[Row]) -> dict[str, tuple[Delta, Delta]]:
    """The differences by row, of those that have runs to compare."""
    found = {}
    for row in rows:
        if row.group == group and row.compared_with:
            record, baseline = read_record(RESULTS, row.name), read_record(RESULTS, row.compared_with)
            pair = deltas(row, find_row(rows, row.compared_with), record, baseline) if record and baseline else ()
            if pair and pair[0].measured:
                found[row.name] = pair
    return found


def _signed(*values: float | None) -> str:
    """A difference, or the mean and the range of several; nothing where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    among = f" ({min(known):+.1f} to {max(known):+.1f})" if len(known) > 1 else ""
    return f"{fmean(known):+.1f}{among}"


def _cells(row: Row, record: Record | None) -> list[str]:
    published = row.published
    source = "" if published is None else published.source
    source = f"[{source}]({published.url})" if published and published.url else source
    theirs = f"{published.value:g}" if published and published.value is not None else ""
    theirs += f" (perplexity {published.perplexity:g})" if published and published.perplexity else ""
    begin = [f"`{row.name}`: {row.about}", source, theirs]
    recipe = ", ".join([f"[{Path(row.recipe).stem}](../{row.recipe})", *(f"`{change}`" for change in row.set)])
    if record is None or not record.runs:
        return [*begin, "not run yet", name_of(row.metric), "", recipe, "", "", ""]
    runs = record.runs
    ended = [run for run in runs if run.status == "finished"]
    ours = f"**{spread(record.values(row.metric), DIGITS[row.metric])}**" if ended else "not finished, see below"
    counts = dict.fromkeys(run.steps for run in runs)
    steps = "; ".join(f"{', '.join(str(run.seed) for run in runs if run.steps == one)}: {one:,}" for one in counts)
    commits = ", ".join(dict.fromkeys(run.commit for run in runs))
    shown = ended or runs
    return [*begin, ours, _metric(row, shown[0]), _also(row, ended), recipe, steps, _time(shown), commits]


def _metric(row: Row, run: Run) -> str:
    score = run.score(row.metric)
    if score is None or score.ref_len is None:
        return name_of(row.metric)
    theirs = row.published.ref_len if row.published else None
    also = f" (theirs {theirs:,})" if theirs not in (None, score.ref_len) else ""
    return f"{name_of(row.metric)}, {_short(score.signature)}; reference length {score.ref_len:,}{also}"


def _short(signature: str) -> str:
    return ", ".join(part for part in signature.split("|") if part.startswith(("tok:", "case:")))


def _also(row: Row, runs: Sequence[Run]) -> str:
    """The other figures, means over seeds."""
    found = []
    for at, score in enumerate(runs[0].scores if runs else ()):
        if score is runs[0].score(row.metric):
            continue
        mean = fmean(run.scores[at].value for run in runs)
        how = f" ({_short(score.signature)})" if score.metric == "bleu" else ""
        found.append(f"{name_of(score.metric)}{how} {mean:.{DIGITS[score.metric]}f}")
    if runs and runs[0].scores[0].metric == "bleu":
        found.append(f"perplexity {spread([math.exp(run.likelihood['nll']) for run in runs])}")
    return "; ".join(found)


def _time(runs: Sequence[Run]) -> str:
    """How long the runs took, the mean of those on one processor, processor by processor."""
    processors = dict.fromkeys(run.processor for run in runs)
    return "; ".join(f"{_mean_time([run for run in runs if run.processor == one])} on {one}" for one in processors)


def _mean_time(runs: Sequence[Run]) -> str:
    spent = fmean(run.seconds for run in runs)
    alone = fmean(run.steps * run.step_seconds for run in runs)
    shared = f" (shared; {_minutes(alone)} at the median step)" if spent > DISTURBED * alone + 30 else ""
    compiling = fmean(run.compiling_seconds for run in runs)
    shared += f", {_minutes(compiling)} of it compiling" if compiling >= LEAST_COMPILING else ""
    return f"{_minutes(spent)}{shared}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 5940 else f"{seconds / 3600:.1f} h"


def _under(row: Row, record: Record | None) -> list[str]:
    """What belongs under the table: what is not the same as what was published, notes, unfinished runs, comparisons."""
    published = row.published.note if row.published else ""
    said = [*([f"Not the same: {published}."] if published else []), *([f"{row.note}."] if row.note else [])]
    for run in record.runs if record else ():
        if run.status != "finished":
            last = f", dev {run.dev['nll'][-1]:.3f} nats a token" if run.dev else ""
            on = f"`plainformer reproduce {row.name} --seed {run.seed}` goes on"
            said.append(
                f"Seed {run.seed}: {run.status} after {run.steps:,} of {run.planned:,} steps{last}; {run.why or on}."
            )
        elif run.note:
            said.append(f"Seed {run.seed}: {run.note}.")
    if record and record.comparisons:
        by = (f"seed {one.seed} {one.difference:+.2f} BLEU, p = {one.p_value:.3f}" for one in record.comparisons)
        draws = record.comparisons[0]
        said.append(f"Beside `{draws.baseline}` (paired bootstrap, {draws.samples:,} samples): {'; '.join(by)}.")
    return [f"- `{row.name}`: {' '.join(said)}"] if said else []


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
