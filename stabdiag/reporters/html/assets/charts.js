"use strict";
// Draws the page's own points with uPlot in place of the still pictures; without it they stay.
(() => {
  const source = JSON.parse(document.getElementById("charts").textContent);
  const place = document.getElementById("drawn");
  const still = document.getElementById("static");
  if (!place || !window.uPlot) return;
  const number = (v) => (typeof v === "number" ? v : null); // "NaN" and "Infinity" are gaps
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const groups = [
    ["loss", ["loss", "val_loss"]], ["grad_norm", ["grad_norm"]],
    ["param_norm", ["param_norm"]], ["lr", ["lr"]], ["loss_scale", ["loss_scale"]],
  ];
  const sync = uPlot.sync("steps");
  const charts = [];

  // The close-up has its own finer points: within its steps they replace the reduced ones.
  const points = (name) => {
    const all = source.series[name];
    const near = source.near[name];
    if (!near || !near.step.length) return [all.step, all.value];
    const first = near.step[0], last = near.step[near.step.length - 1];
    const step = [], value = [];
    const add = (s, v, keep) => s.forEach((at, i) => { if (keep(at)) { step.push(at); value.push(v[i]); } });
    add(all.step, all.value, (at) => at < first);
    add(near.step, near.value, () => true);
    add(all.step, all.value, (at) => at > last);
    return [step, value];
  };

  const ascending = ([step, value]) => {
    // After a restart steps go back: of one step the last value counts.
    const kept = new Map();
    step.forEach((at, i) => kept.set(at, number(value[i])));
    const keys = [...kept.keys()].sort((a, b) => a - b);
    return [keys, keys.map((at) => kept.get(at))];
  };

  const marks = (names) => (u) => {
    const { ctx, bbox } = u;
    const x = (step) => Math.round(u.valToPos(step, "x", true));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    source.episodes.forEach(([first, last], i) => {
      const left = x(first), right = last === null ? bbox.left + bbox.width : x(last);
      ctx.fillStyle = color("--band");
      ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
      ctx.fillStyle = color("--bad");
      ctx.fillText(String(i + 1), left + 3, bbox.top + 11 * devicePixelRatio);
    });
    ctx.strokeStyle = color("--dim");
    ctx.setLineDash([5, 4]);
    source.restarts.forEach((step) => {
      ctx.beginPath(); ctx.moveTo(x(step), bbox.top); ctx.lineTo(x(step), bbox.top + bbox.height); ctx.stroke();
    });
    ctx.setLineDash([]);
    ctx.strokeStyle = color("--bad");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    const bottom = bbox.top + bbox.height - 5 * devicePixelRatio, r = 3 * devicePixelRatio;
    let before = -Infinity;
    names.flatMap((name) => source.series[name].bad).sort((a, b) => a - b).forEach((step) => {
      const at = x(step);
      if (at - before < 2 * r) return;
      before = at;
      ctx.beginPath();
      ctx.moveTo(at - r, bottom - r); ctx.lineTo(at + r, bottom + r);
      ctx.moveTo(at - r, bottom + r); ctx.lineTo(at + r, bottom - r);
      ctx.stroke();
    });
    ctx.restore();
  };

  const power = (v) => (v > 0 && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? v : null);
  const axis = (more, log) => ({
    stroke: () => color("--dim"), ticks: { stroke: () => color("--grid"), width: 1 },
    grid: { stroke: () => color("--grid"), width: 1, ...(log ? { filter: (u, all) => all.map(power) } : {}) },
    ...more,
  });
  const short = (v) => (v === null ? "" : Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(5)));

  const draw = (title, names, into) => {
    const tables = names.map((name) => ascending(points(name)));
    const data = uPlot.join(tables);
    const log = names.every((name) => source.series[name].log);
    const box = document.createElement("div");
    into.appendChild(box);
    const strokes = ["--line", "--second"];
    const chart = new uPlot({
      title: names.join(", ") + (log ? " (log scale)" : ""),
      width: Math.max(280, place.clientWidth), height: 220,
      cursor: { sync: { key: sync.key, scales: ["x", null] }, focus: { prox: 24 } },
      scales: { x: { time: false }, y: log ? { distr: 3 } : {} },
      axes: [axis({}), axis({ size: 70, values: (u, all) => all.map(short) }, log)],
      series: [
        { label: source.axis, value: (u, v) => (v === null ? "" : String(v)) },
        ...names.map((name, i) => ({
          label: name, stroke: () => color(strokes[i % 2]), width: 1.3, spanGaps: names.length > 1,
          points: { show: i > 0 }, ...(i > 0 ? { paths: () => null } : {}), value: (u, v) => short(v),
        })),
      ],
      hooks: { draw: [marks(names)], setScale: [(u, key) => { if (key === "x") follow(u); }] },
    }, data, box);
    charts.push(chart);
  };

  let following = false;
  const follow = (u) => {
    if (following) return;
    following = true;
    charts.forEach((chart) => {
      if (chart !== u) chart.setScale("x", { min: u.scales.x.min, max: u.scales.x.max });
    });
    following = false;
  };

  const main = document.createElement("div");
  const folded = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Parameter norm, learning rate, loss scale";
  folded.appendChild(summary);
  place.appendChild(main);
  groups.forEach(([title, names], i) => {
    const there = names.filter((name) => source.series[name]);
    if (there.length) draw(title, there, i < 2 ? main : folded);
  });
  if (folded.childElementCount > 1) place.appendChild(folded);
  if (!charts.length) return;
  still.style.display = "none";
  document.querySelector(".controls").hidden = false;

  const whole = () => {
    const steps = charts.map((chart) => chart.data[0]);
    return [Math.min(...steps.map((s) => s[0])), Math.max(...steps.map((s) => s[s.length - 1]))];
  };
  const show = (min, max) => { if (max > min) charts[0].setScale("x", { min, max }); };
  const scale = (factor) => {
    const { min, max } = charts[0].scales.x, middle = (min + max) / 2, half = (max - min) / 2 * factor;
    const [first, last] = whole();
    show(Math.max(first, middle - half), Math.min(last, middle + half));
  };
  document.querySelector("[data-all]").addEventListener("click", () => show(...whole()));
  document.querySelector("[data-in]").addEventListener("click", () => scale(0.5));
  document.querySelector("[data-out]").addEventListener("click", () => scale(2));
  document.querySelectorAll("[data-from]").forEach((button) => button.addEventListener("click", () => {
    const from = Number(button.dataset.from), to = Number(button.dataset.to || from);
    const [first, last] = whole(), around = Math.max(25, 2 * (to - from), (last - first) / 200);
    show(Math.max(first, from - around), Math.min(last, to + around));
    place.scrollIntoView({ block: "nearest" });
  }));
  const resize = () => charts.forEach((chart) => chart.setSize({ width: Math.max(280, place.clientWidth), height: 220 }));
  window.addEventListener("resize", resize);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.redraw()));
  document.documentElement.dataset.drawn = String(charts.length);
})();
