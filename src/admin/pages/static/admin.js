/* Optional: live updates, copy buttons, and filters that apply when chosen. The pages work without it. */

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  const name = button.textContent;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Browsers deny clipboard access over plain http from another machine: select the text instead.
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
      button.textContent = "Selected";
    }
    setTimeout(() => {
      button.textContent = name;
    }, 2000);
  });
}

for (const form of document.querySelectorAll("form[data-auto]")) {
  // Empty fields are left out of the URL.
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData])
      if (value === "" || (name === "limit" && value === "25")) formData.delete(name);
  });
  form.addEventListener("change", ({ target }) => {
    if (target.matches("select, input[list]")) form.requestSubmit();
  });
}

// On a narrow screen the menu is one line that can be moved.
const here = document.querySelector('nav .here, nav > ul [aria-current="page"]');
if (here) here.closest("nav").scrollLeft = here.getBoundingClientRect().left - innerWidth / 3;

// A page that answered a form at its own address is loaded with GET when it is loaded again: the form is not sent twice.
if (here?.pathname === location.pathname) history.replaceState(history.state, "", location.href);

// A browser does not show what is wrong where it is folded.
document.addEventListener("invalid", ({ target }) => target.closest("details")?.setAttribute("open", ""), true);

for (const field of document.querySelectorAll("[data-filter]")) {
  field.closest("search").hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of document.querySelectorAll(field.dataset.filter)) {
      const text = (item.querySelector("h2, th") ?? item).textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
    for (const group of document.querySelectorAll("[data-hides-empty]"))
      group.hidden = ![...group.querySelectorAll(field.dataset.filter)].some((item) => !item.hidden);
  });
}

const keys = {
  "/": ["filter the list", () => document.querySelector("search input, search select")?.focus()],
  j: ["next row", () => step(1)],
  k: ["row before", () => step(-1)],
  n: ["next request", () => document.querySelector('a[rel="next"]')?.click()],
  p: ["request before", () => document.querySelector('a[rel="prev"]')?.click()],
  "?": ["these keys", showKeys],
  Escape: ["close the values of a chart", hush],
};

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, key)) return;
  if (target.matches("input, select, textarea, [contenteditable]") || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  keys[key][1]();
});

