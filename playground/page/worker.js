// Python with specchk in it.  One request after the other: {id, call, words} is answered with {id, answer} or
// {id, error}; {line} is progress, {ready} comes once.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const got = async (name) => {
  const answer = await network(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer;
};
// Python itself is compressed, as not every server compresses.
const network = globalThis.fetch;
globalThis.fetch = async (address, options) => {
  if (!String(address).endsWith(".wasm")) return network(address, options);
  const packed = await got(`${address}.bin`);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "application/wasm" } });
};
const plain = (answer) => answer.toJs({ dict_converter: Object.fromEntries });
let explorer;

async function begun() {
  const [python, site, specs] = await Promise.all([
    // Nothing is kept in files: they are gone with the page.
    loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href, env: { XDG_CACHE_HOME: "/dev/null" } }),
    got("site.zip").then((answer) => answer.arrayBuffer()),
    got("specs.json").then((answer) => answer.json()),
  ]);
  python.unpackArchive(site, "zip", { extractDir: "/site" });
  for (const [name, text] of Object.entries(specs)) write(python, name, text);
  python.FS.chdir("/spec");
  python.runPython("import sys; sys.path.insert(0, '/site')");
  return [python, python.pyimport("playground")];
}

function write(python, name, text) {
  const path = `/spec/${name}`;
  python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
  python.FS.writeFile(path, text);
}

// Graphviz comes with the first report or picture, not before Python.
async function withPictures() {
  if (globalThis.graphviz) return;
  const graphviz = await (await import("./viz.js")).instance();
  globalThis.graphviz = (text, engine, format) => graphviz.renderString(text, { engine, format });
}

const CALLS = {
  async check([python, specchk], { path, text }) {
    write(python, path, text);
    return plain(specchk.check(path));
  },
  async command([python, specchk], { words, file }) {
    if (file) {
      await withPictures();
      if (python.FS.analyzePath(file).exists) python.FS.unlink(file);
    }
    const answer = plain(specchk.command(python.toPy(words), (line) => postMessage({ line })));
    const isWritten = file && python.FS.analyzePath(file).exists;
    return { ...answer, file: isWritten ? python.FS.readFile(file, { encoding: "utf8" }) : null };
  },
  async explore([python], { path, model }) {
    await withPictures();
    explorer?.destroy();
    explorer = python.pyimport("explorer").Explorer(path, model);
    return explorer.error;
  },
  async ask(_, { name, body }) {
    if (!explorer) return [410, JSON.stringify({ error: "Python was started again: open the explorer again" })];
    return plain(explorer.ask(name, body));
  },
};

const beginning = begun();
beginning.then(() => postMessage({ ready: true }), (error) => postMessage({ failed: String(error) }));
let last = beginning;
onmessage = ({ data: { id, call, words } }) => {
  last = last.catch(() => undefined).then(async () => {
    try {
      postMessage({ id, answer: await CALLS[call](await beginning, words) });
    } catch (error) {
      postMessage({ id, error: String(error) });
    }
  });
};
