// Search as you type: asks for the same page with the form's values, and puts the list that comes back in place.
// The form may be put into the page anew at any time (see page.js), so it is looked up whenever it is needed.

const PAUSE = 180;
const form = () => document.getElementById('filter');

let timer = 0;
let going = null;
let typing = false;

const address = () => {
  const given = new URLSearchParams(new FormData(form()));
  for (const [name, value] of [...given]) if (value === '') given.delete(name);
  const url = new URL(form().action);
  url.search = given;
  return url.href;
};

const show = async (url) => {
  going?.abort();
  going = new AbortController();
  document.getElementById('found').setAttribute('aria-busy', 'true');
  try {
    const answer = await fetch(url, { signal: going.signal });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.getElementById('found');
    if (!answer.ok || !fresh) { location.assign(url); return; }
    document.getElementById('found').replaceWith(document.adoptNode(fresh));
    document.querySelector('[data-said]').textContent = fresh.querySelector('[data-tally]')?.textContent.trim() ?? '';
  } catch (error) {
    if (error.name !== 'AbortError') document.getElementById('found').removeAttribute('aria-busy');
  }
};

const search = (pause) => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const url = address();
    if (url === location.href) return;
    // What is typed in one go is one step back.
    history[typing ? 'replaceState' : 'pushState'](null, '', url);
    typing = true;
    show(url);
  }, pause);
};

const fill = () => {
  const given = new URLSearchParams(location.search);
  for (const field of form().elements) {
    if (field.name && field.type !== 'hidden') field.value = given.get(field.name) ?? given.get(field.dataset.else) ?? '';
  }
};

const ours = (event) => event.target.closest?.('#filter');

document.addEventListener('input', (event) => {
  if (ours(event)) search(event.target.type === 'search' ? PAUSE : 0);
});
document.addEventListener('change', (event) => { if (ours(event)) typing = false; });
document.addEventListener('submit', (event) => {
  if (!ours(event)) return;
  event.preventDefault();
  typing = false;
  search(0);
});
addEventListener('popstate', () => { typing = false; fill(); show(location.href); });
