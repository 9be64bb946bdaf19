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
      if (value === "" || (name === "limit" && value === "50")) formData.delete(name);
  });
  form.addEventListener("change", ({ target }) => {
    if (target.matches("select, input[list]")) form.requestSubmit();
  });
}

const live = document.getElementById("live");
if (live?.dataset.follow) follow(live);
if (live?.dataset.poll) poll(live);

function follow(live) {
  const status = document.getElementById("live-status");
  let finished = 0;
  let scheduled = false;
  const source = new EventSource(live.dataset.follow);
  const soon = () => {
    if (scheduled) return;
    scheduled = true;
    setTimeout(async () => {
      await refresh(live);
      scheduled = false;
    }, 500);
  };
  source.addEventListener("snapshot", soon);
  source.addEventListener("running", soon);
  source.addEventListener("finished", () => {
    finished += 1;
    if (status) status.textContent = finished === 1 ? "1 request has finished" : `${finished} requests have finished`;
    soon();
  });
  addEventListener("pagehide", () => source.close());
}

/** Refreshes the live part until it no longer waits; then hides what was needed for that. */
async function poll(live) {
  while (live.querySelector("[data-waiting]")) {
    await new Promise((resolve) => setTimeout(resolve, Number(live.dataset.poll)));
    await refresh(live).catch(() => {}); // dragoman may be restarting
  }
  for (const part of document.querySelectorAll("[data-while-waiting]")) part.hidden = true;
}

/** Loads the page again and replaces only the live part. Keeps the focus. */
async function refresh(live) {
  if (document.hidden) return;
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.getElementById("live");
  // A request that was running has finished and has a different page now.
  if (!fresh) return location.reload();
  const focused = document.activeElement;
  const again = live.contains(focused) ? focused.getAttribute("href") : null;
  live.replaceChildren(...fresh.childNodes);
  if (again !== null) live.querySelector(`a[href="${CSS.escape(again)}"]`)?.focus();
}
