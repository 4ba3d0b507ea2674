/*
Follows handles, shows violations and searches memory, by calling the command line of signet-sync.

Only argument lists are passed, never a shell; what comes back is shown as text, never as HTML. Which program is called
is stored on this device, not in the vault: a vault that is synced must not choose what runs.
*/
'use strict';

const { FileSystemAdapter, ItemView, MarkdownView, Notice, Plugin, PluginSettingTab, Setting } = require('obsidian');
const { execFile } = require('child_process');
const { homedir } = require('os');

const VIEW = 'signet-sync';
const PROGRAM = 'signet-sync-program';
const HANDLE = /\^[a-z]-[a-z0-9]{4,16}\b/g;
const LIMITS = { timeout: 60000, maxBuffer: 16 << 20, windowsHide: true };
const FRESH = 10000; // milliseconds for which a list of violations is used again

/** Where programs are that a desktop's menu does not have in its PATH. */
function candidates(chosen) {
  if (chosen) return [chosen];
  const home = homedir();
  return ['signet-sync', `${home}/.local/bin/signet-sync`, '/opt/homebrew/bin/signet-sync', '/usr/local/bin/signet-sync'];
}

/** Runs a command of signet-sync; resolves to its JSON document, or rejects with what it says is wrong. */
function run(programs, root, words) {
  const [program, ...others] = programs;
  return new Promise((resolve, reject) => {
    execFile(program, ['--workspace', root, ...words], LIMITS, (error, stdout, stderr) => {
      const code = error && /** @type {any} */ (error).code;
      if (code === 'ENOENT' && others.length) {
        run(others, root, words).then(resolve, reject);
      } else if (code === 'ENOENT') {
        reject(new Error('signet-sync was not found: set its path in the settings of this plugin'));
      } else {
        try {
          const document = JSON.parse(String(stdout));
          if (document.error) reject(new Error([document.error.message, document.error.hint].filter(Boolean).join(' — ')));
          else resolve(document);
        } catch {
          reject(new Error(String(stderr).trim().slice(0, 500) || 'signet-sync gave no answer'));
        }
      }
    });
  });
}

class MemoryView extends ItemView {
  constructor(leaf, plugin) {
    super(leaf);
    this.plugin = plugin;
    this.asked = 0;
  }

  getViewType() {
    return VIEW;
  }

  getDisplayText() {
    return 'Memory';
  }

  getIcon() {
    return 'brain';
  }

  async onOpen() {
    this.contentEl.empty();
    const form = this.contentEl.createEl('form');
    this.field = form.createEl('input', {
      type: 'search',
      placeholder: 'Search memory',
      attr: { 'aria-label': 'Search memory' },
    });
    this.results = this.contentEl.createDiv({ attr: { 'aria-live': 'polite' } });
    this.registerDomEvent(form, 'submit', (event) => {
      event.preventDefault();
      const query = this.field.value.trim();
      if (query) this.show(['recall', '--json', '--', query], (found) => this.hits(found.hits));
    });
  }

  /** Shows the answer to a command; only that to the last one. */
  async show(words, render) {
    const asked = ++this.asked;
    this.results.setText('…');
    try {
      const found = await this.plugin.run(words);
      if (asked !== this.asked) return;
      this.results.empty();
      render(found);
    } catch (error) {
      if (asked === this.asked) this.results.setText(error.message);
    }
  }

  hits(hits) {
    if (!hits.length) this.results.setText('nothing found');
    for (const hit of hits) this.entry(hit.text, hit.path, hit.why);
  }

  expand(handle) {
    return this.show(['expand', '--json', '--', handle], (found) => {
      this.entry(found.node.text, found.node.path || (found.transcript && found.transcript.path), found.node.label);
    });
  }

  entry(text, path, source) {
    const hit = this.results.createDiv({ cls: 'signet-sync-hit' });
    hit.createDiv({ cls: 'signet-sync-hit-text', text: String(text || '') });
    if (source) hit.createDiv({ cls: 'signet-sync-hit-source', text: String(source) });
    if (typeof path !== 'string' || !path) return;
    const link = hit.createEl('a', { cls: 'signet-sync-hit-source', text: path, href: '#' });
    this.registerDomEvent(link, 'click', (event) => {
      event.preventDefault();
      this.app.workspace.openLinkText(path, '');
    });
  }
}

class Settings extends PluginSettingTab {
  constructor(app, plugin) {
    super(app, plugin);
    this.plugin = plugin;
  }

