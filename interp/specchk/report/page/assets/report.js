"use strict";
(() => {
  const steps = [...document.querySelectorAll(".step")];
  if (!steps.length) return;
  document.documentElement.classList.add("js");
  const slider = document.getElementById("slider");
  const shown = document.getElementById("shown");
  let now = 0;

  function highlight(number) {
    for (const node of document.querySelectorAll(".lanes g.node")) {
      const name = node.querySelector("title")?.textContent ?? "";
      node.classList.toggle("here", new RegExp(`^(s${number}l.*|step${number})$`).test(name));
    }
  }

  function show(number, remember) {
    now = Math.max(0, Math.min(steps.length - 1, number));
    steps.forEach((step, index) => step.classList.toggle("now", index === now));
    slider.value = String(now);
    slider.setAttribute("aria-valuetext", steps[now].querySelector("h3").textContent);
    shown.textContent = `${now} / ${steps.length - 1}`;
    highlight(now);
    if (remember) history.replaceState(null, "", `#step-${now}`);
  }

  function fromLink() {
    const found = /^#step-(\d+)$/.exec(location.hash);
    show(found ? Number(found[1]) : steps.length - 1, false);
  }

  const moves = { ArrowLeft: () => now - 1, ArrowRight: () => now + 1, Home: () => 0, End: () => steps.length - 1 };
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key](), true);
  });
  slider.addEventListener("input", () => show(Number(slider.value), true));
  document.getElementById("back").addEventListener("click", () => show(now - 1, true));
  document.getElementById("forth").addEventListener("click", () => show(now + 1, true));
  window.addEventListener("hashchange", fromLink);
  fromLink();
})();
