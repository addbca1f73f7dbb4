// The live page: everything comes over one stream of events, is kept in three maps, and is drawn once a frame.
//
//   events ──► apply() ──► nodes, gangs, entries ──► draw() ──► the document
//
// Names come from people, so they are only ever set as text.

const nodes = new Map();   // name -> {clique, gpus, used, promised, state, gangs}
const gangs = new Map();   // "namespace/label" -> gang
const entries = [];        // of the journal, oldest first
const racks = new Map();   // clique -> {button, nodes: Map(name -> element)}
const MOST_ENTRIES = 100;
const MOVING = new Set(["Granted", "Boarding", "Aboard"]);
const natural = new Intl.Collator("en", {numeric: true}).compare;

let selected = null;       // {kind: "gang" | "clique", id}
let near = "";             // the clique that comes closest for the selected gang
let leads = false;
let planned = false;

const $ = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// ---- what comes in

function apply(told) {
  if (told.whole) {
    nodes.clear();
    gangs.clear();
    entries.length = 0;
    $("timeline").drawn = undefined;
  }
  leads = told.leads;
  for (const [name, row] of Object.entries(told.nodes)) nodes.set(name, row);
  for (const [id, row] of Object.entries(told.gangs)) gangs.set(id, row);
  told.nodesGone.forEach((name) => nodes.delete(name));
  told.gangsGone.forEach((id) => gangs.delete(id));
  entries.push(...told.entries);
  entries.splice(0, Math.max(0, entries.length - MOST_ENTRIES));
  plan();
}

function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    draw();
  });
}

function connect() {
  const source = new EventSource("ui/events");
  source.onopen = () => say("connected");
  source.onmessage = (event) => {
    apply(JSON.parse(event.data));
    say(leads ? "live: this extender leads" : "live: this extender is on stand-by, another one leads");
  };
  source.onerror = () => say("connection lost, trying again; what is shown is old", true);
}

function say(text, lost = false) {
  if ($("status").textContent !== text) $("status").textContent = text;
  $("status").classList.toggle("lost", lost);
}

// ---- what is drawn

function draw() {
  drawMap();
  drawTotals();
  const rows = [...gangs.entries()].sort(([, a], [, b]) => a.created - b.created || natural(a.name, b.name));
  const wanted = $("filter").value.trim().toLowerCase();
  drawGangs("waiting", rows.filter(([, gang]) => !MOVING.has(gang.phase)), "no gang waits");
  const moving = rows.filter(([, gang]) => MOVING.has(gang.phase));
  const shown = moving.filter(([, gang]) => gang.name.toLowerCase().includes(wanted));
  drawGangs("moving", shown, wanted ? "no gang of that name" : "none");
  $("moving-count").textContent = moving.length;
  drawTimeline();
  drawFocus();
}

function drawMap() {
  const cliques = new Map();
  for (const [name, node] of nodes) {
    if (!cliques.has(node.clique)) cliques.set(node.clique, []);
    cliques.get(node.clique).push(name);
  }
  for (const [clique, rack] of racks) {
    if (cliques.has(clique)) continue;
    rack.button.remove();
    racks.delete(clique);
  }
  const order = [...cliques.keys()].sort((a, b) => !a - !b || natural(a, b));
  for (const clique of order) drawRack(clique, cliques.get(clique).sort(natural));
  const buttons = order.map((clique) => racks.get(clique).button);
  if (buttons.some((button, i) => $("racks").children[i] !== button)) {
    keepFocus(() => $("racks").replaceChildren(...buttons));
  }
  if (buttons.length && !buttons.some((button) => button.tabIndex === 0)) buttons[0].tabIndex = 0;
  $("total-cliques").textContent = order.filter(Boolean).length;
}

