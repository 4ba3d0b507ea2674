// Draws the nodes of the list as a network, and adds to both what the server says is around a node.

import cytoscape from './vendor/cytoscape-3.35.0.js';

const MOST = 300;  // nodes; beyond them nothing is added
const LETTERS = 34;  // of a label in the picture

const frame = document.querySelector('.network');
const list = document.getElementById('nodes');
const said = frame?.querySelector('.chosen');
const SHAPES = { thread: 'round-rectangle', week: 'round-rectangle', quarter: 'round-rectangle', entity: 'diamond', relationship: 'diamond' };

const look = () => {
  const colours = getComputedStyle(document.documentElement);
  const colour = (name) => colours.getPropertyValue(name).trim();
  return [
    { selector: 'node', style: {
      label: 'data(short)', shape: (node) => SHAPES[node.data('kind')] ?? 'ellipse',
      'background-color': (node) => colour(`--kind-${node.data('kind')}`) || colour('--kind-week'),
      width: (node) => (node.data('kind') === 'thread' ? 26 : 16), height: (node) => (node.data('kind') === 'thread' ? 26 : 16),
      color: colour('--ink'), 'font-size': 11, 'text-valign': 'bottom', 'text-margin-y': 4, 'text-wrap': 'wrap', 'text-max-width': 110,
      'text-background-color': colour('--raised'), 'text-background-opacity': .8, 'min-zoomed-font-size': 7,
    } },
    { selector: 'node[kind = "thread"]', style: { 'font-size': 15, 'min-zoomed-font-size': 0 } },
    { selector: 'node:selected', style: { 'border-width': 3, 'border-color': colour('--ink') } },
    { selector: 'edge', style: { width: 1, 'line-color': colour('--strong-line'), opacity: .6, 'curve-style': 'haystack' } },
  ];
};

const shorten = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS)}…` : text);
const read = (root) => [...root.querySelectorAll('[data-node]')].map((item) => ({
  item,
  id: item.dataset.node,
  kind: item.dataset.kind,
  label: item.querySelector('a').textContent.trim(),
  href: item.querySelector('a').getAttribute('href'),
  links: item.dataset.links.split(' ').filter(Boolean),
}));

let graph = null;

const arrange = () => graph.layout({
  name: 'cose', animate: false, randomize: false, nodeRepulsion: () => 20_000, idealEdgeLength: () => 90, nodeDimensionsIncludeLabels: true,
  padding: 20, numIter: 600,
}).run();

const add = (nodes, around) => {
  const place = around && graph.getElementById(around).position();
  const fresh = nodes.filter((one) => graph.getElementById(one.id).empty()).slice(0, Math.max(MOST - graph.nodes().length, 0));
  graph.add(fresh.map((one, at) => ({
    data: { id: one.id, kind: one.kind, label: one.label, short: shorten(one.label), href: one.href },
    // Around the node they belong to, so that the arrangement begins near its end.
    position: place ? { x: place.x + 60 * Math.cos(at), y: place.y + 60 * Math.sin(at) } : { x: 300 * Math.cos(at * 2.4) * Math.sqrt(at), y: 200 * Math.sin(at * 2.4) * Math.sqrt(at) },
  })));
  for (const { id, links } of nodes) {
    for (const other of links) {
      const edge = [id, other].sort().join(' ');
      if (graph.getElementById(edge).empty() && [id, other].every((one) => graph.getElementById(one).nonempty())) {
        graph.add({ data: { id: edge, source: id, target: other } });
      }
    }
  }
  const kinds = new Set(graph.nodes().map((one) => one.data('kind')));
  for (const key of frame.querySelectorAll('.legend [data-kind]')) key.hidden = !kinds.has(key.dataset.kind);
  return fresh;
};

const tell = (node, more) => {
  const link = Object.assign(document.createElement('a'), { href: node.data('href'), textContent: node.data('label') });
  said.replaceChildren(`${node.data('kind')}: `, link, more);
};

const expand = async (id) => {
  const node = graph.getElementById(id);
  if (node.empty()) return;
  graph.$(':selected').unselect();
  node.select();
  const address = list.querySelector(`[data-node="${CSS.escape(id)}"] .more`)?.href;
  if (!address || node.data('open')) { tell(node, ''); return; }
  const answer = await fetch(address);
  if (!answer.ok) { tell(node, ' (it is no longer there)'); return; }
  node.data('open', true);
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const found = read(page);
  const fresh = add(found, id);
  for (const one of fresh) list.append(document.adoptNode(one.item));
  if (fresh.length) arrange();
  const left = found.some((one) => graph.getElementById(one.id).empty());
  tell(node, left ? ` · the picture is full: start again from here` : ` · ${fresh.length} added`);
};

if (frame) {
  frame.hidden = false;
  graph = cytoscape({ container: frame.querySelector('.canvas'), style: look(), minZoom: .2, maxZoom: 3, boxSelectionEnabled: false, userZoomingEnabled: false });
  add(read(list));
  arrange();
  graph.on('tap', 'node', (event) => expand(event.target.id()));
  // The wheel scrolls the page, as everywhere.
  for (const button of frame.querySelectorAll('[data-zoom]')) {
    button.addEventListener('click', () => graph.zoom({
      level: graph.zoom() * Number(button.dataset.zoom), renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 },
    }));
  }
  frame.querySelector('[data-fit]').addEventListener('click', () => graph.fit(undefined, 20));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => graph.style(look()));
  list.addEventListener('click', (event) => {
    const more = event.target.closest('.more');
    if (!more || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    expand(more.closest('[data-node]').dataset.node);
  });
}
