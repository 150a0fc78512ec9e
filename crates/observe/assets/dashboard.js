// The live dashboard: reads the history once and the status each second, and draws. Whatever the
// server was told by strangers (names, URLs) goes into text nodes only, never into markup.
"use strict";

const Words = {
  bytes(count) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (count >= 999.95 && unit < units.length - 1) { count /= 1000; unit += 1; }
    return `${unit === 0 ? Math.round(count) : count.toFixed(1)} ${units[unit]}`;
  },
  rate(count) { return `${Words.bytes(count)}/s`; },
  percent(share) { return `${Math.round(share * 100)} %`; },
  perSecond(number) { return `${number >= 100 ? number.toFixed(0) : number.toFixed(1)}/s`; },
  latency(seconds) {
    if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
    return seconds < 1 ? `${Math.round(seconds * 1e3)} ms` : `${seconds.toFixed(1)} s`;
  },
  count(number) { return number.toLocaleString("en"); },
  clock(unix) { return new Date(unix * 1000).toISOString().slice(11, 19); },
  state(status) {
    if (!status.ready) return "starting";
    return ["sos", "rescue"].includes(status.state) ? status.state : "normal";
  },
};

const KEPT = 180;           // snapshots, as many as the server keeps
const PERIOD = 1000;        // milliseconds between two reads
const PATIENCE = 5000;      // milliseconds until an answer is given up
let snapshots = [];
let charts = [];

function snapshotOf(status) {
  const { rates, link } = status;
  return {
    uptime: status.uptime, usable: link.usable, out: rates.out, own: rates.own, rescue: rates.rescue,
    redirect: rates.redirect, requests: rates.requests, redirects: rates.redirects,
    refusals: rates.refusals, redirect_threshold: status.redirect_threshold,
  };
}

function note(status) {
  const last = snapshots[snapshots.length - 1];
  if (last && status.uptime < last.uptime) snapshots = [];        // the server was started anew
  if (!last || status.uptime - last.uptime > 0.9) snapshots.push(snapshotOf(status));
  snapshots = snapshots.slice(-KEPT);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Seconds that the charts show: what is known, in steps of half a minute, and a minute at least.
function span() {
  const known = snapshots.length ? snapshots[snapshots.length - 1].uptime - snapshots[0].uptime : 0;
  return Math.min(KEPT, Math.max(60, Math.ceil(known / 30) * 30));
}

// Lines differ in colour and in dash, so that no meaning hangs on colour alone.
function chart(id, lines, show, marks) {
  const element = document.getElementById(id);
  const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
  const series = lines.map((line) => ({
    label: line.label, stroke: colour(line.colour), width: line.width ?? 2, dash: line.dash, fill: line.fill && colour(line.colour) + "22",
    points: { show: false }, value: (_, value) => (value == null ? "–" : show(value)),
  }));
  const options = {
    width: element.clientWidth, height: 250, cursor: { drag: { x: false, y: false } },
    scales: { x: { time: false, range: () => [-span(), 0] }, y: { range: (_, low, high) => [0, 1.08 * Math.max(1, high, ...marks().map((m) => m.at))] } },
    hooks: { draw: [(plot) => drawMarks(plot, marks())] },
    axes: [
      { ...axis, incrs: [10, 30, 60], values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
      { ...axis, size: 82, values: (_, ticks) => ticks.map(show) },
    ],
    series: [{ label: "time", value: (_, value) => (value == null ? "–" : `${Math.round(value)} s`) }, ...series],
  };
  return { plot: new uPlot(options, [[]].concat(lines.map(() => [])), element), lines, element };
}

// The thresholds as dotted lines with their names, over the whole width.
function drawMarks(plot, marks) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("faint");
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 4 * ratio]);
  ctx.font = `${11 * ratio}px sans-serif`;
  ctx.textAlign = "left";
  for (const { name, at } of marks) {
    const y = plot.valToPos(at, "y", true);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.fillText(name, bbox.left + 4 * ratio, y - 5 * ratio);
  }
  ctx.restore();
}

function thresholds() {
  if (!latest) return [];
  const names = ["T_low", "T_alert", "T_high", "T_coff"];
  return names.map((name, index) => ({ name, at: latest.thresholds[index] * latest.link.usable }));
}

function makeCharts() {
  for (const { plot } of charts) plot.destroy();
  charts = [
    chart("rates", [
      { label: "out", pick: (s) => s.out, colour: "ink", fill: true },
      { label: "own", pick: (s) => s.own, colour: "own", dash: [10, 3] },
      { label: "redirects", pick: (s) => s.redirect, colour: "redirect", dash: [6, 3] },
      { label: "for others", pick: (s) => s.rescue, colour: "rescue", dash: [3, 3] },
      { label: "T_redi", pick: (s) => (s.redirect_threshold == null ? null : s.redirect_threshold * s.usable), colour: "refusal", width: 1.5 },
    ], Words.rate, thresholds),
    chart("requests", [
      { label: "requests", pick: (s) => s.requests, colour: "own", fill: true },
      { label: "redirects", pick: (s) => s.redirects, colour: "redirect", dash: [8, 3] },
      { label: "refusals", pick: (s) => s.refusals, colour: "refusal", dash: [3, 3] },
    ], Words.perSecond, () => []),
  ];
}

