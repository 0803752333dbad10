// Makes dist/, the playground as a folder of files, from what `make playground` has put into build/ and node_modules/:
// wheels are unpacked and compiled by the Python that will run them, into one archive.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { loadPyodide } from "pyodide";

const here = dirname(fileURLToPath(import.meta.url)), root = dirname(here), dist = join(here, "dist");
const within = (...parts) => readFileSync(join(...parts), "utf8");
// What needs libraries or processes that a browser does not have, and what serves only those.
const UNUSED = [
  "lark/tools", "lark/grammars", "replog",
  ...["codegen", "export", "lsp", "mcp", "review", "spark", "symbolic"].map((room) => `specchk/${room}`),
  ...["accepted", "conforming", "skeletons", "skills", "starters"].map((part) => `specchk/cli/${part}`),
  ...["adapter", "behaviour", "covers", "gate", "mutation", "recordings", "report", "work"].map((part) => `specchk/conform/${part}`),
  ...["kernel", "values", "walking"].map((part) => `specchk/native/${part}`),
];

async function archive() {
  const python = await loadPyodide();
  for (const name of readdirSync(join(here, "build"))) {
    python.unpackArchive(new Uint8Array(readFileSync(join(here, "build", name))), "wheel", { extractDir: "/site" });
  }
  // Python's tests leave a folder of bytecode there.
  for (const name of readdirSync(join(here, "python")).filter((name) => name.endsWith(".py"))) {
    python.FS.writeFile(`/site/${name}`, within(here, "python", name));
  }
  python.globals.set("unused", python.toPy(UNUSED));
  python.runPython(`
import compileall, pathlib, py_compile, shutil
site = pathlib.Path("/site")
for folder in [*(site / name for name in unused), *site.glob("*.data")]:
    shutil.rmtree(folder)
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
assert compileall.compile_dir(site, quiet=1, legacy=True, invalidation_mode=mode)
for source in site.rglob("*.py"):
    source.unlink()
shutil.make_archive("/site", "zip", site)
`);
  return python.FS.readFile("/site.zip");
}

rmSync(dist, { recursive: true, force: true });
cpSync(join(here, "page"), dist, { recursive: true });
writeFileSync(join(dist, "site.zip"), await archive());
mkdirSync(join(dist, "pyodide"));
const pyodide = join(here, "node_modules/pyodide");
for (const name of ["pyodide.mjs", "pyodide.asm.mjs", "python_stdlib.zip", "pyodide-lock.json"]) {
  cpSync(join(pyodide, name), join(dist, "pyodide", name));
}
// By far the largest, and compressed here, since not every server compresses; not named .gz, as of such a file some
// would say that it is the encoding of another one.
writeFileSync(join(dist, "pyodide/pyodide.asm.wasm.bin"), gzipSync(readFileSync(join(pyodide, "pyodide.asm.wasm")), { level: 9 }));
cpSync(join(here, "node_modules/@viz-js/viz/dist/viz.js"), join(dist, "viz.js"));

const specs = Object.fromEntries(readdirSync(join(root, "spec"), { recursive: true })
  .filter((name) => name.endsWith(".spec"))
  .sort((a, b) => b.includes("/") - a.includes("/") || (a < b ? -1 : 1)) // examples first, then this project's own
  .map((name) => [name, within(root, "spec", name)]));
writeFileSync(join(dist, "specs.json"), JSON.stringify(specs));

// The explorer's page is the product's own; only what it asks, its server, is another one.
const explorer = join(root, "interp/specchk/report/explorer/assets");
for (const name of ["explorer.css", "explorer.js"]) cpSync(join(explorer, name), join(dist, name));
writeFileSync(join(dist, "explorer.html"),
  within(explorer, "explorer.html").replace("<script ", '<script src="ask.js"></script>\n<script ')
    .replace(" The address links to this state.", "")); // here it is the address of a frame

// The page of a run has its script in it, which the policy of the playground's page has to name.
const script = `\n${within(root, "interp/specchk/report/page/assets/report.js")}`;
const page = within(dist, "index.html").replace("{REPORT}", createHash("sha256").update(script).digest("base64"));
writeFileSync(join(dist, "index.html"), page);

// A build has a name of its own, under which a browser keeps its files.
const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name)).sort();
const build = createHash("sha256");
for (const file of files) build.update(file).update(readFileSync(file));
const offline = within(dist, "offline.js").replace("{BUILD}", build.digest("hex").slice(0, 12));
writeFileSync(join(dist, "offline.js"), offline);
