// Of each tokenizer on standard input: the ids of texts, their texts again, and the texts of other ids modulo its size.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Tokenizer } = await import(pathToFileURL(`${process.argv[2]}/tokenizer/tokenizer.js`));
const { tokenizers, texts, ids } = JSON.parse(readFileSync(0, "utf8"));
const answers = (described) => {
  const tokenizer = new Tokenizer(described);
  const own = texts.map((text) => (described.inside ? tokenizer.encode_inside(text) : tokenizer.encode(text)));
  const others = ids.map((row) => row.map((id) => id % tokenizer.vocab_size));
  return [own, own.map((row) => tokenizer.decode(row)), others.map((row) => tokenizer.decode(row))];
};
const found = tokenizers.map((described) => {
  try {
    return answers(described);
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(found));
