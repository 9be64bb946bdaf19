/* The pages work without this. With it: lists follow what happens, texts are copied, filters apply as they are chosen. */

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  const name = button.textContent;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Not over plain http from another machine: the text is selected instead.
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
      button.textContent = "Selected";
    }
    setTimeout(() => {
      button.textContent = name;
    }, 2000);
  });
}

for (const form of document.querySelectorAll("form[data-auto]")) {
  // Fields that say nothing need not stand in the address.
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

function follow(live) {
  const told = document.getElementById("told");
  let ended = 0;
  let waits = false;
  const source = new EventSource(live.dataset.follow);
  const soon = () => {
    if (waits) return;
    waits = true;
    setTimeout(async () => {
      await refresh(live);
      waits = false;
    }, 500);
  };
  source.addEventListener("snapshot", soon);
  source.addEventListener("running", soon);
  source.addEventListener("finished", () => {
    ended += 1;
    if (told) told.textContent = ended === 1 ? "1 request has ended" : `${ended} requests have ended`;
    soon();
  });
  addEventListener("pagehide", () => source.close());
}

/** The same page once more, of which only the followed part is taken over, unless somebody is in it just now. */
async function refresh(live) {
  if (document.hidden) return;
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.getElementById("live");
  // One that was running has ended: it has another page now.
  if (!fresh) return location.reload();
  const focused = document.activeElement;
  const again = live.contains(focused) ? focused.getAttribute("href") : null;
  live.replaceChildren(...fresh.childNodes);
  if (again !== null) live.querySelector(`a[href="${CSS.escape(again)}"]`)?.focus();
}
