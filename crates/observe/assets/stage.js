// The drawing of who helps whom: this server in the middle, the others around it, and between them
// lines that are wider the more flows. Texts from outside go into text nodes only.
"use strict";

const Stage = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const WIDTH_MIN = 2, WIDTH_MAX = 16;

  function draw(svg, status) {
    const phone = svg.clientWidth < 560;
    const helpers = status.rescue_servers.map((peer) => ({ peer, helps: true }));
    const origins = status.origins.map((peer) => ({ peer, helps: false }));
    // Those that are over stay known for days; what is live and carries much stands first.
    const rank = ({ peer }) => (peer.phase === "live" ? 1e15 : 0) + peer.used;
    const all = helpers.concat(origins).sort((one, other) => rank(other) - rank(one));
    const shown = all.slice(0, 10);
    const rows = Math.max(1, Math.ceil(shown.length / 2));
    const size = { w: phone ? 420 : 900, h: Math.max(200, 90 + rows * (phone ? 84 : 66)) };
    svg.setAttribute("viewBox", `0 0 ${size.w} ${size.h}`);
    const most = Math.max(1, ...shown.map(({ peer }) => Math.max(peer.used, peer.rate)));
    const centre = { x: size.w / 2, y: size.h / 2 };
    const lines = [], nodes = [];
    shown.forEach(({ peer, helps }, index) => {
      const place = spot(index, shown.length, size, phone);
      lines.push(flow(centre, place, peer, helps, most));
      nodes.push(node(place, peer, helps, phone));
    });
    nodes.push(self(centre, status, phone));
    if (all.length === 0) nodes.push(label(centre.x, centre.y + 86, "nobody helps, nobody is helped", "sub"));
    if (all.length > shown.length) nodes.push(label(centre.x, size.h - 6, `and ${all.length - shown.length} more`, "sub"));
    svg.replaceChildren(...lines, ...nodes);
  }

  // Two columns, the first to the right, so that no line runs through a label.
  function spot(index, count, size, phone) {
    const right = index % 2 === 0;
    const inColumn = right ? Math.ceil(count / 2) : Math.floor(count / 2);
    const step = phone ? 84 : 66;
    const first = size.h / 2 - ((inColumn - 1) * step) / 2;
    const inset = phone ? 84 : 250;
    return { right, x: right ? size.w - inset : inset, y: first + Math.floor(index / 2) * step - (phone ? 14 : 0) };
  }

  function flow(from, to, peer, helps, most) {
    const group = make("g");
    const width = WIDTH_MIN + (WIDTH_MAX - WIDTH_MIN) * Math.min(1, peer.used / most);
    const line = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
    const kind = (helps ? "flow" : "flow rescue") + (peer.used > 0 ? "" : " idle");
    group.append(make("line", { ...line, class: kind, "stroke-width": width.toFixed(1) }));
    // Visitors run from the origin to whoever serves them.
    const path = helps ? line : { x1: to.x, y1: to.y, x2: from.x, y2: from.y };
    if (peer.used > 0) group.append(make("line", { ...path, class: "run" }));
    return group;
  }

  function node(at, peer, helps, phone) {
    const group = make("g");
    const kind = (helps ? "peer" : "peer origin") + (peer.phase === "live" ? "" : " expired");
    const title = make("title");
    title.textContent = `${peer.site} as ${peer.alias}, ${peer.phase}`;
    group.append(make("circle", { cx: at.x, cy: at.y, r: 15, class: kind }), title);
    const phase = peer.phase === "live" ? "" : ` (${peer.phase})`;
    const rates = `${Words.rate(peer.used)} of ${Words.rate(peer.rate)}${phase}`;
    group.append(label(at.x, at.y + 5, helps ? "✚" : "▲", ""));
    if (phone) {
      group.append(label(at.x, at.y + 31, shorten(peer.site), ""), label(at.x, at.y + 46, rates, "sub"));
    } else {
      const [x, anchor] = at.right ? [at.x + 24, "start"] : [at.x - 24, "end"];
      group.append(label(x, at.y - 2, shorten(peer.site), "", anchor), label(x, at.y + 14, rates, "sub", anchor));
    }
    return group;
  }

  function self(at, status, phone) {
    const group = make("g");
    group.append(make("circle", { cx: at.x, cy: at.y, r: phone ? 40 : 46, class: `self ${Words.state(status)}` }));
    group.append(label(at.x, at.y - 2, Words.state(status), "on-self state"));
    group.append(label(at.x, at.y + 15, Words.rate(status.rates.out), "on-self"));
    // On a phone there is no room, and the name stands above anyway.
    if (!phone) group.append(label(at.x, at.y + 64, shorten(status.site), ""));
    return group;
  }

  function label(x, y, text, kind, anchor = "middle") {
    const element = make("text", { x, y, class: kind, "text-anchor": anchor });
    element.textContent = text;
    return element;
  }

  function shorten(text) {
    return text.length > 28 ? text.slice(0, 27) + "…" : text;
  }

  function make(name, attributes = {}) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  return { draw };
})();
