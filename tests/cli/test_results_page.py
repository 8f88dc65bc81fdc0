"""The curves of docs/results.md are those of the records; its tables are compared in tests/architecture."""

import subprocess
import sys
from pathlib import Path

from pages import ROOT, is_same_drawing


def test_the_curves_of_the_page_are_those_that_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    script = ROOT / "dev" / "write_results.py"
    subprocess.run([sys.executable, script, tmp_path / "results.md"], check=True, capture_output=True, timeout=120)
    drawn = {path.name: path.read_text() for path in (tmp_path / "figures").iterdir()}
    kept = {path.name: path.read_text() for path in (ROOT / "docs" / "figures").glob("results-*.svg")}
    assert drawn.keys() == kept.keys(), "python dev/write_results.py"
    assert drawn
    assert [name for name in drawn if not is_same_drawing(drawn[name], kept[name])] == [], "python dev/write_results.py"