/** Moves the focus among the links of the rows; Enter then opens the row. */
function step(by) {
  const links = [...document.querySelectorAll("table.rows tbody th a")];
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

/** Hides the values beside a column until it is pointed at again. */
function hush() {
  const column = document.querySelector(".bars a:is(:hover, :focus-visible)");
  column?.classList.add("quiet");
  for (const end of ["pointerleave", "blur"])
    column?.addEventListener(end, () => column.classList.remove("quiet"), { once: true });
}

function showKeys() {
  const dialog = document.createElement("dialog");
  dialog.className = "keys";
  const title = Object.assign(document.createElement("h2"), { textContent: "Keys", id: "keys-title" });
  dialog.setAttribute("aria-labelledby", title.id);
  const list = document.createElement("dl");
  for (const [key, [what]] of [...Object.entries(keys), ["Enter", ["open the row"]]]) {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    text.textContent = what;
    list.append(term, text);
  }
  const close = Object.assign(document.createElement("button"), { textContent: "Close", type: "button" });
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Says that the page is no longer up to date, if that lasts: a browser connects again after a restart. */
const stale = {
  patienceMs: 4000,
  begin(readyState) {
    this.waiting ??= setTimeout(() => {
      this.note = Object.assign(document.createElement("p"), { className: "note warn", role: "status" });
      this.note.textContent =
        readyState() === EventSource.CLOSED
          ? "This page is no longer updated. Reload it."
          : "dragoman does not answer, so this page is not up to date. It goes on by itself when dragoman is back.";
      document.getElementById("main").prepend(this.note);
    }, this.patienceMs);
  },
  end() {
    clearTimeout(this.waiting);
    this.note?.remove();
    this.waiting = this.note = undefined;
  },
};

const live = document.getElementById("live");
const fresh = document.querySelector("[data-count]");
if (live?.dataset.follow) follow(live);
if (fresh) offerNew(fresh);
if (live?.dataset.poll) poll(live);

/** Refreshes the live part when requests begin and end, at most once in so many ms. */
function follow(live) {
  const status = document.getElementById("live-status");
  let finished = 0;
  const soon = throttled(Number(live.dataset.every ?? 500), () => refresh(live));
  listen(live.dataset.follow, {
    snapshot: soon,
    running: soon,
    finished: () => {
      finished += 1;
      if (status) status.textContent = finished === 1 ? "1 request has finished" : `${finished} requests have finished`;
      soon();
    },
  });
}

/** Offers to load the page when it would have new rows, and says how many. */
function offerNew(fresh) {
  const link = fresh.querySelector("a");
  const soon = throttled(1000, async () => {
    const response = document.hidden ? undefined : await fetch(fresh.dataset.count);
    if (!response?.ok) return;
    link.textContent = await response.text();
    fresh.hidden = link.textContent === "";
  });
  listen(fresh.dataset.live, { snapshot: soon, finished: soon });
}

/** Listens while the page is visible: a browser opens few connections to one server, and hidden pages need none. */
function listen(path, handlers) {
  let source;
  const connection = { open: () => stale.end(), error: () => stale.begin(() => source?.readyState) };
  const update = () => {
    source?.close();
    stale.end();
    source = document.hidden ? undefined : new EventSource(path);
    for (const [name, handler] of Object.entries({ ...handlers, ...connection }))
      source?.addEventListener(name, handler);
  };
  update();
  addEventListener("visibilitychange", update);
  addEventListener("pagehide", () => source?.close());
}

/** Runs `work` once, so many ms after it was first asked for, and again if it is asked for while it runs. */
function throttled(ms, work) {
  let last;
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    const pause = new Promise((resolve) => setTimeout(resolve, ms));
    last = Promise.all([last, pause]).then(() => {
      waits = false;
      return work().catch(() => {}); // dragoman may be restarting
    });
  };
}

/** Refreshes the live part until it no longer waits; then hides what was needed for that. */
async function poll(live) {
  while (live.querySelector("[data-waiting]")) {
    await new Promise((resolve) => setTimeout(resolve, Number(live.dataset.poll)));
    await refresh(live).catch(() => {}); // dragoman may be restarting
  }
  for (const part of document.querySelectorAll("[data-while-waiting]")) part.hidden = true;
}

/** Loads the page again while somebody sees it, and replaces only the live part. Keeps the focus, and what was opened. */
async function refresh(live) {
  const response = document.hidden ? undefined : await fetch(location.href, { headers: { accept: "text/html" } });
  // Who is not signed in any more, or what is not there after a restart, has a page that says so.
  if (response?.status === 401 || response?.status === 404) return location.reload();
  if (!response?.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const now = page.getElementById("live");
  // A request that was running has finished and has a different page now.
  if (!now) return location.reload();
  const focused = document.activeElement;
  const again = live.contains(focused) ? nameOf(focused) : undefined;
  const open = [...live.querySelectorAll("details")].map((part) => part.open);
  live.replaceChildren(...now.childNodes);
  const parts = live.querySelectorAll("details");
  if (parts.length === open.length) for (const [at, part] of parts.entries()) part.open = open[at];
  const [aside, asideNow] = [document, page].map((each) => each.querySelector("[data-live-aside]"));
  if (aside && asideNow) aside.replaceChildren(...asideNow.childNodes);
  if (again) [...live.querySelectorAll("a, button, summary")].find((part) => nameOf(part) === again)?.focus();
}

/** Finds a link, a button or a fold again on the page that was loaded anew. */
const nameOf = (part) =>
  `${part.tagName} ${part.getAttribute("href") ?? part.form?.getAttribute("action") ?? part.textContent}`;
