"""Modules as one script: it runs, in the right order, and what it cannot join it refuses."""

import json
import subprocess
from pathlib import Path

import pytest
from test_engine_models import MODELS

from plainformer.page.bundle import bundle
from plainformer.page.document import VIEWS
from plainformer.page.scripts import ENGINE, as_script
from plainformer.page.served import FRONT
from plainformer.tokenizer import train_character
from random_models import content_of

WORKER = """
globalThis.self = { postMessage: (message) => console.log(JSON.stringify(message)) };
eval(require("fs").readFileSync(process.argv[2], "utf8"));
const bundle = require("fs").readFileSync(process.argv[3], "utf8");
const asked = [["load", { bundle }], ["forward", { text: "fox" }], ["arrays", { names: ["no such"] }]];
asked.forEach(([method, asked], id) => self.onmessage({ data: { id, method, asked } }));
"""


def test_the_worker_as_one_script_answers_messages(node: Path, tmp_path: Path) -> None:
    script, model, test = (tmp_path / name for name in ("worker.js", "bundle.json", "test.cjs"))
    script.write_text(as_script(VIEWS / "main.js"), encoding="utf-8")
    content = content_of(MODELS["GPT-2"], train_character(["the quick fox"]))
    model.write_text(bundle(content, {}).to_json(), encoding="utf-8")
    test.write_text(WORKER, encoding="utf-8")
    done = subprocess.run([node, test, script, model], capture_output=True, text=True, timeout=60, check=True)
    loaded, passed, refused = map(json.loads, done.stdout.splitlines())
    assert loaded["result"]["stacks"] == {"": 3}
    assert [token["text"] for token in passed["result"]["source"]] == ["f", "o", "x"]
    assert refused == {"id": 2, "error": "the last pass has no array called no such"}


def test_each_module_is_there_once_behind_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        'import { b as first } from "./b.js";\nimport {\n  c,\n} from "./c.js";\nfirst(c);\n'
    )
    (tmp_path / "b.js").write_text('import { c } from "./c.js";\nexport function b(x) {\n  return x + c;\n}\n')
    (tmp_path / "c.js").write_text("export const c = 1;\n")
    script = as_script(tmp_path / "a.js")
    assert script.count("const c = 1;") == 1
    assert script.index("const c = 1;") < script.index("function b(x)") < script.index("first(c);")
    assert "const { b: first } = module_1;" in script
    assert "export " not in script


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('import c from "./c.js";\n', "not written as modules are here"),
        ("export default 3;\n", "not written as modules are here"),
        ('import { a } from "./a.js";\n', "imports itself"),
        ('const text = "</script>";\n', "end of a script element"),
    ],
)
def test_what_cannot_be_joined_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(text)
    with pytest.raises(ValueError, match=message):
        as_script(tmp_path / "a.js")


def test_modules_keep_the_sizes_of_the_house() -> None:
    for path in (*ENGINE.rglob("*.js"), *VIEWS.rglob("*.js"), *FRONT.rglob("*.js")):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 400, path
        assert max(map(len, lines)) <= 120, path
        assert lines[0].startswith("/**"), f"{path} does not say what it is for"