function drawRack(clique, names) {
  let rack = racks.get(clique);
  if (!rack) {
    const button = make("button", {type: "button", className: "rack", tabIndex: -1});
    button.append(make("span", {className: "name", textContent: clique || "no clique", title: clique}));
    button.dataset.clique = clique;
    button.addEventListener("click", () => select("clique", clique));
    rack = {button, nodes: new Map()};
    racks.set(clique, rack);
  }
  for (const [name, element] of rack.nodes) {
    if (nodes.get(name)?.clique === clique) continue;
    element.remove();
    rack.nodes.delete(name);
  }
  const sum = {gpus: 0, used: 0, promised: 0};
  names.forEach((name, i) => {
    const node = nodes.get(name);
    let element = rack.nodes.get(name);
    if (!element) {
      element = make("i", {className: "node", title: name});
      element.dataset.node = name;
      rack.nodes.set(name, element);
    }
    if (rack.button.children[i + 1] !== element) rack.button.insertBefore(element, rack.button.children[i + 1] ?? null);
    drawNode(element, node);
    for (const key of Object.keys(sum)) sum[key] += node[key];
  });
  const free = Math.max(0, sum.gpus - sum.used - sum.promised);
  const text = `${clique || "no clique"}: ${names.length} nodes, ${sum.gpus} GPUs, ` +
    `${sum.used} used, ${sum.promised} promised, ${free} free`;
  if (rack.button.getAttribute("aria-label") !== text) rack.button.setAttribute("aria-label", text);
}

function drawNode(element, node) {
  if (element.drawn === node) return;
  element.drawn = node;
  element.dataset.used = node.used;
  element.dataset.promised = node.promised;
  element.dataset.state = node.state;
  element.style.setProperty("--gpus", node.gpus);
  element.style.setProperty("--used-gpus", Math.min(node.used, node.gpus));
  element.style.setProperty("--promised-gpus", Math.min(node.promised, Math.max(0, node.gpus - node.used)));
}

function drawTotals() {
  let used = 0, promised = 0, free = 0;
  for (const node of nodes.values()) {
    used += node.used;
    promised += node.promised;
    free += Math.max(0, node.gpus - node.used - node.promised);
  }
  $("total-used").textContent = used;
  $("total-promised").textContent = promised;
  $("total-free").textContent = free;
}

function drawGangs(list, rows, none) {
  const known = new Map([...$(list).children].map((item) => [item.dataset.gang, item]));
  const items = rows.map(([id, gang]) => drawGang(known.get(id), id, gang));
  if (!items.length) items.push(known.get("") ?? make("li", {className: "empty"}));
  if (!rows.length) {
    items[0].dataset.gang = "";
    items[0].textContent = none;
  }
  const same = items.length === $(list).children.length && items.every((item, i) => $(list).children[i] === item);
  if (!same) keepFocus(() => $(list).replaceChildren(...items));
  const count = $(`${list}-count`);
  count.textContent = rows.length;
}

function keepFocus(change) {
  const focused = document.activeElement;
  change();
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({preventScroll: true});
}

function drawGang(item, id, gang) {
  if (!item) {
    const button = make("button", {type: "button", className: "gang"});
    button.append(make("strong"), " ", make("span", {className: "facts"}), make("span", {className: "message"}));
    button.addEventListener("click", () => select("gang", id));
    item = make("li", {}, button);
    item.dataset.gang = id;
  }
  if (item.drawn === gang) return item;
  item.drawn = gang;
  item.dataset.phase = gang.phase;
  const button = item.firstElementChild;
  button.querySelector("strong").textContent = gang.name;
  button.querySelector(".facts").textContent =
    `${gang.phase}${gang.domain ? ` in ${gang.domain}` : ""}, ${gang.here} of ${gang.floor} here, ${gang.bound} bound`;
  button.querySelector(".message").textContent = gang.message;
  return item;
}

const OUTCOMES = {
  granted: "→ has its places",
  boarded: "✓ is aboard",
  cancelled: "✗ was cancelled",
  expired: "✗ ran out of time",
};

function drawTimeline() {
  if ($("timeline").drawn === entries.at(-1)?.number && entries.length) return;
  $("timeline").drawn = entries.at(-1)?.number;
  $("timeline").replaceChildren(...entries.map(drawEntry).reverse());
}

function drawEntry(entry) {
  const at = new Date(entry.at * 1000);
  const name = gangs.get(entry.key)?.name ?? entry.key;
  const time = make("time", {dateTime: at.toISOString(), textContent: at.toLocaleTimeString()});
  const members = `${entry.members} ${entry.members === 1 ? "member" : "members"}`;
  const where = entry.domain ? ` in ${entry.domain}` : "";
  const took = entry.outcome === "granted" ? "" : ` after ${entry.seconds.toFixed(1)} s`;
  const item = make("li", {}, time, ` ${name} ${OUTCOMES[entry.outcome]}${where}: ${members}${took}`);
  Object.assign(item.dataset, {number: entry.number, outcome: entry.outcome, gang: entry.key});
  return item;
}

