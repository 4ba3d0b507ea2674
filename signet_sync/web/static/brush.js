// Choosing days by dragging over a chart: of the calendar on the overview, of the bars above the sessions.
// The fields From and To do the same for the keyboard, for fingers, and without scripts.

const piece = (event) => {
  const found = document.elementFromPoint(event.clientX, event.clientY)?.closest('[data-from]');
  return found?.closest('[data-brush]') ? found : null;
};
const field = (name) => document.querySelector(`main form input[name=${name}]`);

let drag = null;  // the chart, the piece in which it began, the days chosen so far

const days = (one, other) => [
  [one, other].map((each) => each.dataset.from).sort()[0],
  [one, other].map((each) => each.dataset.to).sort()[1],
];

const mark = (chart, from, to) => {
  for (const one of chart.querySelectorAll('[data-from]')) {
    one.classList.toggle('outside', Boolean((from && one.dataset.to < from) || (to && one.dataset.from > to)));
  }
};

// As the fields say.
const follow = () => {
  for (const chart of document.querySelectorAll('[data-brush]')) mark(chart, field('from')?.value, field('to')?.value);
};

const end = () => {
  if (!drag) return null;
  const ended = drag;
  drag = null;
  ended.chart.removeAttribute('data-dragging');
  return ended;
};

const choose = ({ chart, range: [from, to] }) => {
  const filter = document.getElementById('filter');
  if (!filter) {
    const url = new URL(chart.dataset.brush, location.href);
    url.searchParams.set('from', from);
    url.searchParams.set('to', to);
    location.assign(url);
    return;
  }
  [field('from').value, field('to').value] = [from, to];
  field('to').dispatchEvent(new Event('input', { bubbles: true }));
  field('to').dispatchEvent(new Event('change', { bubbles: true }));
};

document.addEventListener('pointerdown', (event) => {
  const began = event.button === 0 && event.pointerType !== 'touch' && !event.ctrlKey && !event.metaKey ? piece(event) : null;
  if (!began) return;
  drag = { chart: began.closest('[data-brush]'), began, range: null };
});
document.addEventListener('pointermove', (event) => {
  const at = drag && piece(event);
  if (!at || at.closest('[data-brush]') !== drag.chart || (at === drag.began && !drag.range)) return;
  drag.range = days(drag.began, at);
  drag.chart.setAttribute('data-dragging', '');
  mark(drag.chart, ...drag.range);
});
document.addEventListener('pointerup', () => {
  const ended = end();
  if (ended?.range) choose(ended);
});
for (const kind of ['pointercancel', 'blur']) addEventListener(kind, () => { if (end()) follow(); });
document.addEventListener('keydown', (event) => { if (event.key === 'Escape' && end()) follow(); });
// A link in the chart is not dragged away.
document.addEventListener('dragstart', (event) => { if (event.target.closest?.('[data-brush]')) event.preventDefault(); });

for (const kind of ['input', 'swapped', 'popstate']) addEventListener(kind, () => setTimeout(follow));
for (const hint of document.querySelectorAll('[data-hint]')) {
  if (!matchMedia('(any-pointer: fine)').matches) hint.textContent = hint.dataset.touch;
  hint.hidden = false;
}
follow();
