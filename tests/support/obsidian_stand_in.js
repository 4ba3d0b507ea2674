// What of Obsidian's API the plugin uses, as `obsidian.d.ts` declares it, on a page of a browser.
(() => {
  Object.assign(HTMLElement.prototype, {
    empty() { this.replaceChildren(); },
    setText(text) { this.textContent = text; },
    createEl(tag, given = {}) {
      const made = document.createElement(tag);
      if (given.cls) made.classList.add(given.cls);
      if (given.text !== undefined) made.textContent = given.text;
      for (const name of ['type', 'placeholder', 'href']) if (given[name]) made.setAttribute(name, given[name]);
      for (const [name, value] of Object.entries(given.attr || {})) made.setAttribute(name, value);
      this.append(made);
      return made;
    },
    createDiv(given) { return this.createEl('div', given); },
  });
  class Component {
    registerDomEvent(element, type, act) { element.addEventListener(type, act); }
  }
  class ItemView extends Component {
    constructor(leaf) { super(); this.leaf = leaf; this.app = window.app; this.contentEl = document.getElementById('pane'); }
  }
  class MarkdownView {
    constructor(path) { this.file = { path }; this.contentEl = document.getElementById('note'); }
  }
  class FileSystemAdapter { getBasePath() { return '/vault'; } }
  class Plugin {
    constructor(app) { this.app = app; this.commands = {}; }
    registerView(type, make) { window.app.views[type] = make; }
    addSettingTab() {}
    addCommand(command) { this.commands[command.id] = command; }
    registerMarkdownPostProcessor(act) { this.postProcessor = act; }
    registerEvent() {}
  }
  const leaf = { view: null, async setViewState(state) { this.view = window.app.views[state.type](this); await this.view.onOpen(); } };
  window.app = {
    views: {},
    opened: [],
    active: new MarkdownView('MEMORY.md'),
    vault: { adapter: new FileSystemAdapter() },
    loadLocalStorage: () => null,
    workspace: {
      on: () => ({}),
      onLayoutReady() {},
      getLeavesOfType: () => (leaf.view ? [leaf] : []),
      getRightLeaf: () => leaf,
      revealLeaf: async () => {},
      openLinkText: (path) => window.app.opened.push(path),
      getActiveViewOfType: () => window.app.active,
    },
  };
  const modules = {
    obsidian: {
      FileSystemAdapter, ItemView, MarkdownView, Plugin,
      Notice: class { constructor(text) { window.noticed = text; } },
      PluginSettingTab: class {}, Setting: class {},
    },
    os: { homedir: () => '/home/ada' },
    child_process: {
      execFile: (program, words, limits, done) =>
        window.execFile(program, words).then(([code, out, err]) => done(code ? { code } : null, out, err)),
    },
  };
  window.MarkdownView = MarkdownView;
  window.require = (name) => modules[name];
  window.module = { exports: {} };
})();
