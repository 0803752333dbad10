// The TextMate grammar against the parser: SPECCHK_TOKENS names a JSON file with the tokens of specs, as the parser has them
// ([[path, text, [[line, column, length, kind], ...]], ...], kinds keyword, name, number, comment; tests/editors writes it).
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";

const require = createRequire(import.meta.url);
const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
const file = new URL("../syntaxes/specchk.tmLanguage.json", import.meta.url);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(file, "utf8"), "specchk.tmLanguage.json"),
});
const grammar = await registry.loadGrammar("source.specchk");

const WORDS = /^(keyword|storage|constant\.language|support\.type)\./;
const fits = {
  keyword: (scope) => WORDS.test(scope),
  name: (scope) => !WORDS.test(scope) && !scope.startsWith("comment") && !scope.startsWith("constant"),
  number: (scope) => scope.startsWith("constant.numeric"),
  comment: (scope) => scope.startsWith("comment"),
};

/** The innermost scope at each character of each line. */
function scopes(text) {
  let state = textmate.INITIAL;
  return text.split("\n").map((line) => {
    const result = grammar.tokenizeLine(line, state);
    state = result.ruleStack;
    const of = [];
    for (const token of result.tokens) of.fill(token.scopes.at(-1), of.length, (of.length = token.endIndex));
    return of;
  });
}

for (const [path, text, tokens] of JSON.parse(readFileSync(process.env.SPECCHK_TOKENS, "utf8"))) {
  test(path, () => {
    const lines = scopes(text);
    for (const [line, column, length, kind] of tokens) {
      for (const at of [column, column + length - 1]) {
        const scope = lines[line][at];
        assert.ok(fits[kind](scope), `${line + 1}:${column + 1} ${kind} is ${scope}: ${text.split("\n")[line]}`);
      }
    }
  });
}