function drawCharts() {
  const now = snapshots.length ? snapshots[snapshots.length - 1].uptime : 0;
  const times = snapshots.map((snapshot) => snapshot.uptime - now);
  for (const { plot, lines } of charts) {
    plot.setData([times].concat(lines.map((line) => snapshots.map(line.pick))));
    // The newest values, unless somebody points at older ones; after the chart has set its own.
    queueMicrotask(() => { if (plot.cursor.idx == null) plot.setLegend({ idx: times.length - 1 }); });
  }
}

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function drawLists(status) {
  document.getElementById("hot").replaceChildren(...status.hot.slice(0, 12).map((hot) => {
    const row = element("tr");
    const copies = hot.heat ? `${hot.heat}, held by ${hot.holders.length}` : "";
    row.append(element("td", Words.perSecond(hot.rate), "n"), element("td", hot.url, "url"),
      element("td", copies, "faint"));
    return row;
  }));
  document.getElementById("decisions").replaceChildren(...status.decisions.slice(0, 14).map((decision) => {
    const line = element("li");
    line.append(element("time", Words.clock(decision.at)), ` ${decision.text}`);
    return line;
  }));
}

function drawFigures(status) {
  const { rates, lifetime, link } = status;
  const figures = [
    ["Link in use", link.usable ? Words.percent(rates.out / link.usable) : "–"],
    ["Redirected files", Words.rate(rates.redirected_files)],
    ["Waiting requests", Words.count(status.waiting)],
    ["Median latency", Words.latency(status.latency.p50)],
    ["99th percentile", Words.latency(status.latency.p99)],
    ["Connections", Words.count(status.connections[0])],
    ["Cache", Words.bytes(status.cache_bytes[0])],
    ["Requests, all", Words.count(lifetime.requests)],
    ["Redirects, all", Words.count(lifetime.redirects)],
    ["Refused, all", Words.count(lifetime.refused)],
    ["Redirects at risk", Words.count(lifetime.redirects_at_risk)],
    ["Registry", registryWord(status.registry)],
    ["Asked next", status.candidates[0]?.[0] ?? "nobody"],
    ["Aliases kept", Words.count(status.kept_aliases.length)],
  ];
  document.getElementById("figures").replaceChildren(...figures.map(([name, value]) => {
    const row = element("div");
    row.append(element("dt", name), element("dd", String(value)));
    return row;
  }));
}

function registryWord(registry) {
  if (!registry.address) return "none";
  if (!registry.connected) return "does not answer";
  return registry.refusal ? "does not list this site" : "answers";
}

// Any member of a drill can end it, here as well as by `levee drill stop`.
function drawDrill(drill) {
  const line = document.getElementById("drill");
  line.hidden = !drill;
  if (!drill) return;
  const whose = drill.own ? "This site rehearses a rescue" : `This site takes part in the drill of ${drill.site}`;
  line.querySelector("span").textContent = `${whose} until ${Words.clock(drill.ends)}.`;
}

document.querySelector("#drill button").addEventListener("click", () => {
  fetch("/-/drill/stop", { method: "POST", signal: AbortSignal.timeout(PATIENCE) })
    .catch((error) => console.warn(error.message));
});

function draw(status) {
  const state = Words.state(status);
  document.title = `${state} – ${status.site}`;
  document.body.className = state;
  document.getElementById("site").textContent = status.site;
  document.getElementById("state").textContent = state;
  document.getElementById("sentence").textContent = status.sentence;
  Stage.draw(document.getElementById("stage"), status);
  drawDrill(status.drill);
  drawLists(status);
  drawFigures(status);
  drawCharts();
}

async function read(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let latest = null;

async function beat() {
  try {
    const status = await read("/status.json");
    const last = snapshots[snapshots.length - 1];
    // Opened just now, or asleep for a while: the server remembers what we did not see.
    if (!last || status.uptime - last.uptime > 3 || status.uptime < last.uptime) {
      snapshots = (await read("/history.json")).snapshots.filter((s) => s.uptime < status.uptime);
    }
    note(status);
    const first = !latest;
    latest = status;
    if (first) makeCharts();
    draw(status);
    document.body.classList.remove("lost");
  } catch (error) {
    document.body.classList.add("lost");
    console.warn(error.message);
  }
  setTimeout(beat, PERIOD);
}

function redraw() {
  if (!latest) return;
  makeCharts();
  draw(latest);
}

addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
beat();
