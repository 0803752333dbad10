"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text ?? "" });
  let here = { path: [0], enabled: [] };
  let goal = { path: [], name: "" }; // where the last jump led
  let properties = [];
  let shelf = "specchk"; // where this spec's bookmarks are kept

  async function ask(what, body) {
    const answer = await fetch(`api/${what}`, { method: "POST", headers: { "Content-Type": "application/json" },
                                                body: JSON.stringify(body ?? {}) });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }

  function say(text) { at("status").textContent = text; }

  function linked() {
    const found = /^#path=([\d.]+)$/.exec(location.hash);
    return found ? found[1].split(".").map(Number) : [0];
  }

  async function go(path) {
    try {
      here = await ask("position", { path });
    } catch (error) {
      say(String(error.message));
      return;
    }
    const link = `#path=${here.path.join(".")}`;
    if (location.hash !== link) history.pushState(null, "", link);
    render();
    const asked = here;
    const drawn = await ask("picture", { path: asked.path });
    if (here !== asked) return; // the reader has walked on
    at("lanes").innerHTML = drawn.svg ?? "";
    at("words").textContent = drawn.text;
    at("lanes").scrollTop = at("lanes").scrollHeight;
    if (!drawn.svg) at("lanes").textContent = "Install Graphviz (the dot program) to see the picture.";
  }

  function render() {
    const isOnWay = goal.path.length > here.path.length && here.path.every((step, index) => step === goal.path[index]);
    const ahead = isOnWay ? goal.path[here.path.length] : -1;
    at("steps").replaceChildren(...here.enabled.map((step, index) => {
      const item = make("li"), button = make("button", step.label);
      button.append(make("small", step.changes.join("; ") || "nothing changes"));
      if (index === ahead) button.append(make("strong", `next towards ${goal.name}`));
      button.addEventListener("click", () => go([...here.path, index]));
      item.append(button);
      return item;
    }));
    at("state").replaceChildren(...here.state.map(({ name, value, changed }) => {
      const row = make("tr");
      row.className = changed ? "changed" : "";
      row.append(make("td", name), make("td", value));
      return row;
    }));
    at("trace").replaceChildren(...here.trace.map((label, index) => {
      const item = make("li"), button = make("button", label);
      if (index === here.trace.length - 1) button.setAttribute("aria-current", "step");
      button.addEventListener("click", () => go(here.path.slice(0, index + 1)));
      item.append(button);
      return item;
    }));
    const fails = new Set(here.failed.map((found) => found.property));
    at("truths").replaceChildren(...properties.map((name) => {
      const item = make("li", `${fails.has(name) ? "✗" : here.undefined ? "?" : "✓"} ${name}`);
      item.className = fails.has(name) ? "false" : "";
      return item;
    }));
    const problems = here.failed.map((found) => `${found.kind} ${found.property} fails ${found.because}`);
    if (here.undefined) problems.push(`undefined: ${here.undefined}`);
    at("undo").disabled = here.path.length === 1;
    at("initial").value = String(here.path[0]);
    if (!here.enabled.length) at("steps").replaceChildren(make("p", "No step is enabled here."));
    at("failed").replaceChildren(...problems.map((text) => Object.assign(make("div", text), { className: "failed" })));
    say(`${here.path.length - 1} steps taken, ${here.enabled.length} enabled`);
  }

  const undo = () => { if (here.path.length > 1) go(here.path.slice(0, -1)); };
  const restart = () => go([here.path[0]]);

  const bookmarks = () => JSON.parse(localStorage.getItem(shelf) ?? "[]");

  function bookmark() {
    const link = here.path.join("."), known = bookmarks();
    const name = `${here.path.length - 1} steps, ${here.trace.at(-1)}`;
    if (!known.some((found) => found.link === link)) known.push({ link, name });
    localStorage.setItem(shelf, JSON.stringify(known));
    listBookmarks();
    say(`bookmarked: ${name}`);
  }

  function listBookmarks() {
    at("bookmarks").replaceChildren(new Option("…", ""), ...bookmarks().map(({ link, name }) => new Option(name, link)));
  }

  async function scenario() {
    const found = await ask("scenario", { path: here.path });
    at("text").hidden = false;
    at("text").value = found.text;
    at("text").select();
    try { await navigator.clipboard.writeText(found.text); say("the scenario is on the clipboard and below"); }
    catch { say("the scenario is below"); }
  }

  async function itf() {
    const found = await ask("itf", { path: here.path });
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(found, null, 2)], { type: "application/json" }));
    link.download = "explored.itf.json";
    link.click();
    say("saved explored.itf.json");
  }

  async function jump(event) {
    const name = event.target.value;
    if (!name) return;
    say(`searching for ${name} …`);
    try { const found = await ask("jump", { name }); if (found.path) { goal = { path: found.path, name }; await go(found.path); } say(found.said); }
    catch (error) { say(String(error.message)); }
    event.target.value = "";
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || /^(SELECT|TEXTAREA|INPUT)$/.test(event.target.tagName)) return;
    if (event.key === "u") undo();
    else if (event.key === "r") restart();
    else if (event.key === "b") bookmark();
    else if (/^[1-9]$/.test(event.key) && here.enabled[event.key - 1]) go([...here.path, event.key - 1]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") moveFocus(event);
  });

  function moveFocus(event) {
    const buttons = [...at("steps").querySelectorAll("button")];
    if (!buttons.length) return;
    event.preventDefault();
    const now = buttons.indexOf(document.activeElement);
    const next = event.key === "ArrowDown" ? now + 1 : now - 1;
    buttons[(next + buttons.length) % buttons.length].focus();
  }

  at("undo").addEventListener("click", undo);
  at("restart").addEventListener("click", restart);
  at("bookmark").addEventListener("click", bookmark);
  at("scenario").addEventListener("click", scenario);
  at("itf").addEventListener("click", itf);
  at("jump").addEventListener("change", jump);
  at("initial").addEventListener("change", (event) => go([Number(event.target.value)]));
  at("bookmarks").addEventListener("change", (event) => {
    if (event.target.value) go(event.target.value.split(".").map(Number));
    event.target.value = "";
  });
  window.addEventListener("popstate", () => go(linked()));

  ask("about").then((found) => {
    at("title").textContent = `${found.spec}, model ${found.model}`;
    properties = found.properties;
    shelf = `specchk ${found.spec} ${found.model}`;
    document.title = `${found.spec} – specchk explore`;
    found.starts.forEach((text, index) => at("initial").append(new Option(text, index)));
    at("starts").hidden = found.initial < 2;
    for (const name of found.witnesses) at("jump").append(new Option(`witness ${name}`, name));
    for (const name of found.properties) at("jump").append(new Option(`violation of ${name}`, name));
    listBookmarks();
    return go(linked());
  }).catch((error) => say(String(error.message)));
})();