  display() {
    this.containerEl.empty();
    new Setting(this.containerEl)
      .setName('Program')
      .setDesc('The path of signet-sync, for this device only. Empty: it is looked for.')
      .addText((text) =>
        text
          .setPlaceholder('signet-sync')
          .setValue(this.app.loadLocalStorage(PROGRAM) || '')
          .onChange((value) => this.app.saveLocalStorage(PROGRAM, value.trim() || null)),
      );
  }
}

module.exports = class SignetSync extends Plugin {
  async onload() {
    this.known = { at: 0, list: Promise.resolve([]) };
    this.registerView(VIEW, (leaf) => new MemoryView(leaf, this));
    this.addSettingTab(new Settings(this.app, this));
    this.addCommand({ id: 'search', name: 'Search memory', callback: () => this.pane() });
    this.addCommand({
      id: 'open-handle',
      name: 'Open the handle in this line',
      editorCallback: (editor) => {
        const found = editor.getLine(editor.getCursor().line).match(HANDLE);
        if (found) this.open(found[found.length - 1]);
        else new Notice('there is no handle in this line');
      },
    });
    this.registerMarkdownPostProcessor((element) => this.link(element));
    this.registerEvent(this.app.workspace.on('file-open', () => this.banner()));
    this.app.workspace.onLayoutReady(() => this.banner());
  }

  onunload() {
    for (const old of Array.from(document.querySelectorAll('.signet-sync-banner'))) old.remove();
  }

  run(words) {
    const { adapter } = this.app.vault;
    if (!(adapter instanceof FileSystemAdapter)) return Promise.reject(new Error('this vault is not on a disk'));
    return run(candidates(this.app.loadLocalStorage(PROGRAM)), adapter.getBasePath(), words);
  }

  async pane() {
    const { workspace } = this.app;
    const [there] = workspace.getLeavesOfType(VIEW);
    const leaf = there || workspace.getRightLeaf(false);
    if (!leaf) return null;
    if (!there) await leaf.setViewState({ type: VIEW, active: true });
    await workspace.revealLeaf(leaf);
    return leaf.view instanceof MemoryView ? leaf.view : null;
  }

  async open(handle) {
    const view = await this.pane();
    if (view) await view.expand(handle);
  }

  /** Makes the handles in rendered text, and links to them, open the pane. */
  link(element) {
    for (const anchor of Array.from(element.querySelectorAll('a.internal-link'))) {
      const [handle] = (anchor.getAttribute('data-href') || '').match(HANDLE) || [];
      if (handle) this.follow(anchor, handle);
    }
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const node of texts) {
      const text = node.nodeValue || '';
      const parts = document.createDocumentFragment();
      let from = 0;
      for (const found of text.matchAll(HANDLE)) {
        const handle = document.createElement('span');
        handle.textContent = found[0];
        this.follow(handle, found[0]);
        parts.append(text.slice(from, found.index), handle);
        from = found.index + found[0].length;
      }
      if (from && node.parentNode && !(node.parentElement && node.parentElement.closest('a, code, pre'))) {
        parts.append(text.slice(from));
        node.parentNode.replaceChild(parts, node);
      }
    }
  }

  follow(element, handle) {
    element.classList.add('signet-sync-handle');
    element.addEventListener('click', (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.open(handle);
    });
  }

  /** Shows above a note that it changed after it was sealed, or is another file than what was sealed. */
  async banner() {
    const view = this.app.workspace.getActiveViewOfType(MarkdownView);
    if (!view || !view.file) return;
    const { path } = view.file;
    const found = await this.violation(path);
    for (const old of Array.from(view.contentEl.querySelectorAll('.signet-sync-banner'))) old.remove();
    if (!found || !view.file || view.file.path !== path) return;
    const banner = document.createElement('div');
    banner.classList.add('signet-sync-banner');
    banner.setAttribute('role', 'status');
    banner.textContent = `${found.message} — signet-sync violations show '${path}'`;
    view.contentEl.prepend(banner);
  }

  async violation(path) {
    if (!path.startsWith('memory/')) return null;
    if (Date.now() - this.known.at > FRESH) {
      const list = this.run(['violations', 'list', '--json']).then(
        (answer) => answer.violations.flatMap((batch) => batch.files || []),
        () => [],
      );
      this.known = { at: Date.now(), list };
    }
    return (await this.known.list).find((one) => one.path === path) || null;
  }
};