// ---- what is chosen

function select(kind, id) {
  const again = selected?.kind === kind && selected.id === id;
  selected = again ? null : {kind, id};
  near = "";
  $("details-table").tBodies[0].replaceChildren();
  $("details-table").tHead.replaceChildren();
  if (selected?.kind === "gang") ask(id);
  draw();
}

// Why each domain can't take the gang is worked out when somebody asks.
async function ask(id) {
  const answer = await fetch(`debug/gang/${id.split("/").map(encodeURIComponent).join("/")}`);
  if (!answer.ok || selected?.id !== id) return;
  const told = await answer.json();
  near = told.domains[0]?.domain ?? "";
  fill(["domain", "has", "needs", "nodes without room"], told.domains.map((row) => [
    row.domain || "whole cluster", row.have, row.need, row.blockers.map((b) => `${b.nodes} ${b.why}`).join(", "),
  ]));
  drawFocus();
}

function drawFocus() {
  const gang = selected?.kind === "gang" ? gangs.get(selected.id) : null;
  const rack = selected?.kind === "clique" ? racks.get(selected.id) : null;
  if (selected && !gang && !rack) selected = null;
  const seated = Boolean(gang) && [...nodes.values()].some((node) => node.gangs.includes(selected.id));
  document.body.classList.toggle("focused", seated);
  for (const {button, nodes: elements} of racks.values()) {
    button.setAttribute("aria-pressed", Boolean(rack) && button === rack.button);
    button.classList.toggle("near", Boolean(gang) && near !== "" && button.dataset.clique === near);
    for (const [name, element] of elements) {
      element.classList.toggle("lit", Boolean(gang) && nodes.get(name).gangs.includes(selected.id));
    }
  }
  for (const item of document.querySelectorAll(".gangs > li:not(.empty)")) {
    item.firstElementChild.setAttribute("aria-pressed", Boolean(gang) && item.dataset.gang === selected.id);
  }
  $("details").hidden = !selected;
  if (gang) describeGang(gang);
  if (rack) describeClique(selected.id, rack);
}

function describeGang(gang) {
  put("details-title", gang.name);
  put("details-text", gang.message || `${gang.phase}${gang.domain ? ` in ${gang.domain}` : ""}; ` +
    `${gang.bound} of ${gang.here} members are bound. Its nodes are lit on the map.`);
}

function describeClique(clique, rack) {
  put("details-title", clique || "Nodes of no clique");
  put("details-text", rack.button.getAttribute("aria-label"));
  const names = [...rack.nodes.keys()].sort(natural);
  fill(["node", "used", "promised", "of", "gangs"], names.map((name) => {
    const node = nodes.get(name);
    const who = node.gangs.map((id) => gangs.get(id)?.name ?? id).join(", ");
    return [name, node.used, node.promised, node.gpus, [node.state, who].filter(Boolean).join("; ")];
  }));
}

function put(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function fill(columns, rows) {
  const line = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {textContent: cell})));
  $("details-table").tHead.replaceChildren(...(rows.length ? [line("th", columns)] : []));
  $("details-table").tBodies[0].replaceChildren(...rows.map((cells) => line("td", cells)));
}

// ---- keys

const STEPS = {ArrowRight: () => 1, ArrowLeft: () => -1, ArrowDown: inRow, ArrowUp: () => -inRow()};

function inRow() {
  const [first, ...rest] = $("racks").children;
  const next = rest.findIndex((button) => button.offsetTop !== first.offsetTop);
  return next < 0 ? rest.length + 1 : next + 1;
}

$("racks").addEventListener("keydown", (event) => {
  const buttons = [...$("racks").children];
  const here = buttons.indexOf(document.activeElement);
  const ends = {Home: 0, End: buttons.length - 1};
  const to = event.key in ends ? ends[event.key] : event.key in STEPS ? here + STEPS[event.key]() : -1;
  if (here < 0 || !buttons[to]) return;
  event.preventDefault();
  buttons[here].tabIndex = -1;
  buttons[to].tabIndex = 0;
  buttons[to].focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && selected) select(selected.kind, selected.id);
});
$("close").addEventListener("click", () => selected && select(selected.kind, selected.id));
$("filter").addEventListener("input", plan);

connect();
