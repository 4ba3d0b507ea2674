// A list of choices below a field while one types: answers of recall in the head, places and commands in the palette.
// The server writes the list; arrows move in it, Enter follows, Escape closes. Without scripts the head's field is a form.

const PAUSE = 150;

const attach = (field) => {
  const list = document.getElementById(field.dataset.list);
  const inDialog = field.closest('dialog');
  let [timer, going, shown] = [0, null, null];
  field.setAttribute('role', 'combobox');
  field.setAttribute('aria-controls', list.id);
  field.setAttribute('aria-autocomplete', 'list');

  const options = () => [...list.querySelectorAll('[role=option]')];
  const selected = () => list.querySelector('[aria-selected=true]');

  const select = (option) => {
    selected()?.setAttribute('aria-selected', 'false');
    option?.setAttribute('aria-selected', 'true');
    option?.scrollIntoView({ block: 'nearest' });
    if (option) field.setAttribute('aria-activedescendant', option.id);
    else field.removeAttribute('aria-activedescendant');
  };

  const open = (isOpen) => {
    if (!inDialog) list.hidden = !isOpen;
    field.setAttribute('aria-expanded', String(isOpen));
    if (!isOpen) select(null);
  };

  const ask = async () => {
    const words = field.value.trim();
    if (words === shown) { open(Boolean(words || inDialog)); return; }
    going?.abort();
    if (!words && !inDialog) { shown = null; open(false); return; }
    going = new AbortController();
    try {
      const url = new URL(field.dataset.choices, location.href);
      url.searchParams.set('q', words);
      const answer = await fetch(url, { signal: going.signal });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      list.replaceChildren(...document.adoptNode(page.body).childNodes);
      options().forEach((option, at) => { option.id = `${list.id}-${at}`; });
      list.scrollTop = 0;
      shown = words;
      if (document.activeElement === field) open(true);
      if (inDialog) select(options()[0]);
      const number = options().length;
      document.querySelector('[data-said]').textContent = number === 1 ? '1 choice' : `${number} choices`;
    } catch (error) {
      if (error.name !== 'AbortError') open(false);
    }
  };

  const follow = async (option) => {
    if (!option.dataset.copy) { location.assign(option.href); return; }
    try {
      await navigator.clipboard.writeText(option.dataset.copy);
      document.querySelector('[data-said]').textContent = 'Copied';
      option.lastElementChild.textContent = 'Copied';
      setTimeout(() => inDialog?.close(), 700);
    } catch {
      option.lastElementChild.textContent = option.dataset.copy;  // to be copied by hand
    }
  };

  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });
  field.addEventListener('focus', () => { if (field.value || inDialog) ask(); });
  field.addEventListener('blur', () => { if (!inDialog) open(false); });
  // A click must not take the focus first, or the list would close under it.
  list.addEventListener('mousedown', (event) => event.preventDefault());
  list.addEventListener('click', (event) => {
    const option = event.target.closest('[role=option]');
    if (!option || (!option.dataset.copy && (event.ctrlKey || event.metaKey || event.shiftKey))) return;
    event.preventDefault();
    follow(option);
  });
  field.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const every = options();
    const at = every.indexOf(selected());
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && every.length) {
      event.preventDefault();
      open(true);
      // Beyond either end nothing is selected: Enter then takes what was typed.
      const to = at === -1 && step === -1 ? every.length - 1 : at + step;
      select(every[to] ?? null);
    } else if (event.key === 'Enter' && selected()) {
      event.preventDefault();
      follow(selected());
    } else if (event.key === 'Escape' && inDialog) {
      event.preventDefault();  // a search field would take the first Escape to empty itself
      inDialog.close();
    } else if (event.key === 'Escape') {
      if (!list.hidden) { event.preventDefault(); open(false); } else field.blur();
    }
  });
  open(false);
};

for (const field of document.querySelectorAll('[data-choices]')) attach(field);

const palette = document.getElementById('palette');
const field = palette.querySelector('input');
const show = () => {
  if (!palette.open) palette.showModal();
  field.focus();
  field.select();
};
palette.addEventListener('click', (event) => { if (event.target === palette) palette.close(); });
for (const button of document.querySelectorAll('.palette-button')) {
  button.hidden = false;
  button.addEventListener('click', show);
}
document.addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (palette.open) palette.close(); else if (!document.querySelector('dialog[open]')) show();
});
