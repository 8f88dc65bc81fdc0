// Answers the questions on standard input, [[method, asked], …], by the session of the engine in the folder argv[2].
// The first is the load of a bundle, whose file "bundle" names.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Session } = await import(pathToFileURL(`${process.argv[2]}/session.js`));
const session = new Session();
const answers = JSON.parse(readFileSync(0, "utf8")).map(([method, asked]) => {
  const given = method === "load" ? { bundle: readFileSync(asked.bundle, "utf8") } : asked;
  try {
    return { result: session[method](given) };
  } catch (error) {
    return { error: error.message };
  }
});
const written = (number) => (Number.isFinite(number) ? number : `${number}`);
const plain = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value, written) : value);
process.stdout.write(JSON.stringify(answers, plain));
