"use strict";
// Draws the page's own points with uPlot in place of the still pictures; without it they stay.
(() => {
  const holder = document.getElementById("points");
  const place = document.getElementById("drawn");
  if (!holder || !place || !window.uPlot) return;
  const source = JSON.parse(holder.textContent);
  source.series.flatMap((one) => [one, ...one.over]).forEach((one) => {
    let step = 0;
    one.step = one.gaps.map((gap) => (step += gap));
  });
  const readout = document.getElementById("readout");
  const range = document.getElementById("range");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const all = source.series.flatMap((one) => [one, ...one.over].flatMap(({ step }) => [step[0], step[step.length - 1]]));
  const first = all.reduce((a, b) => Math.min(a, b)), last = all.reduce((a, b) => Math.max(a, b));
  const view = { min: first, max: Math.max(last, first + 1) };
  const whole = { ...view };
  const shown = new Set(source.series.filter((one) => one.on).map((one) => one.name));
  let everyLog = false;
  let at = null; // the step that the readout is about
  let charts = [];

  const say = (v) => {
    if (v === null || v === undefined) return "–";
    const size = Math.abs(v);
    if (size && (size >= 1e6 || size < 1e-3)) return v.toExponential(2).replace(/\.?0*e\+?/, "e");
    return String(Number(v.toPrecision(4)));
  };
  // Index of the last of the sorted `steps` that is at or before `step`; -1 where none is.
  const before = (steps, step) => {
    let low = 0, high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] <= step) low = middle + 1; else high = middle;
    }
    return low - 1;
  };
  const valueAt = (one, step) => {
    const bad = one.bad.find(([a, b]) => a <= step && step <= b);
    const i = before(one.step, step);
    const here = i >= 0 && one.step[i] === step;
    if (here && one.value[i] !== null) return say(one.value[i]);
    if (bad) return bad[2];
    for (let k = i; k >= 0; k--) if (one.value[k] !== null) return `${say(one.value[k])} (at ${one.step[k]})`;
    return "–";
  };

  const tell = () => {
    const visible = source.series.filter((one) => shown.has(one.name));
    readout.textContent = at === null
      ? "Point at a chart to read its values."
      : [`${source.axis} ${at}`, ...visible.map((one) => `${one.label} ${valueAt(one, at)}`)].join("  ·  ");
    const full = view.min === whole.min && view.max === whole.max;
    const span = `${source.axis}s ${Math.ceil(view.min)} to ${Math.floor(view.max)}`;
    range.textContent = full ? `${span}, the whole run` : `${span} of ${whole.min} to ${whole.max}`;
  };

  // Marks below the lines: events, restarts, phases of the learning rate, what is not finite.
  const marks = (members, words) => (u) => {
    const { ctx, bbox } = u;
    const unit = devicePixelRatio, bottom = bbox.top + bbox.height;
    const x = (step) => u.valToPos(step, "x", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - 14 * unit, bbox.width, bbox.height + 14 * unit);
    ctx.clip();
    ctx.font = `${11 * unit}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    let free = -Infinity;
    source.episodes.forEach(([from, to], i) => {
      const left = Math.max(x(from), bbox.left), right = to === null ? bbox.left + bbox.width : x(to);
      if (right < bbox.left || left > bbox.left + bbox.width) return;
      ctx.fillStyle = color("--band");
      ctx.fillRect(left, bbox.top, Math.max(2 * unit, right - left), bbox.height);
      if (left < free) return;
      free = left + 16 * unit;
      ctx.fillStyle = color("--bad");
      ctx.fillText(String(i + 1), left + 3 * unit, bbox.top + 11 * unit);
    });
    ctx.strokeStyle = color("--dim");
    ctx.setLineDash([5 * unit, 4 * unit]);
    source.restarts.forEach((step) => {
      ctx.beginPath(); ctx.moveTo(x(step), bbox.top); ctx.lineTo(x(step), bottom); ctx.stroke();
    });
    ctx.setLineDash([]);
    ctx.fillStyle = color("--dim");
    if (words) source.phases.forEach(([kind, from], i) => {
      const next = i + 1 < source.phases.length ? x(source.phases[i + 1][1]) : Infinity;
      const left = Math.max(x(from), bbox.left), needed = ctx.measureText(kind).width + 6 * unit;
      if (x(from) >= bbox.left) ctx.fillRect(x(from), bbox.top - 9 * unit, unit, 9 * unit);
      if (next - left >= needed) ctx.fillText(kind, left + 4 * unit, bbox.top - 2 * unit);
    });
    ctx.restore();
    ctx.save();
    ctx.strokeStyle = color("--bad");
    ctx.lineWidth = 1.5 * unit;
    const r = 3 * unit;
    members.forEach((one) => {
      let next = -Infinity;
      one.bad.forEach(([from, to, kind]) => {
        const stop = Math.min(x(to), bbox.left + bbox.width);
        let point = Math.max(x(from), bbox.left, next);
        if (x(to) < bbox.left) return;
        for (; point <= stop; point += 8 * unit) {
          next = point + 8 * unit;
          ctx.beginPath();
          if (kind.includes("NaN")) {
            ctx.moveTo(point - r, bottom - r); ctx.lineTo(point + r, bottom + r);
            ctx.moveTo(point - r, bottom + r); ctx.lineTo(point + r, bottom - r);
          } else {
            ctx.moveTo(point - r, bottom + r); ctx.lineTo(point, bottom - r);
            ctx.lineTo(point + r, bottom + r); ctx.closePath();
          }
          ctx.stroke();
        }
      });
    });
    ctx.restore();
  };

  // A drag over one chart: the others follow.
  const follow = (u) => {
    const { min, max } = u.scales.x;
    if (!charts.includes(u)) return; // drawn anew since: what it still had to do is void
    if (min !== view.min || max !== view.max) show(min, max);
  };
  const show = (min, max) => {
    const least = Math.min(whole.max - whole.min, 4), middle = (min + max) / 2;
    if (max - min < least) { min = middle - least / 2; max = middle + least / 2; }
    view.min = Math.max(whole.min, min);
    view.max = Math.min(whole.max, max);
    charts.forEach((chart) => chart.setScale("x", { min: view.min, max: view.max }));
    tell();
  };

  const lines = { stroke: () => color("--grid"), width: 1 };
  const axis = (more) => ({
    stroke: () => color("--dim"), font: "11px system-ui, sans-serif", ticks: lines, grid: lines, ...more,
  });
  // What an axis names is chosen here: uPlot knows no step beyond 1e32, where losses that diverge
  // do go, and its logarithmic axis never ends where the range begins at no round number.
  const everyStep = [];
  for (let power = -323; power <= 308; power++) everyStep.push(Number(`1e${power}`));
  const evenly = (u, side, low, high) => {
    const rough = high / 4 - low / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((by) => by * power >= rough) || 10);
    const first = Math.ceil(low / step), last = Math.floor(high / step);
    if (!(step > 0 && last - first < 20)) return [low, high];
    return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  };
  const byPowers = (u, side, low, high) => {
    const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
    const every = Math.ceil((to - from) / 6), parts = to - from > 2 ? [1] : [1, 2, 5];
    const found = [];
    for (let power = from; power <= to; power += every) {
      found.push(...parts.map((part) => Number(`${part}e${power}`)).filter((v) => v >= low && v <= high));
    }
    return found.length > 1 ? found : evenly(u, side, low, high);
  };
  const linear = (u, low, high) => {
    if (low === null || high === null) return [0, 1];
    const room = (high / 2 - low / 2) * 0.12 || Math.abs(high) * 0.1 || 1;
    return [Math.max(low - room, -Number.MAX_VALUE), Math.min(high + room, Number.MAX_VALUE)];
  };
  const logarithmic = (u, low, high) => {
    if (low === null || high === null || low <= 0) return [0.1, 1];
    const room = 10 ** Math.max(0.06 * (Math.log10(high) - Math.log10(low)), 0.01);
    const least = Math.max(low / room, Number.MIN_VALUE), most = Math.min(high * room, Number.MAX_VALUE);
    return least < most ? [least, most] : [least, most * 10];
  };
  const strokes = ["--line", "--second"];
  const tables = (members) => members.flatMap((one) => [
    ...one.over.map((before) => [before.step, before.value]), [one.step, one.value], // what counts is drawn over what does not
  ]);
  // uPlot hears the mouse alone: one finger drags as a mouse would. Up and down scrolls the page; a
  // drag that becomes that is taken back, and two fingers are the browser's own.
  const byFinger = (over) => {
    let start = null;
    const as = (name, finger, target = over) => target.dispatchEvent(new MouseEvent(name, {
      bubbles: true, cancelable: true, button: 0, movementX: 1, clientX: finger.clientX, clientY: finger.clientY,
    }));
    const end = (finger) => {
      if (!start) return;
      as("mousemove", finger);
      as("mouseup", finger, document);
      start = null;
    };
    over.style.touchAction = "pan-y pinch-zoom";
    over.addEventListener("touchstart", (event) => {
      if (event.touches.length > 1) return end(start);
      start = event.touches[0];
      as("mousedown", start);
    }, { passive: true });
    over.addEventListener("touchmove", (event) => { if (start) as("mousemove", event.touches[0]); }, { passive: true });
    over.addEventListener("touchend", (event) => {
      const last = event.changedTouches[0];
      const across = start ? Math.abs(last.clientX - start.clientX) : 0;
      const meant = start && across > 8 && across > Math.abs(last.clientY - start.clientY);
      end(meant ? last : start);
    });
    over.addEventListener("touchcancel", () => end(start));
  };

  const panel = (members, words) => {
    const log = members.every((one) => one.log || (everyLog && one.positive));
    const series = members.flatMap((one, i) => {
      const sparse = i > 0 || one.step.length < 60;
      const drawn = {
        label: one.label, stroke: () => color(strokes[i % 2]), width: 1.5, spanGaps: false,
        points: { show: sparse, size: 5 }, dash: i > 0 ? [6, 3] : [],
      };
      const old = one.over.map(() => ({
        label: `${one.label} before a restart`, stroke: () => color("--faint"), width: 1, points: { show: false },
      }));
      return [...old, drawn];
    });
    const box = document.createElement("div");
    box.className = "panel";
    const title = document.createElement("p");
    title.className = "title";
    members.forEach((one, i) => {
      const word = document.createElement("span");
      word.className = `line-${i}`;
      word.textContent = one.label;
      title.append(word);
    });
    if (log) title.append(" log scale");
    box.append(title);
    place.append(box);
    // Where only the other series has a point the line goes on; a gap is a point that is not finite.
    const data = uPlot.join(tables(members));
    const chart = new uPlot({
      width: Math.max(260, place.clientWidth), height: 210, legend: { show: false }, padding: [16, 14, 0, 0],
      cursor: { sync: { key: "steps", scales: ["x", null] }, y: false, drag: { x: true, y: false }, points: { size: 7 } },
      scales: {
        x: { time: false, range: (u, min, max) => [min, max], min: view.min, max: view.max },
        y: log ? { distr: 3, range: logarithmic } : { range: linear },
      },
      axes: [
        axis({ values: (u, values) => values.map((v) => (Number.isInteger(v) ? String(v) : "")), size: 30 }),
        axis({
          size: 62, values: (u, values) => values.map((v) => (v === null ? "" : say(v))),
          incrs: everyStep, splits: log ? byPowers : evenly, filter: (u, values) => values,
        }),
      ],
      series: [{}, ...series],
      hooks: {
        drawAxes: [marks(members, words)],
        setScale: [(u, key) => { if (key === "x") follow(u); }],
      },
    }, data, box);
    chart.over.addEventListener("mousemove", (event) => {
      const step = chart.posToVal(event.clientX - chart.over.getBoundingClientRect().left, "x");
      const steps = chart.data[0], i = Math.max(0, before(steps, step));
      at = i + 1 < steps.length && steps[i + 1] - step < step - steps[i] ? steps[i + 1] : steps[i];
      tell();
    });
    chart.over.addEventListener("dblclick", () => show(whole.min, whole.max));
    byFinger(chart.over);
    charts.push(chart);
  };

  const draw = () => {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    place.replaceChildren();
    const panels = new Map();
    source.series.filter((one) => shown.has(one.name)).forEach((one) => {
      if (!panels.has(one.panel)) panels.set(one.panel, []);
      panels.get(one.panel).push(one);
    });
    [...panels.values()].forEach((members, i) => panel(members, i === 0 || members[0].name === "lr"));
    document.documentElement.dataset.drawn = String(charts.length);
    show(view.min, view.max);
  };

  const move = (name) => {
    const width = view.max - view.min, middle = at !== null && at >= view.min && at <= view.max ? at : (view.min + view.max) / 2;
    if (name === "whole") show(whole.min, whole.max);
    if (name === "in") show(middle - (middle - view.min) / 2, middle + (view.max - middle) / 2);
    if (name === "out") show(middle - (middle - view.min) * 2, middle + (view.max - middle) * 2);
    const room = name === "left" ? Math.min(width / 2, view.min - whole.min) : Math.min(width / 2, whole.max - view.max);
    if (name === "left") show(view.min - room, view.max - room);
    if (name === "right") show(view.min + room, view.max + room);
  };
  // Moves the reading by points of the first chart, whole points at a time.
  const read = (by) => {
    if (!charts.length) return;
    const steps = charts[0].data[0];
    const now = at === null ? before(steps, view.min) : before(steps, at);
    const next = Math.min(steps.length - 1, Math.max(0, now + by));
    const step = steps[next];
    if (step < view.min || step > view.max) {
      const half = (view.max - view.min) / 2;
      show(step - half, step + half);
    }
    point(step);
  };
  // uPlot takes a new range over a moment later; only then is the place of a step known.
  const point = (step) => {
    at = step;
    tell();
    setTimeout(() => charts.forEach((chart) => chart.setCursor({ left: chart.valToPos(step, "x"), top: 10 }, false)));
  };
  const jump = (from, to) => {
    const around = Math.max(25, 2 * (to - from), (whole.max - whole.min) / 2000);
    show(from - around, to + around);
    place.scrollIntoView({ block: "center" });
    place.focus({ preventScroll: true });
    point(from);
  };

  place.hidden = false;
  document.querySelectorAll("#charts .script").forEach((one) => { one.hidden = false; });
  document.getElementById("still").hidden = true;
  document.querySelectorAll("[data-move]").forEach((button) => button.addEventListener("click", () => move(button.dataset.move)));
  document.querySelectorAll("[data-series]").forEach((box) => box.addEventListener("change", () => {
    if (box.checked) shown.add(box.dataset.series); else shown.delete(box.dataset.series);
    draw();
  }));
  document.querySelector("[data-log]").addEventListener("change", (event) => { everyLog = event.target.checked; draw(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-from]");
    if (!link) return;
    event.preventDefault();
    jump(Number(link.dataset.from), Number(link.dataset.to));
  });
  document.addEventListener("show-steps", (event) => jump(event.detail.from, event.detail.to));
  const keys = {
    ArrowLeft: () => read(-1), ArrowRight: () => read(1), PageUp: () => read(-10), PageDown: () => read(10),
    Home: () => read(-1e9), End: () => read(1e9),
    "+": () => move("in"), "=": () => move("in"), "-": () => move("out"), 0: () => move("whole"), Escape: () => move("whole"),
  };
  place.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => charts.forEach((chart) => chart.setSize({ width: Math.max(260, place.clientWidth), height: 210 })));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
