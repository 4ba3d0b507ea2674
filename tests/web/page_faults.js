// What is wrong with the page as it is shown now: a list of lines, empty where all is well. See browsers.py.
async () => {
  await new Promise(requestAnimationFrame);
  const faults = new Set();
  const root = document.documentElement;
  const shown = (element) => `${element.tagName}.${element.className.baseVal ?? element.className}`;

  // ── its frame ──
  if (!root.lang) faults.add('no lang');
  const headings = document.querySelectorAll('h1').length;
  if (headings !== 1) faults.add(`${headings} h1`);
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll('body *')]
      .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1);
    faults.add(`scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}: ${wide.slice(0, 3).map(shown)}`);
  }

  // ── names ──
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  ids.filter((one, at) => ids.indexOf(one) !== at).forEach((id) => faults.add(`id twice: ${id}`));
  for (const one of document.querySelectorAll('[aria-labelledby], [aria-describedby]')) {
    for (const id of (one.getAttribute('aria-labelledby') ?? one.getAttribute('aria-describedby')).split(' ')) {
      if (!document.getElementById(id)) faults.add(`nothing is called ${id}`);
    }
  }
  for (const one of document.querySelectorAll('svg')) {
    const named = one.hasAttribute('aria-label') || one.querySelector(':scope > title');
    if (!named && !one.closest('[aria-hidden=true]')) faults.add(`a picture without a name: ${shown(one)}`);
  }
  for (const one of document.querySelectorAll('img:not([alt]), [style]:not(.canvas, .canvas *), a:not([href])')) faults.add(shown(one));

  // ── contrast ──
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
  const pixel = canvas.getContext('2d', { willReadFrequently: true });
  const parsed = new Map();
  const parse = (colour) => {
    if (!parsed.has(colour)) {
      pixel.clearRect(0, 0, 1, 1);
      pixel.fillStyle = colour;
      pixel.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
      parsed.set(colour, [red, green, blue, alpha / 255]);
    }
    return parsed.get(colour);
  };
  const over = (top, ground, alpha) => [0, 1, 2].map((at) => top[at] * alpha + ground[at] * (1 - alpha));
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return parse('Canvas');
    if (!grounds.has(element)) {
      const own = parse(getComputedStyle(element).backgroundColor);
      grounds.set(element, own[3] === 1 ? own : over(own, ground(element.parentElement), own[3]));
    }
    return grounds.get(element);
  };
  const linear = (value) => (value <= 10.31 ? value / 3294.6 : ((value / 255 + .055) / 1.055) ** 2.4);
  const light = ([red, green, blue]) => .2126 * linear(red) + .7152 * linear(green) + .0722 * linear(blue);
  const contrast = (one, other) => {
    const [darker, lighter] = [light(one), light(other)].sort((a, b) => a - b);
    return (lighter + .05) / (darker + .05);
  };
  const judge = (element, colour, text) => {
    let alpha = parse(colour)[3];
    for (let at = element; at; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
    const behind = ground(element);
    const found = contrast(over(parse(colour), behind, alpha), behind);
    if (found < 4.5) faults.add(`contrast ${found.toFixed(2)}: ${shown(element)} ${text.trim().slice(0, 30)}`);
  };
  // One of each kind: what has the same tags and classes all the way up looks the same.
  const kinds = new Map([[document.body, '']]);
  const kind = (element) => {
    if (!kinds.has(element)) kinds.set(element, `${kind(element.parentElement)} ${shown(element)}`);
    return kinds.get(element);
  };
  const judged = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || judged.has(kind(element))) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    judged.add(kind(element));
    const style = getComputedStyle(element);
    judge(element, element instanceof SVGElement ? style.fill : style.color, texts.currentNode.data);
  }
  for (const field of document.querySelectorAll('[placeholder]')) {
    judge(field, getComputedStyle(field, '::placeholder').color, field.placeholder);
  }
  return [...faults];
}
