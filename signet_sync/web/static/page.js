// What the page can do beyond links and forms: it follows the workspace, answers keys, copies commands.
// Everything works without it.

// ── saying something to whoever cannot see it ──

const say = (text) => {
  const place = document.querySelector('[data-said]');
  place.textContent = '';
  setTimeout(() => { place.textContent = text; }, 50);
};

// ── how long ago ──

const LARGER = [[60, 'minute'], [60, 'hour'], [24, 'day'], [30, 'month'], [12, 'year']];

const ago = (instant) => {
  const apart = (Date.now() - instant) / 1000;
  let [left, unit] = [Math.floor(Math.abs(apart)), 'second'];
  if (left < 10) return 'just now';
  for (const [size, larger] of LARGER) {
    if (left < size) break;
    [left, unit] = [Math.floor(left / size), larger];
  }
  const told = `${left} ${unit}${left === 1 ? '' : 's'}`;
  return apart > 0 ? `${told} ago` : `in ${told}`;
};

const tellTimes = () => {
  for (const time of document.querySelectorAll('time[data-ago]')) {
    const told = ago(Date.parse(time.dateTime));
    if (time.textContent !== told) time.textContent = told;
  }
};

setInterval(() => { if (!document.hidden) tellTimes(); }, 20_000);

// ── commands to copy ──

const addCopyButtons = () => {
  if (!navigator.clipboard) return;
  for (const command of document.querySelectorAll('.command:not(:has(button))')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', `Copy: ${command.textContent.trim()}`);
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(command.querySelector('code').textContent);
      button.textContent = 'Copied';
      say('Copied');
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
    command.append(button);
  }
};

// ── taking in a page that has changed, without losing one's place ──

const path = (element, root) => {
  const steps = [];
  for (let at = element; at && at !== root; at = at.parentElement) {
    steps.unshift([...at.parentElement.children].indexOf(at));
  }
  return steps;
};
const follow = (steps, root) => steps.reduce((at, step) => at?.children[step], root);

// The same thing in the new page: by its id or address where it has one, else by its place.
const again = (element, was, now) => {
  if (element.id) return document.getElementById(element.id);
  const address = element.getAttribute('href');
  if (address) return [...now.querySelectorAll('a[href]')].find((link) => link.getAttribute('href') === address);
  return follow(path(element, was), now);
};

const named = (details) => details.id || details.querySelector('summary')?.textContent.trim();

const swap = (old, fresh) => {
  if (old.innerHTML === fresh.innerHTML) return;
  const focused = old.contains(document.activeElement) && document.activeElement !== old ? document.activeElement : null;
  const open = new Map([...old.querySelectorAll('details')].map((one) => [named(one), one.open]));
  const scrolled = [...old.querySelectorAll('*')].filter((one) => one.scrollLeft || one.scrollTop)
    .map((one) => [path(one, old), one.scrollLeft, one.scrollTop]);
  const was = old.cloneNode(true);
  const focusedCopy = focused && follow(path(focused, old), was);
  old.replaceChildren(...document.adoptNode(fresh).childNodes);
  for (const details of old.querySelectorAll('details')) {
    if (open.has(named(details))) details.open = open.get(named(details));
  }
  for (const [steps, left, top] of scrolled) {
    const one = follow(steps, old);
    if (one) [one.scrollLeft, one.scrollTop] = [left, top];
  }
  if (focusedCopy) again(focusedCopy, was, old)?.focus({ preventScroll: true });
};

const busy = () => {
  const at = document.activeElement;
  return Boolean(at?.closest('main :is(input, textarea, select, [contenteditable])')
    || document.querySelector('dialog[open], [data-still], [data-dragging]')
    || !getSelection().isCollapsed);
};

let wanted = false;
let asking = false;
let notBefore = 0;  // a workspace in which much happens must not tire the machine

// Scripts of a view that put something into the page do it again when they hear `swapped`.
const takeIn = async () => {
  const began = Date.now();
  if (!wanted || asking || began < notBefore || document.hidden || busy()) return;
  [wanted, asking] = [false, true];
  try {
    const answer = await fetch(location.href, { cache: 'no-store' });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (busy()) {
      wanted = true;
      return;
    }
    for (const part of ['[data-live]', 'main']) swap(document.querySelector(part), fresh.querySelector(part));
    addCopyButtons();
    document.dispatchEvent(new CustomEvent('swapped'));
  } catch {
    // The server is away: the stream says so, and asks anew when it is back.
  } finally {
    asking = false;
    notBefore = Date.now() + Math.min(Math.max(2000, 20 * (Date.now() - began)), 10_000);
  }
};

setInterval(takeIn, 1000);

// A browser has few connections to one server: a tab that nobody sees keeps none.
let stream = null;
let heard = false;
let silent = 0;

const listen = () => {
  if (document.hidden || stream) return;
  stream = new EventSource(document.body.dataset.events);
  stream.addEventListener('hello', () => {
    clearTimeout(silent);
    document.querySelector('[data-gone]').hidden = true;
    wanted = heard;  // what happened while nobody listened nobody has told
    heard = true;
  });
  stream.addEventListener('changed', () => { wanted = true; takeIn(); });
  stream.addEventListener('error', () => {
    clearTimeout(silent);
    silent = setTimeout(() => { document.querySelector('[data-gone]').hidden = false; }, 4000);
    if (stream.readyState === EventSource.CLOSED) {
      stream = null;
      setTimeout(listen, 10_000);
    }
  });
};

const rest = () => {
  clearTimeout(silent);
  stream?.close();
  stream = null;
};

document.addEventListener('visibilitychange', () => (document.hidden ? rest() : listen()));
addEventListener('pagehide', rest);
addEventListener('pageshow', listen);

// ── keys ──

const dialog = document.getElementById('keys');
const use = document.getElementById('use-keys');
const stored = {
  get: () => { try { return localStorage.getItem('keys'); } catch { return null; } },
  set: (value) => { try { localStorage.setItem('keys', value); } catch { /* it holds until the page is left */ } },
};
use.checked = stored.get() !== 'off';
use.addEventListener('change', () => stored.set(use.checked ? 'on' : 'off'));

const showKeys = () => {
  if (!dialog.open) dialog.showModal();
  dialog.querySelector('button').focus();
};
for (const button of document.querySelectorAll('.keys-button')) {
  button.hidden = false;
  button.addEventListener('click', showKeys);
}

const find = () => {
  const field = document.getElementById('find');
  field?.focus();
  field?.select();
};

let going = 0;
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    for (const menu of document.querySelectorAll('.menu[open]')) {
      menu.open = false;
      menu.querySelector('summary').focus();
    }
  }
  const typing = event.target.closest?.('input, textarea, select, [contenteditable], dialog');
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === '?') { event.preventDefault(); showKeys(); return; }
  if (!use.checked) return;
  if (going) {
    clearTimeout(going);
    going = 0;
    const link = document.querySelector(`.views [data-key="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); location.assign(link.href); }
    return;
  }
  if (event.key === '/') { event.preventDefault(); find(); }
  if (event.key === 'g') {
    const views = [...document.querySelectorAll('.views [data-key]')];
    say(`Go to: ${views.map((one) => `${one.dataset.key} ${one.textContent.trim()}`).join(', ')}`);
    going = setTimeout(() => { going = 0; }, 1500);
  }
});

document.addEventListener('click', (event) => {
  for (const menu of document.querySelectorAll('.menu[open]')) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

addCopyButtons();
tellTimes();
