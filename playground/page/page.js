"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const make = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text ?? "" }, more);
  const FIRST = "examples/two_phase_commit.spec", OWN = "mine.spec", DRAFT = "specchk playground";
  const LONGEST = 1 << 20; // characters of a shared spec: a short link could hold gigabytes
  const ENGINE = ["--engine", "reference"];
  const EXITS = { 0: "good", 10: "bad", 11: "bad" };
  let specs = {}, path = FIRST, names = null;

  // -- Python, in a worker: requests are answered in their order; a worker that is stopped is replaced.
  let worker, waiting = new Map(), number = 0, searching = false;

  function begin() {
    say("ready", "Loading Python …");
    worker = new Worker("worker.js", { type: "module" });
    worker.onmessage = ({ data }) => {
      if (data.line !== undefined) return data.line && say("status", data.line.replace(", 0 MB", "")); // it is not known
      if (data.ready) return loaded();
      if (data.failed) return say("ready", `Python could not be loaded: ${data.failed}. Reload the page to try again.`);
      // What a command has to say is its answer; anything else has ended Python.
      if (data.error !== undefined) return stop(`Python has failed, and is started again: ${data.error}`);
      const { resolve } = waiting.get(data.id);
      waiting.delete(data.id);
      return resolve(data.answer);
    };
    worker.onerror = (event) => say("ready", `Python could not be loaded: ${event.message || "this browser is too old"}.`);
  }

  function ask(call, words) {
    return new Promise((resolve, reject) => {
      waiting.set(++number, { resolve, reject });
      worker.postMessage({ id: number, call, words });
    });
  }

  function stop(reason) {
    worker.terminate();
    const stopped = [...waiting.values()];
    waiting = new Map();
    seen = null; // the files of a new worker are the bundled specs
    for (const { reject } of stopped) reject(new Error(reason));
    begin();
  }

  async function loaded() {
    say("ready", "Ready.");
    if (!navigator.serviceWorker?.controller) return;
    try {
      for (const name of ["viz.js", "explorer.html", "explorer.css", "explorer.js", "ask.js"]) await fetch(name);
      say("ready", "Ready, also without a network.");
    } catch { /* the network is gone before all was there: only what is there works */ }
  }

  window.askExplorer = (name, body) => ask("ask", { name, body });

  // -- The text, its line numbers, its errors.
  const text = at("text");
  let seen = ""; // what was checked last
  let checked = Promise.resolve(); // when that has its answer: the first one waits for Python

  function edit(name, content) {
    path = name;
    text.value = content;
    text.scrollTop = 0;
    at("specs").value = name in specs ? name : OWN;
    say("checked", "checking …");
    say("status", "");
    show();
    return check();
  }

  function changed() {
    localStorage.setItem(DRAFT, JSON.stringify({ path, text: text.value }));
    numbered([]);
    clearTimeout(changed.timer);
    changed.timer = setTimeout(() => searching || check(), 400);
  }

  function numbered(errors) {
    const wrong = new Set(errors.map((error) => error.line));
    const count = text.value.split("\n").length;
    at("lines").replaceChildren(...Array.from({ length: count }, (_, index) =>
      make("li", index + 1, { className: wrong.has(index + 1) ? "wrong" : "" })));
    at("lines").scrollTop = text.scrollTop;
  }

  function check() {
    return checked = checkText();
  }

  async function checkText() {
    seen = text.value;
    try {
      const { report, names: found } = await ask("check", { path, text: seen });
      if (text.value !== seen) return;
      const errors = report.diagnostics ?? [];
      say("checked", errors.length ? `${errors.length} error${errors.length > 1 ? "s" : ""}` : "no errors");
      at("errors").replaceChildren(...errors.map(shown), ...(report.notes ?? []).map((note) => make("p", `note: ${note}`)));
      numbered(errors.filter((error) => error.path === path));
      named(found ?? null); // None arrives as undefined
    } catch (error) {
      say("checked", String(error.message));
    }
  }

  function shown(error) {
    const item = make("li"), place = make("button", `${error.path}:${error.line}:${error.column}`, { type: "button" });
    place.disabled = error.path !== path; // in a file that is read besides
    place.addEventListener("click", () => goTo(error));
    item.append(place, ` ${error.message} (${error.code})`, make("span", error.hint ? `hint: ${error.hint}` : "", { className: "hint" }));
    return item;
  }

  function goTo({ line, column }) {
    const before = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(before + column - 1, before + column - 1);
    text.scrollTop = Math.max(0, (line - 5) * parseFloat(getComputedStyle(text).lineHeight));
  }

  function indented(event) {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
    const line = text.value.slice(0, text.selectionStart).split("\n").at(-1);
    event.preventDefault();
    // The only way that the browser's Undo knows of.
    document.execCommand("insertText", false, `\n${/^ */.exec(line)[0]}${/:\s*$/.test(line) ? "    " : ""}`);
  }

  function named(found) {
    names = found;
    for (const id of ["run", "test", "explore", "drawings"]) at(id).disabled = found === null;
    if (found === null) return;
    offered("models", [["the first", ""], ...found.models.map((name) => [name, name])]);
    offered("properties", [["all of the model", ""], ...found.properties.map((name) => [name, name])]);
    const drawn = (word) => (name) => [`${word} ${name}`, `--${word}=${name}`];
    offered("drawings", [["…", ""], ["graph of states", "--kind=states"], ["graph of actions", "--kind=actions"],
      ...found.scenarios.map(drawn("scenario")), ...found.witnesses.map(drawn("witness"))]);
  }

  function offered(id, options) {
    const before = at(id).value;
    at(id).replaceChildren(...options.map(([label, value]) => new Option(label, value)));
    if (options.some(([, value]) => value === before)) at(id).value = before;
  }

  // -- Commands, and what they show.
  function say(id, words, kind = "") {
    at(id).textContent = words;
    at(id).className = kind;
  }

  function show({ said = "", page, type, walk } = {}) {
    URL.revokeObjectURL(show.address);
    at("said").hidden = !said;
    at("said").textContent = said;
    at("page").hidden = !page;
    show.address = page ? URL.createObjectURL(new Blob([page], { type })) : "about:blank";
    at("page").src = show.address;
    at("walk").hidden = !walk;
    at("walk").src = walk ? "explorer.html" : "about:blank";
  }

  async function work(title, task) {
    if (searching) return;
    searching = true;
    at("stop").disabled = false;
    show();
    say("status", `${title} …`);
    try {
      await (text.value === seen ? checked : check());
      if (names === null) say("status", "the spec has errors: see below it", "bad");
      else await task();
    } catch (error) {
      say("status", String(error.message), "bad");
    }
    searching = false;
    at("stop").disabled = true;
    if (text.value !== seen) check(); // it was edited meanwhile
  }

  const chosen = () => (at("models").value ? [`--model=${at("models").value}`] : []);
  const limits = () => [`--max-states=${at("states").value || 100000}`, `--max-seconds=${at("seconds").value || 60}`];

  function run() {
    return work("searching", async () => {
      const only = at("properties").value ? [`--property=${at("properties").value}`] : [];
      const words = ["run", path, ...chosen(), ...only, ...limits(), ...ENGINE];
      at("command").textContent = `The same on a machine: specchk ${words.join(" ")}`;
      const file = "/tmp/report.html";
      const done = await ask("command", { words: [...words, "--json", `--html=${file}`], file });
      const report = done.out ? JSON.parse(done.out) : {};
      const counts = report.states_distinct === undefined ? ""
        : `, ${report.states_distinct} states, depth ${report.depth}, ${report.seconds.toFixed(2)} s`;
      const name = report.property ? `: ${report.property}` : "";
      const steps = report.steps === undefined || report.steps === null ? "" : ` in ${report.steps} steps`;
      say("status", `${(report.verdict ?? "ended").replace("_", " ")}${name}${steps}${counts}`, EXITS[done.code] ?? "bad");
      show({ said: done.file ? "" : spoken(report, done), page: done.file, type: "text/html" });
    });
  }

  const spoken = (report, done) => [...(report.diagnostics ?? []).map((error) => error.message), report.reason, done.errors].filter(Boolean).join("\n");

  function test() {
    return work("testing", async () => {
      const done = await ask("command", { words: ["test", path, ...limits(), ...ENGINE] });
      say("status", done.code === 0 ? "as expected" : "not all is as expected", done.code === 0 ? "good" : "bad");
      show({ said: done.out + done.errors });
    });
  }

  function draw() {
    const what = at("drawings").value, title = at("drawings").selectedOptions[0].text;
    at("drawings").value = "";
    if (!what) return undefined;
    const model = what.startsWith("--scenario") ? [] : chosen();
    return work(`drawing ${title}`, async () => {
      const file = "/tmp/drawn.svg";
      const done = await ask("command", { words: ["draw", path, ...model, what, ...limits(), ...ENGINE, `--output=${file}`], file });
      say("status", done.file ? title : "nothing was drawn", done.file ? "" : "bad");
      show({ said: done.file ? "" : done.out + done.errors, page: done.file && framed(done.file), type: "text/html" });
    });
  }

  const framed = (svg) => `<!doctype html><style>body{margin:.5rem}svg{max-width:100%;height:auto}
    @media(prefers-color-scheme:dark){body{background:#191919}svg{filter:invert(.9) hue-rotate(180deg)}}</style>${svg.slice(svg.indexOf("<svg"))}`;

  function explore() {
    return work("finding initial states", async () => {
      const error = await ask("explore", { path, model: at("models").value });
      say("status", error, error ? "bad" : "");
      show({ walk: !error });
    });
  }

  // -- Links: the spec and its name, compressed, in the part of an address that browsers do not send.
  async function squeezed(data, stream) {
    const read = new Blob([data]).stream().pipeThrough(stream).getReader(), parts = [];
    let size = 0;
    for (let next = await read.read(); !next.done; next = await read.read()) {
      parts.push(next.value);
      if ((size += next.value.length) > LONGEST) throw new Error("the spec in this link is too long");
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  async function share() {
    const data = await squeezed(JSON.stringify({ path, text: text.value, model: at("models").value }), new CompressionStream("deflate-raw"));
    const letters = btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(""));
    history.replaceState(null, "", `#spec=${letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`);
    try { await navigator.clipboard.writeText(location.href); say("ready", "The link is on the clipboard, and in the address."); }
    catch { say("ready", "The link is in the address."); }
  }

  async function linked() {
    const letters = atob(location.hash.slice("#spec=".length).replaceAll("-", "+").replaceAll("_", "/"));
    const data = await squeezed(Uint8Array.from(letters, (letter) => letter.charCodeAt(0)), new DecompressionStream("deflate-raw"));
    const spec = JSON.parse(new TextDecoder().decode(data));
    // A name of a file in Python's memory: of a spec, and below the folder of specs.
    if (!/^\w+(\/\w+)*\.spec$/.test(spec.path) || typeof spec.text !== "string") throw new Error("it has no spec");
    return spec;
  }

  const draft = () => { try { return JSON.parse(localStorage.getItem(DRAFT)); } catch { return null; } };

  async function open() {
    let spec = null, problem = "";
    if (location.hash.startsWith("#spec=")) {
      try { spec = await linked(); } catch (error) { problem = `this link cannot be read; it may have been cut (${error.message})`; }
    }
    spec ??= draft() ?? { path: FIRST, text: specs[FIRST] };
    await edit(spec.path, spec.text);
    if (spec.model) at("models").value = spec.model;
    if (problem) say("status", problem, "bad");
  }

  function list() {
    const groups = Map.groupBy(Object.keys(specs), (name) => name.slice(0, name.lastIndexOf("/")) || "this project");
    at("specs").replaceChildren(new Option("of your own", OWN), ...Array.from(groups, ([label, names]) => {
      const part = make("optgroup", "", { label });
      part.append(...names.map((name) => new Option(name.split("/").at(-1), name)));
      return part;
    }));
  }

  text.addEventListener("input", changed);
  text.addEventListener("keydown", indented);
  text.addEventListener("scroll", () => { at("lines").scrollTop = text.scrollTop; });
  at("specs").addEventListener("change", ({ target }) => {
    localStorage.removeItem(DRAFT);
    history.replaceState(null, "", location.pathname);
    edit(target.value, specs[target.value] ?? "spec mine\n");
  });
  at("choices").addEventListener("submit", (event) => { event.preventDefault(); run(); });
  at("stop").addEventListener("click", () => stop("stopped: there is no verdict"));
  at("test").addEventListener("click", test);
  at("explore").addEventListener("click", explore);
  at("drawings").addEventListener("change", draw);
  at("share").addEventListener("click", share);
  window.addEventListener("hashchange", open);

  (async () => {
    if (navigator.serviceWorker) {
      // Before anything large is loaded: what the service worker has not seen it does not keep.
      const claimed = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
      try { await navigator.serviceWorker.register("offline.js").then(() => navigator.serviceWorker.controller ?? claimed); } catch { /* a browser that forbids it: no work without a network */ }
    }
    begin();
    specs = await (await fetch("specs.json")).json();
    list();
    await open();
  })();
})();
