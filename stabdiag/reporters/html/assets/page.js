"use strict";
// What is not a chart: copying commands, opening everything for print, reading the heat maps.
(() => {
  if (navigator.clipboard && window.isSecureContext) {
    document.querySelectorAll("li > code:only-child").forEach((code) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.setAttribute("aria-label", `Copy ${code.textContent}`);
      button.addEventListener("click", () => {
        navigator.clipboard.writeText(code.textContent).then(() => {
          button.textContent = "Copied";
          setTimeout(() => { button.textContent = "Copy"; }, 1500);
        }, () => { button.textContent = "Not copied"; });
      });
      code.after(" ", button);
    });
  }

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
  // A link to what is inside a folded part opens it.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target && target.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
  };
  window.addEventListener("hashchange", reveal);
  reveal();

  // What scrolls sideways can be reached with the keyboard too.
  const sideways = document.querySelectorAll(".wide, pre");
  const reach = () => sideways.forEach((one) => {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0; else one.removeAttribute("tabindex");
  });
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);
  reach();

  document.querySelectorAll("[data-heat]").forEach((map) => {
    const cells = JSON.parse(document.getElementById(map.dataset.heat).textContent);
    const picture = map.querySelector("svg");
    const out = map.closest("figure").querySelector("output");
    const names = map.parentElement.querySelectorAll("li");
    const notFinite = new Map(cells.bad.map(([y, x, kind]) => [`${y} ${x}`, kind]));
    const rows = cells.names.length, columns = cells.first.length;
    const frame = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    frame.setAttribute("class", "at");
    frame.setAttribute("width", "1");
    frame.setAttribute("height", "1");
    let row = 0, column = 0;
    const times = (log) => {
      if (typeof log === "string") return "zero"; // the logarithm of it is "-Infinity"
      const ratio = 10 ** log;
      return `${ratio >= 1e6 || ratio < 1e-3 ? ratio.toExponential(2) : Number(ratio.toPrecision(3))}x its median`;
    };
    const steps = () => (cells.first[column] === cells.last[column]
      ? `step ${cells.first[column]}` : `steps ${cells.first[column]} to ${cells.last[column]}`);
    const show = () => {
      frame.setAttribute("x", String(column));
      frame.setAttribute("y", String(row));
      if (!frame.parentNode) picture.append(frame);
      names.forEach((name, i) => name.classList.toggle("now", i === row));
      const value = cells.value[row][column], bad = notFinite.get(`${row} ${column}`);
      const said = [bad, value === null ? "" : times(value)].filter(Boolean).join(", besides ");
      out.textContent = `${cells.names[row]}  ·  ${steps()}  ·  ${said || "not logged"}`;
    };
    const into = (event) => {
      const box = picture.getBoundingClientRect();
      column = Math.min(columns - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * columns)));
      row = Math.min(rows - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows)));
    };
    const go = () => document.dispatchEvent(new CustomEvent("show-steps", {
      detail: { from: cells.first[column], to: cells.last[column] },
    }));
    out.hidden = false;
    out.textContent = "Point at a cell to read it; a click shows its steps in the charts.";
    map.tabIndex = 0;
    map.addEventListener("focus", show);
    picture.addEventListener("mousemove", (event) => { into(event); show(); });
    picture.addEventListener("click", (event) => { into(event); show(); go(); });
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e6], End: [0, 1e6] };
    map.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { go(); return; }
      const step = by[event.key];
      if (!step) return;
      event.preventDefault();
      row = Math.min(rows - 1, Math.max(0, row + step[0]));
      column = Math.min(columns - 1, Math.max(0, column + step[1]));
      show();
    });
  });
})();
